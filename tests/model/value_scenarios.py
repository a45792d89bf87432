"""Large values of a user's state (V…)."""

from __future__ import annotations

from functools import partial

from tests.model import values
from tests.model.checker import Process
from tests.model.situations import Scenario
from tests.model.store import Frozen
from tests.model.value_invariants import ValueInvariants


def kept(*entries, erased=0):
    """A state with these keys and large values."""
    named = {k: Frozen(stamp=0, writer="old", text=t, ref=(erased, "old" + k)) for k, t in entries}
    found = {values.D: (1, Frozen(erased=erased, keys=Frozen(named)))}
    for entry in named.values():
        value = Frozen(kind="value", generation=erased, name=entry.ref[1], text=entry.text)
        found["v", *entry.ref] = (1, value)
    return Frozen(kept=(Frozen(found),))


def writes(rules, key, text):
    return lambda proc: values.merge(rules, proc, key, text)


def erases(rules):
    return lambda proc: values.erase_state(rules, proc)


def sweeps(rules):
    return lambda proc: values.sweep_state(rules, proc)


def reads(rules):
    return lambda proc: values.read_state(rules, proc)


def case(processes, store, crash="", **options):
    """`crash`: the processes that may crash and leave an upload that nothing names."""
    invariants = partial(ValueInvariants, crash=tuple(crash))
    return Scenario(processes, store, invariants=invariants, **options)


def V1(rules):
    """Two writers of one key, and a reader; a lost reply."""
    ps = [
        Process("A", writes(rules, "k", "X"), lost_reply=True),
        Process("B", writes(rules, "k", "Y")),
        Process("R", reads(rules)),
    ]
    return case(ps, kept(("k", "W")), lost_replies=1)


def V1b(rules):
    """Two writers of the same value under two keys, of which one has it already."""
    ps = [
        Process("A", writes(rules, "k", "Y"), lost_reply=True),
        Process("B", writes(rules, "m", "X"), crash=True),
        Process("C", writes(rules, "n", "X")),
    ]
    return case(ps, kept(("k", "X")), crash="B", lost_replies=1, crashes=1)


def V1c(rules):
    """A value comes back under another key just when its first one is removed."""
    ps = [
        Process("A", writes(rules, "k", "X")),
        Process("B", writes(rules, "k", "Y"), after=("A",)),
        Process("C", writes(rules, "m", "X"), after=("A",)),
    ]
    return case(ps, kept(("k", "W")))


def V2(rules):
    """A writer and an erasure; the answers to both may be lost."""
    ps = [
        Process("A", writes(rules, "k", "X"), lost_reply=True),
        Process("B", writes(rules, "k", "Y")),
        Process("P", erases(rules), lost_reply=True),
    ]
    return case(ps, kept(("k", "W")), lost_replies=1)


def V2b(rules):
    """The writer may crash, and so may the eraser; another process erases again."""
    ps = [
        Process("A", writes(rules, "k", "X"), crash=True, lost_reply=True),
        Process("P", erases(rules), crash=True),
        Process("Q", erases(rules), after=("P",)),
        Process("R", reads(rules), after=("Q",)),
    ]
    return case(ps, kept(("k", "W")), crash="A", crashes=1, lost_replies=1)


def V2c(rules):
    """The writer may crash; a day later its uploads are swept."""
    ps = [
        Process("A", writes(rules, "k", "X"), crash=True),
        Process("P", erases(rules)),
        Process("S", sweeps(rules), after=("A", "P")),
        Process("B", writes(rules, "m", "Y"), after=("P",)),
    ]
    return case(ps, kept(("k", "W")), crashes=1)


def V3(rules):
    """Two erasures at once, one of them slow, and a writer."""
    ps = [
        Process("P", erases(rules)),
        Process("Q", erases(rules)),
        Process("A", writes(rules, "k", "X")),
    ]
    return case(ps, kept(("k", "W")))


def V4(rules):
    """A reader whose replica lags."""
    ps = [
        Process("A", writes(rules, "k", "X")),
        Process("B", writes(rules, "k", "Y"), after=("A",)),
        Process("R", reads(rules), stale=True),
    ]
    return case(ps, kept(("k", "W")))
