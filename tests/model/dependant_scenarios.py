"""Memories and artifacts that live and die with their session (A…)."""

from __future__ import annotations

from functools import partial

from tests.model import dependants
from tests.model.checker import Process
from tests.model.dependant_invariants import DependantInvariants
from tests.model.situations import Scenario
from tests.model.store import EMPTY, Frozen


def stored(status="deleted", **fields):
    """A session with a file and a memory. Lagging replicas may show neither."""
    doc = Frozen(status=status, incarnation="a0").having(**fields)
    one = (1, Frozen(id="f", incarnation="a0"))
    return Frozen(
        session1=(Frozen({"s": (1, doc)}),),
        files=(EMPTY, Frozen({"f": one})),
        memories=(EMPTY, Frozen({"f": one})),
    )


def at(function, rules, *arguments):
    return lambda proc: function(rules, proc, *arguments)


def creates_and_saves(rules, *kinds):
    def body(proc):
        left = kinds
        done = yield from dependants.create(rules, proc, "a1")
        while done == "ok" and left:
            name = "f" if left[0] == "files" else "g"
            yield from dependants.save(rules, proc, left[0], "a1", name)
            name, left = None, left[1:]

    return body


def case(processes, store, late=False, **options):
    invariants = partial(DependantInvariants, late=late)
    return Scenario(processes, store, invariants=invariants, **options)


def A1(rules):
    """A purge that crashes, against a creator that saves; then another purge."""
    ps = [
        Process("P", at(dependants.purge, rules), crash=True, lost_reply=True),
        Process("C", creates_and_saves(rules, "files", "memories")),
    ]
    return case(ps, stored(), crashes=1, lost_replies=1)


def A1b(rules):
    """The same on replicas that lag."""
    ps = [
        Process("P", at(dependants.purge, rules), crash=True, stale=True),
        Process("C", creates_and_saves(rules, "files"), stale=True),
    ]
    return case(ps, stored(), crashes=1)


def A2(rules):
    """Two purges, and a creator that saves: the slower purge erases nothing of the new session."""
    ps = [
        Process("P", at(dependants.purge, rules)),
        Process("Q", at(dependants.purge, rules)),
        Process("C", creates_and_saves(rules, "files", "memories")),
    ]
    return case(ps, stored())


def A2b(rules):
    """The same with a creator in place of the second purge, on replicas that lag."""
    ps = [
        Process("P", at(dependants.purge, rules), stale=True),
        Process("D", at(dependants.create, rules, "a2"), crash=True),
        Process("C", creates_and_saves(rules, "files"), stale=True),
    ]
    return case(ps, stored(), crashes=1)


def A3(rules):
    """A creator that crashes, a restore, and another creator."""
    ps = [
        Process("C", creates_and_saves(rules, "files"), crash=True, stale=True),
        Process("X", at(dependants.restore, rules)),
        Process("D", at(dependants.create, rules, "a2"), after=("X",)),
    ]
    return case(ps, stored(), crashes=1)


def A4(rules):
    """An old process saves while the session is purged; a purge a day later finds it."""
    ps = [
        Process("P", at(dependants.purge, rules), crash=True),
        Process("S", at(dependants.save, rules, "files", "a0", "late")),
        Process("M", at(dependants.save, rules, "memories", "a0", "late")),
        Process("Q", at(dependants.purge, rules), after=("P", "S", "M")),
    ]
    return case(ps, stored(), late=True, crashes=1)


def A5(rules):
    """The predecessor's memories are erased, while the old and the new session add some."""
    ps = [
        Process("P", at(dependants.purge_replaced, rules), crash=True, stale=True),
        Process("M", at(dependants.save, rules, "memories", "a1", "g")),
        Process("Q", at(dependants.purge_replaced, rules), after=("P", "M")),
    ]
    store = stored("active", incarnation="a1", replaced=("a0",)).having(files=(EMPTY,))
    return case(ps, store, late=True, crashes=1)


def forks_while(rules, erases):
    """A session with a file is forked while it is erased. Another process completes the fork."""

    def deletes_and_erases(proc):
        yield from dependants.delete(rules, proc)
        yield from erases(proc)

    ps = [
        Process("F", at(dependants.fork, rules), crash=True, stale=True),
        Process("E", deletes_and_erases),
        Process("G", at(dependants.fork, rules), after=("F",)),
    ]
    return case(ps, stored("active").having(copies=(EMPTY,)), crashes=1)


def A6(rules):
    """A fork, while its source is deleted and purged."""
    return forks_while(rules, at(dependants.purge, rules))


def A6b(rules):
    """A fork, while its source is deleted and created again."""
    return forks_while(rules, at(dependants.create, rules, "a1"))
