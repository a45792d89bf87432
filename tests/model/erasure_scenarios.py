"""Complete erasure: of changes under way, and of content that no document names (E…)."""

from __future__ import annotations

from tests.model.checker import Process
from tests.model.situations import (
    Scenario,
    appends,
    creates,
    deletes,
    event,
    fresh_session,
    gets_and_appends,
    holding,
    one_after_the_other,
    purges,
    purges_user,
    reader_at_rest,
    session_document,
    stored,
    tombstone,
    two_events,
)
from tests.model.steps import merge_all, record
from tests.model.store import EMPTY, Frozen

# ------------------------------------------------------------------ the user's state


def E1(rules):
    """A merge is under way, or is retried, while the user is erased with the state."""
    ps = [
        Process("A", appends(rules, holding(), "a", key="k"), lost_reply=True),
        Process("P", purges_user(rules, "1", include_state=True), crash=True),
        Process("P2", purges_user(rules, "1", include_state=True), after=("P",)),
    ]
    store = fresh_session(rules)
    return Scenario([*ps, reader_at_rest(rules, *ps)], store, crashes=1, lost_replies=1)


def E1b(rules):
    """The same with lag, and a writer whose estimate of the server's time is slightly ahead."""
    ps = [
        Process("A", appends(rules, holding(n=2, event_ids="yz"), "a", key="k"), offset=9),
        Process("P", purges_user(rules, "1", include_state=True), stale=True),
    ]
    return Scenario([*ps, reader_at_rest(rules, *ps)], two_events(rules))


def E1c(rules):
    """The session's document expired; it is purged, then its user with the state; all the while
    some process is about to merge what an event of it changed."""
    changed = record("event", "a0", 1, "a", 500, Frozen(a=1), Frozen(k="a"))

    def stores(proc):
        proc.start("append", "1", "a", "a0", 0, (("user", "k"),))
        yield ("create", "log1", (1, "a0"), changed)

    def expires(proc):
        proc.start("expired", "1")
        yield ("wait", 100)

    def merges(proc):
        yield from merge_all(rules, (changed,))

    ps = [
        Process("A", stores),
        Process("X", expires, after=("A",)),
        Process("M", merges, after=("A",)),
        Process("P", purges(rules), after=("X",)),
        Process("U", purges_user(rules, "1", include_state=True), after=("P",)),
    ]
    doc = session_document("a0").having(ttl=50, ts=0)
    return Scenario([*ps, reader_at_rest(rules, *ps)], stored(rules, {"1": (doc,)}))


def E2(rules):
    """A user is erased with the state while another session of theirs is created with some."""
    ps = [
        Process("P", purges_user(rules, "1", "2", include_state=True), lost_reply=True),
        Process("A", appends(rules, holding(), "a", key="k"), crash=True),
        Process("C", creates(rules, "b0", key="k", sid="2"), crash=True),
    ]
    store = stored(rules, {"1": (session_document("a0"),), "2": (None,)})
    reader = reader_at_rest(rules, *ps, sids="12")
    return Scenario([*ps, reader], store, crashes=1, lost_replies=1)


def E2b(rules):
    """What is written after the erasure stays, even from a host whose clock is slightly slow."""
    ps = [
        Process("A", appends(rules, holding(), "a", key="k"), offset=9),
        Process("P", purges_user(rules, "1", include_state=True)),
        Process("C", creates(rules, "b0", key="k", sid="2"), after=("P",), offset=-9),
        Process("B", gets_and_appends(rules, "b", key="l", sid="2"), after=("C",), offset=-9),
    ]
    store = stored(rules, {"1": (session_document("a0"),), "2": (None,)})
    return Scenario([*ps, reader_at_rest(rules, *ps, sids="12")], store)


# ------------------------------------------------------------------ content without a document


def _expired(rules):
    """The document of a session has expired, but its events have not."""
    return stored(rules, {"1": (None, event(1, "y", "a0"), event(2, "z", "a0"))})


def E3(rules):
    """A session whose document has expired is purged, while it is created again."""
    ps = [
        Process("P", purges(rules), crash=True),
        Process("C", creates(rules, "a1")),
        Process("N", gets_and_appends(rules, "n"), after=("C",)),
        Process("D", one_after_the_other(deletes(rules), purges(rules)), after=("N",)),
    ]
    return Scenario([*ps, reader_at_rest(rules, *ps)], _expired(rules), crashes=1)


def E3b(rules):
    """The user of such a session is erased; reads may be old."""
    ps = [
        Process("P", purges_user(rules, "1"), stale=True),
        Process("C", creates(rules, "a1"), stale=True),
        Process("N", gets_and_appends(rules, "n"), after=("C",)),
    ]
    return Scenario([*ps, reader_at_rest(rules, *ps)], _expired(rules))


def E3c(rules):
    """A purged session has events of an expired one after its end; it is created again while
    several purges are under way."""
    doc = session_document("a1", "deleted", revision=2, shows="x")
    records = event(1, "x", "a1"), tombstone(2, "a1")
    expired = event(1, "y", "a0"), event(3, "z", "a0")
    ps = [
        Process("P", purges(rules), stale=True),
        Process("P2", purges(rules), crash=True),
        Process("C", creates(rules, "a2")),
        Process("N", gets_and_appends(rules, "n"), after=("C",)),
    ]
    store = stored(rules, {"1": (doc, *expired, *records)})
    return Scenario([*ps, reader_at_rest(rules, *ps)], store, crashes=1)


def E4(rules):
    """A large event is refused because its session is purged; its writer dies before it has
    removed the body. Another process purges again, the day after."""
    doc = session_document("a0", "deleted", revision=2, shows="z")
    store = stored(rules, {"1": (doc, event(1, "z", "a0"), tombstone(2, "a0"))})
    ps = [
        Process("A", appends(rules, holding(n=1, event_ids="z"), "a", large=True), crash=True),
        Process("P", purges(rules), crash=True),
        Process("C", creates(rules, "a1"), crash=True),
        Process("P2", purges(rules), after=("A", "P", "C")),
    ]
    store = store.having(body1=(EMPTY,))
    return Scenario([*ps, reader_at_rest(rules, *ps)], store, crashes=2)


def E4b(rules):
    """A session with a large event is read, deleted and purged; reads may be old."""
    large = event(1, "y", "a0").having(large=True)
    doc = session_document("a0", revision=1, shows="y")
    body = Frozen(kind="body", seq=0, incarnation="a0", event_id="y")
    store = stored(rules, {"1": (doc, large)})
    store = store.having(body1=(EMPTY, Frozen({"y": (1, body)})))
    ps = [
        Process("P", one_after_the_other(deletes(rules), purges(rules)), stale=True, crash=True),
        Process("B", gets_and_appends(rules, "b", repair=True), stale=True),
        Process("P2", purges(rules), after=("P", "B")),
    ]
    return Scenario([*ps, reader_at_rest(rules, *ps)], store, crashes=1)


def E4c(rules):
    """Purges are under way while the session is created again and gets a large event."""
    store = stored(
        rules, {"1": (session_document("a0", "deleted", revision=1), tombstone(1, "a0"))}
    )
    body = Frozen(kind="body", seq=0, incarnation="a0", event_id="x")
    ps = [
        Process("P", purges(rules), stale=True),
        Process("P2", purges(rules)),
        Process("C", creates(rules, "a1")),
        Process("N", gets_and_appends(rules, "n", large=True), after=("C",)),
    ]
    store = store.having(body1=(Frozen({"x": (1, body)}),))
    return Scenario([*ps, reader_at_rest(rules, *ps)], store)
