"""Stale reads while a session is created, appended to and deleted (S6), and large events (S12)."""

from __future__ import annotations

from tests.model.checker import Process
from tests.model.situations import (
    Scenario,
    appends,
    creates,
    deletes,
    event,
    fresh_session,
    gets,
    gets_and_appends,
    holding,
    log_snapshot,
    one_after_the_other,
    one_event,
    reader_at_rest,
    recreated_session,
    session_document,
    tombstone,
)
from tests.model.steps import project, record
from tests.model.store import EMPTY, Frozen


def S6(rules, token_on_error=True):
    """Stale reads everywhere: A appends twice, B reads and appends; one crash."""
    ps = [
        Process("A", appends(rules, holding(), "a", "b", key="k"), stale=True, crash=True),
        Process("B", gets_and_appends(rules, "c", key="k"), stale=True, crash=True),
    ]
    store = fresh_session(rules, shared_documents=True)
    return Scenario(
        [*ps, reader_at_rest(rules, *ps)], store, crashes=1, token_on_error=token_on_error
    )


def S6n(rules):
    """As S6; an error does not advance the session token."""
    return S6(rules, token_on_error=False)


def S6a(rules):
    """A stale read after a conflict with the process's own event, whose reply was lost."""
    a = Process("A", appends(rules, holding(), "a"), stale=True, lost_reply=True)
    return Scenario(
        [a, reader_at_rest(rules, a)], fresh_session(rules), lost_replies=1, token_on_error=False
    )


def S6b(rules):
    """A stale reader repairs while events come in."""
    ps = [
        Process("A", appends(rules, holding(), "a", "b", key="k"), crash=True),
        Process("Q", gets(rules, "1"), stale=True),
    ]
    return Scenario(
        [*ps, reader_at_rest(rules, *ps)], fresh_session(rules), crashes=1, token_on_error=False
    )


def S6c(rules):
    """A stale get across delete and re-creation, then an append."""
    steps = deletes(rules), creates(rules, "a1"), gets_and_appends(rules, "n")
    ps = [
        Process("D", one_after_the_other(*steps)),
        Process("B", gets_and_appends(rules, "b", repair=True), stale=True),
    ]
    return Scenario([*ps, reader_at_rest(rules, *ps)], one_event(rules), token_on_error=False)


def S6d(rules):
    """A stale deleter and a stale creator of a session that was re-created."""
    store = recreated_session(rules)
    past_log = log_snapshot(event(1, "z", "a0"))
    past_doc = Frozen({"s": (0, session_document("a0", revision=1, shows="z"))})
    store = store.having(log1=(past_log, *store.log1), session1=(past_doc, *store.session1))
    ps = [
        Process("D", deletes(rules), stale=True),
        Process("A", appends(rules, holding(incarnation="a1", n=2), "a")),
        Process("C", creates(rules, "a2"), stale=True),
    ]
    return Scenario(
        [*ps, reader_at_rest(rules, *ps)],
        store,
        token_on_error=False,
        residues=frozenset({"I6-half-deleted"}),
    )


def S6e(rules):
    """A client that appended nothing itself projects, from a stale query."""

    def projects(proc):
        own = record("event", "a0", 2, "b", 2, Frozen({"b": 1}))
        yield from project(rules, "1", "a0", 2, (own,))

    a = Process("A", appends(rules, holding(), "a", "b", project=False))
    x = Process("X", projects, stale=True, after=("A",))
    return Scenario([a, x, reader_at_rest(rules, a, x)], fresh_session(rules), token_on_error=False)


def S12(rules):
    """A large event, a client that does not see its body yet and projects, and another."""

    def projects(proc):
        yield from project(rules, "1", "a0", 2)

    a = Process("A", appends(rules, holding(), "a", "b", project=False, large=True))
    x = Process("X", projects, stale=True)
    y = Process("Y", gets(rules, "1"), stale=True)
    store = fresh_session(rules).having(body1=(EMPTY,))
    return Scenario([a, x, y, reader_at_rest(rules, a, x, y)], store)


def S12b(rules):
    """A large event, and a deleter that does not see its body yet."""
    a = Process("A", appends(rules, holding(), "a", large=True), crash=True)
    d = Process("D", deletes(rules), stale=True)
    store = fresh_session(rules).having(body1=(EMPTY,))
    return Scenario([a, d, reader_at_rest(rules, a, d)], store, crashes=1)


def S6f(rules):
    """A stale deleter and creator; the document's past: missing, active, deleted, re-created."""
    store = recreated_session(rules)
    z, tomb = event(1, "z", "a0"), tombstone(2, "a0")
    docs = (
        session_document("a0"),
        session_document("a0", "deleted", revision=2, shows="z"),
        session_document("a1", first_seq=3, revision=2, replaced=1),
    )
    store = store.having(
        log1=(EMPTY, log_snapshot(z), log_snapshot(z, tomb)),
        session1=(EMPTY, *(Frozen({"s": (v, doc)}) for v, doc in enumerate(docs, 1))),
    )
    ps = [
        Process("D", deletes(rules), stale=True),
        Process("A", appends(rules, holding(incarnation="a1", n=2), "a")),
        Process("C", creates(rules, "a2"), stale=True),
    ]
    return Scenario(
        [*ps, reader_at_rest(rules, *ps)], store, residues=frozenset({"I6-half-deleted"})
    )


def S6g(rules):
    """A clock that is slow and a cached user document that is stale: the accepted residue."""
    ps = [
        Process("A", appends(rules, holding(), "a", key="k"), clock=10),
        Process("B", gets_and_appends(rules, "b", key="k", sid="2"), clock=5),
    ]
    store = fresh_session(rules, "1", "2")
    residues = frozenset({"I8-delta-lost", "I4-delta", "I11-torn-delta"})
    return Scenario([*ps, reader_at_rest(rules, *ps, sids="12")], store, residues=residues)
