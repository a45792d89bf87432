"""Session objects from elsewhere (M…)."""

from __future__ import annotations

from tests.model.checker import Process
from tests.model.markers import append_given, append_unmarked
from tests.model.situations import (
    Scenario,
    appends,
    creates,
    deletes,
    fresh_session,
    gets_and_appends,
    holding,
    one_after_the_other,
    one_event,
    reader_at_rest,
    session_document,
    stored,
    two_events,
    with_past,
)

ONE = holding(n=1, event_ids="z")
TWO = holding(n=2, event_ids="yz")


def unmarked(rules, held, event_id):
    return lambda proc: append_unmarked(rules, proc, held, event_id)


def given(rules, held, event_id):
    return lambda proc: append_given(rules, proc, held, event_id)


def at_rest(rules, processes, store, **options):
    return Scenario([*processes, reader_at_rest(rules, *processes)], store, **options)


def M1(rules):
    """An object without a marker, and two writers."""
    ps = [
        Process("A", unmarked(rules, ONE, "a"), lost_reply=True, crash=True),
        Process("B", appends(rules, ONE, "b")),
        Process("C", gets_and_appends(rules, "c")),
    ]
    return at_rest(rules, ps, one_event(rules), lost_replies=1, crashes=1)


def M1b(rules):
    """As M1, for an object without events; the session is deleted."""
    ps = [
        Process("A", unmarked(rules, holding(), "a"), lost_reply=True),
        Process("B", appends(rules, holding(), "b")),
        Process("D", deletes(rules)),
    ]
    return at_rest(rules, ps, fresh_session(rules), lost_replies=1)


def M1c(rules):
    """An object without a marker in a process whose replica lags."""
    ps = [
        Process("A", unmarked(rules, TWO, "a"), stale=True),
        Process("B", appends(rules, TWO, "b")),
    ]
    return at_rest(rules, ps, two_events(rules))


def M2(rules):
    """An object of another store: there, the session has another incarnation."""
    ps = [
        Process("A", given(rules, holding(incarnation="x0"), "a")),
        Process("B", appends(rules, holding(), "b")),
    ]
    return at_rest(rules, ps, fresh_session(rules))


def M2b(rules):
    """An object of another process, whose session is deleted and created again."""
    ps = [
        Process("A", given(rules, holding(), "a"), lost_reply=True, stale=True),
        Process("B", one_after_the_other(deletes(rules), creates(rules, "a1"))),
    ]
    return at_rest(rules, ps, fresh_session(rules), lost_replies=1)


def M2c(rules):
    """An object of another process that has just created the session; the replica lags."""
    ps = [Process("A", given(rules, holding(), "a"), stale=True)]
    docs = [None, session_document("a0")]
    store = with_past(stored(rules, {"1": (docs[-1],)}), "1", docs, [()])
    return at_rest(rules, ps, store)
