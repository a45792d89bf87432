"""The scenarios by name, and the mutants: rules that must not be left out."""

from __future__ import annotations

from tests.model import lifecycle_scenarios, scenarios
from tests.model.situations import Scenario
from tests.model.steps import Rules

SCENARIOS = {
    name: build
    for module in (scenarios, lifecycle_scenarios)
    for name, build in vars(module).items()
    if name[0] in "SRP" and name[1:2].isdigit()
}

# Where nobody writes user or app state those documents are left out: fewer states, same races.
WITHOUT_SHARED_STATE = (
    *("S2b", "S2c", "S2d", "S5b", "S6a", "S6c", "S6d", "S6e", "S6f", "S8b", "S8c", "S9c", "S9d"),
    *("S12", "S12b"),
    *("R1", "R1b", "R4", "R5", "R6", "R7", "R7b", "R8", "R9", "R11", "R12"),
    *("P2", "P3", "P4", "P6", "P7", "P10", "P11", "P11b", "P11c", "P11d", "P12"),
)

# rule left out -> (scenario, invariant that breaks)
MUTANTS = {
    "append is a create": ("S1", "I2-two-winners"),
    "own event is recognised": ("S1", "I9-false-reject"),
    "conflict is read until it shows": ("S6a", "I9-false-reject"),
    "known event is not appended again": ("S5c", "I1-duplicate"),
    "rebase stops at a tombstone": ("R2b", "I6-append-across-delete"),
    "restored lifts the tombstone": ("R2b", "I6-false-notfound"),
    "stamps follow what was seen": ("S4k", "I8-delta-lost"),
    "merge by stamp": ("S4k", "I8-older-over-newer"),
    "If-Match on shared state": ("S9", "I8-older-over-newer"),
    "projection merges deltas of others": ("S4d", "I8-delta-lost"),
    "what does not fit is named in the document": ("S13", "I8-delta-lost"),
    "what did not fit is all read again": ("S13c", "I8-delta-lost"),
    "contiguous projection": ("S6e", "I3-fold"),
    "projection stops before a missing body": ("S12", "I3-fold"),
    "bodies are read until they show": ("S12b", "I3-fold"),
    "If-Match on projection": ("R9", "I12-transition"),
    "deleted document keeps its state": ("R2b", "I3-fold"),
    "snapshot covers the revision": ("S4b", "I11-torn-events"),
    "overlay of all events": ("S4b", "I11-torn-delta"),
    "get finishes a delete": ("S4d", "I8-delta-lost"),
    "get finishes a restore": ("R6", "I4-none"),
    "own incarnation is recognised": ("R11", "I9-create-false-exists"),
    "new incarnation for every attempt": ("S8c", "I9-create-twice"),
    "initial state waits in the document": ("S8", "I8-delta-lost"),
    "If-Match on create": ("P6", "I13-unerased"),
    "create finishes a delete": ("S2c", "I6-half-deleted"),
    "create finishes a purge": ("P6", "I13-unerased"),
    "own tombstone is recognised": ("S5b", "I9-delete-twice"),
    "delete confirms what it read": ("S6f", "I6-append-after-delete"),
    "delete finishes a restore": ("R6", "I6-get-after-delete"),
    "restore is announced first": ("R1b", "I7-append-to-nobody"),
    "If-Match on restore": ("R1", "I7-clobber"),
    "restore confirms what it read": ("R9", "I14-restore-noop"),
    "purge is announced first": ("P10", "I1-lost"),
    "purge leaves stubs": ("P6", "I6-append-after-tombstone"),
    "purge covers earlier incarnations": ("P6", "I13-unerased"),
    "purge reads the whole log": ("P7", "I13-unerased"),
    "purge confirms what it read": ("P7", "I13-unerased"),
    "a new session names what it replaced": ("P11", "I13-unerased"),
    "only what was replaced is erased": ("P11", "I1-lost"),
    "the mark of a replaced session goes last": ("P11", "I13-unerased"),
}


def scenario(name: str, left_out: str | None = None) -> Scenario:
    """A scenario, optionally with one rule of the protocol left out."""
    shared = () if name in WITHOUT_SHARED_STATE else ("user",)
    if name == "S1b":
        shared = ("user", "app")
    return SCENARIOS[name](Rules(shared, left_out))
