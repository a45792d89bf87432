"""The first events of a session (N…)."""

from __future__ import annotations

from tests.model.checker import Process
from tests.model.first_events import (
    INITIAL,
    LogTellsEverything,
    Rebuilt,
    appends,
    deletes_and_restores,
    rebuilds,
    removes,
)
from tests.model.situations import (
    Scenario,
    creates,
    deletes,
    one_after_the_other,
    session_document,
)
from tests.model.store import EMPTY, Frozen

NEW = Frozen(incarnation="a0", n=0, new=True)


def new_session(*docs):
    doc = session_document("a0").having(state=INITIAL)
    return Frozen(session1=(*docs, Frozen({"s": (1, doc)})), log1=(EMPTY,))


def case(processes, store, **options):
    return Scenario(processes, store, invariants=LogTellsEverything, **options)


def N1(rules):
    """Two first appends, of which one is refused."""
    ps = [
        Process("A", appends(rules, "k", NEW), lost_reply=True, crash=True),
        Process("B", appends(rules, "k", NEW)),
        Process("C", appends(rules, "j")),
    ]
    return case(ps, new_session(), lost_replies=1, crashes=1)


def N1b(rules):
    """Two first appends, of which one continues after the other."""
    ps = [
        Process("A", appends(rules, "k", NEW, rebase=True), lost_reply=True, crash=True),
        Process("B", appends(rules, "k", NEW, rebase=True)),
        Process("C", appends(rules, "j")),
    ]
    return case(ps, new_session(), lost_replies=1, crashes=1)


def N2(rules):
    """A session without events is deleted and restored; then the first event is appended."""
    ps = [
        Process("D", deletes_and_restores(rules)),
        Process("A", appends(rules, "k", NEW)),
        Process("B", appends(rules, "k")),
        Process("C", appends(rules, "j"), after=("B",)),
    ]
    return case(ps, new_session())


def N3(rules):
    """A session object goes to another process, which reads from a replica that lags."""
    ps = [Process("A", appends(rules, "k", NEW), stale=True)]
    return case(ps, new_session(EMPTY))


def lost_and_found(rules, *others, stale=False):
    """The document is removed when the others have ended, and the session is rebuilt."""
    return [
        *others,
        Process("X", removes, after=tuple(p.name for p in others)),
        Process("Q", rebuilds(rules), stale=stale, after=("X",)),
    ]


def N4(rules):
    """Two processes append, of which one may crash; then the document is lost."""
    ps = lost_and_found(
        rules,
        Process("A", appends(rules, "k", NEW, rebase=True), lost_reply=True, crash=True),
        Process("B", appends(rules, "j", NEW, rebase=True)),
    )
    return Scenario(ps, new_session(), invariants=Rebuilt, lost_replies=1, crashes=1)


def N4b(rules):
    """A document that is lost, and a repair that reads from a replica that lags."""
    ps = lost_and_found(rules, Process("A", appends(rules, "k", NEW)), stale=True)
    return Scenario(ps, new_session(), invariants=Rebuilt)


def N4c(rules):
    """A session is deleted and created again, and continued; then the document is lost."""
    again = one_after_the_other(deletes(rules), creates(rules, "a1"), appends(rules, "j"))
    ps = lost_and_found(
        rules,
        Process("A", appends(rules, "k", NEW)),
        Process("C", again, after=("A",)),
    )
    return Scenario(ps, new_session(), invariants=Rebuilt)
