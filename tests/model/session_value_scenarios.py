"""Large values of a session (W…)."""

from __future__ import annotations

from functools import partial

from tests.model import session_values
from tests.model.checker import Process
from tests.model.session_values import change, session
from tests.model.situations import Scenario, one_after_the_other
from tests.model.store import Frozen
from tests.model.value_invariants import SessionValueInvariants
from tests.model.values import D


def value(incarnation, name, text):
    found = Frozen(kind="value", generation=incarnation, name=name, text=text)
    return ("v", incarnation, name), (1, found)


def event(seq, text):
    return Frozen(kind="text", seq=seq, incarnation="a0", text=text)


def log(*texts):
    return (Frozen({(i, "a0"): (1, event(i, t)) for i, t in enumerate(texts, 1)}),)


def appends(*records):
    def body(proc):
        left = records
        while left:
            yield ("create", "log1", (left[0].seq, "a0"), left[0])
            left = left[1:]

    return body


def stored(status="active", texts=("X",)):
    """A session that was created with the large value W, and events that are not projected yet."""
    doc = session("a0", status, text="W", ref=("a0", "w"))
    return Frozen(kept=(Frozen({D: (1, doc), **dict([value("a0", "w", "W")])}),), log1=log(*texts))


def at(function, rules, *arguments):
    return lambda proc: function(rules, proc, *arguments)


def case(processes, store, crash="", **options):
    invariants = partial(SessionValueInvariants, crash=tuple(crash))
    return Scenario(processes, store, invariants=invariants, **options)


def W1(rules):
    """Two projections while events set a value, another, and the first one again; a lost reply."""
    ps = [
        Process("A", at(session_values.project, rules), lost_reply=True),
        Process("E", appends(event(2, "Y"), event(3, "X"))),
        Process("B", at(session_values.project, rules)),
        Process("R", at(session_values.get, rules), after=("A", "B")),
    ]
    return case(ps, stored(), lost_replies=1)


def W2(rules):
    """A projection, a delete with a restore or a purge."""
    ps = [
        Process("A", at(session_values.project, rules), lost_reply=True),
        Process("D", change("active", "deleted")),
        Process("X", change("deleted", "active")),
        Process("P", at(session_values.purge, rules)),
    ]
    return case(ps, stored(), lost_replies=1)


def W3(rules):
    """A deleted session is purged twice, once slowly, and created again."""
    ps = [
        Process("P", at(session_values.purge, rules), crash=True),
        Process("Q", at(session_values.purge, rules)),
        Process("C", at(session_values.create, rules), lost_reply=True),
    ]
    return case(ps, stored("deleted"), lost_replies=1, crashes=1)


def W3b(rules):
    """Created again by a process that may crash, then deleted and purged."""
    ends = one_after_the_other(change("active", "deleted"), at(session_values.purge, rules))
    ps = [
        Process("C", at(session_values.create, rules), lost_reply=True, crash=True),
        Process("P", ends, after=("C",)),
    ]
    return case(ps, stored("deleted"), lost_replies=1, crashes=1, crash="C")


def W3c(rules):
    """Created again; then what is left of its predecessor is purged."""
    ps = [
        Process("A", at(session_values.project, rules)),
        Process("D", change("active", "deleted")),
        Process("C", at(session_values.create, rules), lost_reply=True, after=("D",), crash=True),
        Process("P", at(session_values.purge_predecessors, rules), after=("A", "C")),
    ]
    return case(ps, stored(), lost_replies=1, crashes=1, crash="C")


def W4(rules):
    """Two processes create the same session."""
    ps = [
        Process("B", at(session_values.create, rules), lost_reply=True),
        Process("C", at(session_values.create, rules)),
        Process("D", change("active", "deleted")),
        Process("R", at(session_values.get, rules)),
    ]
    return case(ps, Frozen(kept=(Frozen(),), log1=log()), lost_replies=1)


def W5(rules):
    """A slow projection, while the session is deleted, purged and created again."""
    ps = [
        Process("A", at(session_values.project, rules), lost_reply=True),
        Process("D", change("active", "deleted")),
        Process("P", at(session_values.purge, rules), after=("D",)),
        Process("C", at(session_values.create, rules), lost_reply=True, after=("D",)),
    ]
    return case(ps, stored(), lost_replies=1)


def W6(rules):
    """Two processes complete a fork, which is deleted and purged as soon as it exists."""
    ends = one_after_the_other(change("active", "deleted"), at(session_values.purge, rules))
    ps = [
        Process("F", at(session_values.complete_fork, rules), lost_reply=True),
        Process("G", at(session_values.complete_fork, rules)),
        Process("P", ends),
    ]
    return case(ps, stored("forking"), lost_replies=1)
