"""Clocks that disagree (C…), and sessions with a ttl (T…)."""

from __future__ import annotations

from tests.model.checker import Process
from tests.model.retention import DOCUMENT_TTL, EVENT_TTL
from tests.model.situations import (
    Scenario,
    appends,
    creates,
    deletes,
    event,
    gets_and_appends,
    holding,
    log_snapshot,
    one_after_the_other,
    purges,
    reader_at_rest,
    session_document,
    skewed,
    stored,
    uses,
)
from tests.model.store import Frozen


def C1(rules):
    """A host is a day ahead; afterwards another creates a session with the same key, and has not
    seen what the first one wrote."""
    ps = [
        Process("A", appends(rules, holding(), "a", key="k"), offset=skewed(rules, 50)),
        Process("C", creates(rules, "b0", key="k", sid="2"), stale=True, after=("A",)),
    ]
    store = stored(rules, {"1": (session_document("a0"),), "2": (None,)})
    return Scenario([*ps, reader_at_rest(rules, *ps, sids="12")], store)


def C1b(rules):
    """The same with an append in another session, and with a host whose clock is slow."""
    ps = [
        Process("A", appends(rules, holding(), "a", key="k"), offset=skewed(rules, 50)),
        Process(
            "B",
            gets_and_appends(rules, "b", key="k", sid="2"),
            stale=True,
            offset=skewed(rules, -50),
            after=("A",),
        ),
    ]
    sessions = {"1": (session_document("a0"),), "2": (session_document("b0"),)}
    return Scenario([*ps, reader_at_rest(rules, *ps, sids="12")], stored(rules, sessions))


def C2(rules):
    """A stamp of a day ahead is stored; sessions are created with the same key."""
    doc = Frozen(state=Frozen(k="w"), stamps=Frozen(k=(50, "w")))
    store = stored(rules, {"1": (None,), "2": (session_document("b0"),)})
    store = store.having(user=(Frozen({"d": (1, doc)}),))
    ps = [
        Process("C", creates(rules, "c0", key="k"), crash=True, lost_reply=True),
        Process("B", gets_and_appends(rules, "b", key="k", sid="2"), after=("C",)),
    ]
    return Scenario([*ps, reader_at_rest(rules, *ps, sids="12")], store, crashes=1, lost_replies=1)


# ------------------------------------------------------------------ ttl


def _with_ttl(rules, events=1, written=0):
    """A session with a ttl, written at time 0, by a process whose clock showed `written`."""
    doc = session_document("a0", revision=events, shows="yz"[:events])
    doc = doc.having(ttl=DOCUMENT_TTL, ts=0, renewed_at=written, events_renewed_at=written)
    records = [event(n + 1, "yz"[n], "a0").having(ttl=EVENT_TTL, ts=0) for n in range(events)]
    return stored(rules, {"1": (doc, *records)})


def T1(rules):
    """One process is far ahead, another is right; the session is used all the time."""
    ps = [
        Process("A", uses(rules, 1, 20), offset=skewed(rules, 3600)),
        Process("B", uses(rules, 8, 60), after=("A",)),
    ]
    return Scenario([*ps, reader_at_rest(rules, *ps)], _with_ttl(rules))


def T2(rules):
    """The clocks of all processes are slow by three times the ttl."""
    offset = skewed(rules, -300)
    ps = [
        Process("A", uses(rules, 3, 60), offset=offset),
        Process("B", uses(rules, 4, 60), offset=offset, after=("A",)),
    ]
    return Scenario([*ps, reader_at_rest(rules, *ps)], _with_ttl(rules, written=offset))


def T3(rules):
    """A process that uses the session does not see an event that nobody has projected: it must be
    renewed all the same."""
    store = _with_ttl(rules, events=0)
    y = event(1, "y", "a0").having(ttl=EVENT_TTL, ts=0)
    store = store.having(log1=(log_snapshot(), log_snapshot(y)))
    ps = [Process("B", uses(rules, 4, 85), stale=True, offset=skewed(rules, -500))]
    return Scenario([*ps, reader_at_rest(rules, *ps)], store)


def T4(rules):
    """Events are renewed while the session is deleted and purged."""
    ps = [
        Process("A", uses(rules, 1, 60)),
        Process("P", one_after_the_other(deletes(rules), purges(rules)), crash=True),
        Process("P2", purges(rules), after=("P",)),
    ]
    return Scenario([*ps, reader_at_rest(rules, *ps)], _with_ttl(rules, events=2), crashes=1)
