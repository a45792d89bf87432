"""Replicas that lag, each container on its own (L…), and documents that are really gone (D…).

A stale process may read, in each range, any version that is not older than its session token. The
past of the store holds every earlier version.
"""

from __future__ import annotations

from tests.model.checker import Process
from tests.model.situations import (
    Scenario,
    appends,
    creates,
    deletes,
    event,
    gets,
    gets_and_appends,
    holding,
    iterates,
    one_after_the_other,
    purges,
    purges_user,
    reader_at_rest,
    repairs,
    restores,
    session_document,
    stored,
    tombstone,
    two_events,
    with_past,
)
from tests.model.steps import project
from tests.model.store import EMPTY, Frozen


def deleted_with_past(rules):
    doc = session_document("a0", "deleted", revision=3, shows="yz")
    return two_events(rules, doc, later=(tombstone(3, "a0"),))


# ------------------------------------------------------------------ reading


def L1(rules, token_on_error=True):
    """The events lag, the session document does not: a get, and an append from what it showed."""
    ps = [
        Process("B", gets_and_appends(rules, "b", key="k", repair=True), stale=True),
        Process("A", appends(rules, holding(n=2, event_ids="yz"), "a", key="k"), crash=True),
    ]
    return Scenario(
        [*ps, reader_at_rest(rules, *ps)],
        two_events(rules),
        crashes=1,
        token_on_error=token_on_error,
    )


def L1n(rules):
    """As L1 with eventual consistency: a probe does not bring the next read up to date."""
    return L1(rules, token_on_error=False)


def L1b(rules):
    """A stale get and append while the session is deleted, purged and created again."""
    steps = deletes(rules), purges(rules), creates(rules, "a1"), gets_and_appends(rules, "n")
    ps = [
        Process("X", one_after_the_other(*steps)),
        Process("B", gets_and_appends(rules, "b", repair=True), stale=True),
    ]
    return Scenario([*ps, reader_at_rest(rules, *ps)], two_events(rules))


def L2(rules):
    """Iteration over the events while the events lag, or the session document."""
    ps = [
        Process("Q", iterates(rules), stale=True),
        Process("A", appends(rules, holding(n=2, event_ids="yz"), "a", "b")),
    ]
    return Scenario([*ps, reader_at_rest(rules, *ps)], two_events(rules))


def L2b(rules):
    """Iteration while the session is deleted, purged and created again; all reads may be old."""
    steps = deletes(rules), purges(rules), creates(rules, "a1"), gets_and_appends(rules, "n")
    ps = [
        Process("Q", iterates(rules), stale=True),
        Process("X", one_after_the_other(*steps)),
    ]
    return Scenario([*ps, reader_at_rest(rules, *ps)], two_events(rules))


def L2c(rules):
    """Iteration while the session is deleted and restored."""
    ps = [
        Process("Q", iterates(rules), stale=True),
        Process("X", one_after_the_other(deletes(rules), restores(rules)), crash=True),
    ]
    return Scenario([*ps, reader_at_rest(rules, *ps)], two_events(rules), crashes=1)


def L2d(rules):
    """Iteration while the session is deleted and created again."""
    steps = deletes(rules), creates(rules, "a1"), gets_and_appends(rules, "n")
    ps = [
        Process("Q", iterates(rules), stale=True),
        Process("X", one_after_the_other(*steps)),
    ]
    return Scenario([*ps, reader_at_rest(rules, *ps)], two_events(rules))


def L3(rules):
    """Repair while events lag, and others append or delete."""
    ps = [
        Process("X", repairs(rules), stale=True),
        Process("A", appends(rules, holding(n=2, event_ids="yz"), "a", key="k"), crash=True),
        Process("D", deletes(rules), stale=True),
    ]
    return Scenario([*ps, reader_at_rest(rules, *ps)], two_events(rules), crashes=1)


# ------------------------------------------------------------------ erasing


def L4(rules):
    """A purge while the events lag; an object of the session, a restore."""
    ps = [
        Process("P", purges(rules), stale=True, crash=True),
        Process("A", appends(rules, holding(n=2, event_ids="yz"), "a")),
        Process("X", restores(rules), stale=True),
        Process("P2", purges(rules), stale=True, after=("P", "X")),
    ]
    return Scenario([*ps, reader_at_rest(rules, *ps)], deleted_with_past(rules), crashes=1)


def L4b(rules):
    """Two purges, a creator and a writer in the new session; all reads may be old."""
    ps = [
        Process("P", purges(rules), stale=True),
        Process("P2", purges(rules)),
        Process("C", creates(rules, "a1")),
        Process("N", gets_and_appends(rules, "n"), stale=True, after=("C",)),
    ]
    doc = session_document("a0", "deleted", revision=2, shows="y")
    y, tomb = event(1, "y", "a0"), tombstone(2, "a0")
    docs = [session_document("a0", revision=1, shows="y"), doc]
    store = with_past(stored(rules, {"1": (doc,)}), "1", docs, [(), (y,), (y, tomb)])
    return Scenario([*ps, reader_at_rest(rules, *ps)], store)


def L4c(rules):
    """Delete and purge of a session in use; an append and a delete by others at once."""
    ps = [
        Process("P", one_after_the_other(deletes(rules), purges(rules)), stale=True),
        Process("B", gets_and_appends(rules, "b", key="k"), stale=True, crash=True),
        Process("D", deletes(rules), crash=True),
    ]
    return Scenario([*ps, reader_at_rest(rules, *ps)], two_events(rules), crashes=1)


def L5(rules):
    """The sessions of a user are erased while their documents and events lag."""
    z = event(1, "z", "b0")
    store = two_events(rules)
    other = stored(rules, {"2": (None,)})
    docs = None, session_document("b0"), session_document("b0", revision=1, shows="z")
    store = Frozen({**other, **store})
    store = with_past(store, "2", docs, [(), (z,)])
    ps = [
        Process("P", purges_user(rules, "1", "2"), stale=True),
        Process("A", appends(rules, holding(n=2, event_ids="yz"), "a", key="k")),
    ]
    return Scenario([*ps, reader_at_rest(rules, *ps, sids="12")], store)


def L5b(rules):
    """A user is erased while their session is deleted, restored and created again by others."""
    ps = [
        Process("P", purges_user(rules, "1"), stale=True),
        Process("X", one_after_the_other(deletes(rules), restores(rules)), crash=True),
        Process("C", creates(rules, "a1")),
    ]
    y = event(1, "y", "a0")
    doc = session_document("a0", revision=1, shows="y")
    store = with_past(stored(rules, {"1": (doc,)}), "1", [None, doc], [(), (y,)])
    return Scenario([*ps, reader_at_rest(rules, *ps)], store, crashes=1)


def L6(rules):
    """A delete whose reads may be old, while another deletes and restores the session."""
    ps = [
        Process("D", deletes(rules), stale=True),
        Process("X", one_after_the_other(deletes(rules), restores(rules)), crash=True),
    ]
    y = event(1, "y", "a0")
    doc = session_document("a0", revision=1, shows="y")
    store = with_past(stored(rules, {"1": (doc,)}), "1", [None, doc], [(), (y,)])
    return Scenario([*ps, reader_at_rest(rules, *ps)], store, crashes=1)


# ------------------------------------------------------------------ documents that are gone


def _lost_end(rules):
    """The document has seen two events; the second is gone (it changed nothing)."""
    doc = session_document("a0", revision=2, shows="y")
    return stored(rules, {"1": (doc, event(1, "y", "a0"))})


def D1(rules):
    """The end of the log is lost: the next event follows it, and is folded."""
    ps = [
        Process("B", gets_and_appends(rules, "b", key="k"), crash=True),
        Process("N", gets_and_appends(rules, "n")),
    ]
    return Scenario([*ps, reader_at_rest(rules, *ps)], _lost_end(rules), crashes=1)


def D2(rules):
    """Repair of a session whose end is lost, while another process continues it."""
    ps = [
        Process("X", repairs(rules), stale=True),
        Process("B", gets_and_appends(rules, "b")),
        Process("D", deletes(rules), after=("B",)),
    ]
    return Scenario([*ps, reader_at_rest(rules, *ps)], _lost_end(rules))


def D3(rules):
    """A hole in the middle, and the records after it lag: only the hole counts as one."""
    y, z = event(1, "y", "a0"), event(3, "z", "a0")
    doc = session_document("a0", revision=3, shows="yz")
    docs = [session_document("a0", revision=1, shows="y"), doc]
    store = with_past(stored(rules, {"1": (doc,)}), "1", docs, [(), (y,), (y, z)])
    ps = [
        Process("B", gets(rules, "1"), stale=True),
        Process("X", repairs(rules), stale=True),
        Process("Q", iterates(rules), stale=True),
    ]
    return Scenario([*ps, reader_at_rest(rules, *ps)], store)


def D3b(rules):
    """Repair closes a hole, so that no old object finds a free number below the revision."""
    ps = [
        Process("X", repairs(rules)),
        Process("A", appends(rules, holding(n=1, event_ids="y"), "a"), after=("X",)),
        Process("B", gets_and_appends(rules, "b"), after=("X",)),
    ]
    return Scenario([*ps, reader_at_rest(rules, *ps)], _lost_end(rules))


def D4(rules):
    """The body of a large event is lost: the document stays at the record before it."""
    large = event(1, "y", "a0").having(large=True)
    store = stored(rules, {"1": (session_document("a0"), large)}).having(body1=(EMPTY,))
    return Scenario([Process("X", lambda proc: project(rules, "1", "a0", 1))], store)
