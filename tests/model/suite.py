"""The scenarios by name, and the mutants: rules that must not be omitted."""

from __future__ import annotations

from tests.model import (
    clock_scenarios,
    dependant_scenarios,
    erasure_scenarios,
    first_event_scenarios,
    fork_scenarios,
    lag_scenarios,
    marker_scenarios,
    purge_scenarios,
    restore_scenarios,
    scenarios,
    session_value_scenarios,
    stale_scenarios,
    value_scenarios,
)
from tests.model.situations import Scenario
from tests.model.steps import Rules

MODULES = (
    scenarios,
    stale_scenarios,
    restore_scenarios,
    purge_scenarios,
    lag_scenarios,
    clock_scenarios,
    erasure_scenarios,
    fork_scenarios,
    value_scenarios,
    session_value_scenarios,
    first_event_scenarios,
    dependant_scenarios,
    marker_scenarios,
)
SCENARIOS = {
    name: build
    for module in MODULES
    for name, build in vars(module).items()
    if name[0] in "SRPLDCTEFVWNMA" and name[1:2].isdigit()
}

# Scenarios that write no user or app state omit those documents: fewer states, same races.
WITHOUT_SHARED_STATE = (
    *("S2b", "S2c", "S2d", "S5b", "S6a", "S6c", "S6d", "S6e", "S6f", "S8b", "S8c", "S9c", "S9d"),
    *("S12", "S12b"),
    *("R1", "R1b", "R4", "R5", "R6", "R7", "R7b", "R8", "R9", "R9b", "R11", "R12"),
    *("P2", "P3", "P4", "P6", "P7", "P10", "P11", "P11b", "P11c", "P11d", "P12"),
    *("L1b", "L2", "L2b", "L2c", "L2d", "L4", "L4b", "L5b", "L6", "D2", "D3", "D3b", "D4"),
    *("T1", "T2", "T3", "T4", "E3", "E3c", "E4", "E4b", "E4c"),
    *("F1", "F1b", "F2", "F2b", "F2c", "F3", "F3b", "F4", "F4b", "F5", "F6", "F7", "F7b"),
    *("N1", "N1b", "N2", "N3", "N4", "N4b", "N4c"),
    *("M1", "M1b", "M1c", "M2", "M2b", "M2c"),
)
WITH_BODIES = ("S12", "S12b", "D4", "E4", "E4b", "E4c")

# omitted rule -> (scenario, invariant that breaks)
EARLIER_MUTANTS = {
    "append is a create": ("S1", "I2-two-winners"),
    "own event is recognised": ("S1", "I9-false-reject"),
    "a conflict is read again until its record is visible": ("S6a", "I9-false-reject"),
    "known event is not appended again": ("S5c", "I1-duplicate"),
    "rebase stops at a tombstone": ("R2b", "I6-append-across-delete"),
    "restored lifts the tombstone": ("R2b", "I6-false-notfound"),
    "stamps follow what was seen": ("S4k", "I8-delta-lost"),
    "merge by stamp": ("S4k", "I8-older-over-newer"),
    "If-Match on shared state": ("S9", "I8-older-over-newer"),
    "projection merges deltas of others": ("S4d", "I8-delta-lost"),
    "contiguous projection": ("S6e", "I3-fold"),
    "projection stops before a missing body": ("D4", "I3-fold"),
    "If-Match on projection": ("R9", "I3-revision-back"),
    "deleted document keeps its state": ("R2b", "I3-fold"),
    "a proved hole counts as seen": ("D1", "I11-torn-state"),
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
    "restore confirms the log too": ("R9b", "I14-restore-noop"),
    "purge is announced first": ("P10", "I1-lost"),
    "purge leaves stubs": ("P6", "I6-append-after-tombstone"),
    "purge covers earlier incarnations": ("P6", "I13-unerased"),
    "purge confirms what it read": ("L4", "I13-unerased"),
    "a new session names what it replaced": ("P11", "I13-unerased"),
    "only what was replaced is erased": ("P11", "I1-lost"),
    "the mark of a replaced session is removed last": ("P11", "I13-unerased"),
}

# The same for lag, clocks and erasure: rules that the protocol lacked before.
MUTANTS_OF_LAG = {
    # What a read does not show is proved to be missing. Operations that must see everything probe
    # first.
    "a hole is proved by a probe": ("L1", "I11-torn-events"),
    "iterate probes first": ("L2", "I16-incomplete"),
    "iterate confirms what it read": ("L2", "I16-incomplete"),
    "the last page reaches the revision": ("D3", "I16-incomplete"),
    "a tombstone ends an iteration with an error": ("L2d", "I16-incomplete"),
    "repair probes first": ("L3", "I17-late"),
    "repair never lowers the revision": ("D2", "I3-revision-back"),
    "repair closes a proved hole": ("D3b", "I11-torn-state"),
    "projection confirms what it read": ("L6", "I6-delete-noop"),
    "purge_user probes first": ("L5", "I13-unerased"),
    "erasure probes first": ("L4", "I13-unerased"),
    "a missing body is proved by a probe": ("S12", "I11-torn-state"),
    # Clocks.
    "time is the server's": ("C1", "I8-delta-lost"),
    "a create takes its stamp after its reads": ("C2", "I4-delta"),
    "renewal of events probes first": ("T3", "I4-event"),
    # Erasure.
    "erased state leaves a stamp": ("E1", "I15-returned"),
    "the erasure is later than all it erased": ("E1c", "I15-returned"),
    "a stub keeps its stamp": ("E1c", "I15-returned"),
    "erasure goes by partition": ("E3", "I13-unerased"),
    "what may have an owner waits for the document": ("E3", "I1-lost"),
    "purge reads until nothing is left": ("T4", "I13-unerased"),
}

MUTANTS_OF_FORKS = {
    "the fork's document is created first": ("F5", "I1-lost"),
    "If-Match on a fork": ("F7", "I7-clobber"),
    "own fork is recognised": ("F1", "I18-denied"),
    "only what is forking is copied to": ("F1b", "I12-transition"),
    "If-Match on the end of a fork": ("F1", "I3-revision-back"),
    "a forker reads its document again": ("F2b", "I18-lost"),
    "a forker erases copies that are not used": ("F2b", "I13-unerased"),
    "a helper probes the source first": ("F6", "I18-denied"),
    "a fork ends with its source": ("F3b", "I18-fork"),
    "get finishes a fork": ("F3", "I4-none"),
    "delete finishes a fork": ("F3", "I6-get-after-delete"),
}

MUTANTS_OF_VALUES = {
    "a value is written before its name": ("V1", "V1-dangling"),
    "a value is removed after its name": ("V1", "V1-dangling"),
    "a value has a name of its own": ("V1c", "V1-dangling"),
    "If-Match on the state": ("V1", "V3-lost"),
    "a reader that misses a value reads again": ("V4", "V4-error"),
    "an erased generation is not continued": ("V2b", "V1-dangling"),
    "an erased state is swept a day later": ("V2c", "V2-unerased"),
    "uploads that are not used are removed": ("V3", "V2-unerased"),
    "an erasure removes older generations only": ("V3", "V1-dangling"),
    "an erasure also removes what nobody names": ("V2b", "V2-unerased"),
    "an upload that may have been named is not used again": ("W1", "V1-dangling"),
    "a projection removes its uploads at every end": ("W2", "V2-unerased"),
    "a purge leaves values of others": ("W3", "V1-dangling"),
    "a purge removes values of predecessors": ("W3c", "V2-unerased"),
    "a forker that misses a value reads again": ("W6", "V4-error"),
    "a forker removes its uploads at every end": ("W6", "V2-unerased"),
    "a creator removes uploads that are not used": ("W4", "V2-unerased"),
}

MUTANTS_OF_FIRST_EVENTS = {
    "a rebased event does not carry the initial state": ("N1b", "N2-carried"),
    "a session without events is new": ("N2", "N1-missing"),
    "marks do not change the state": ("N2", "N1-missing"),
    "a document that is not visible is confirmed": ("N3", "N1-missing"),
    "a rebuild reads the initial state": ("N4", "N4-lost"),
    "a rebuild probes first": ("N4b", "N4-lost"),
    "a rebuild takes the last creation": ("N4c", "N4-lost"),
}

MUTANTS_OF_DEPENDANTS = {
    "purging covers dependants": ("A1", "X1-left"),
    "dependants are probed first": ("A1b", "X1-left"),
    "the announcement is checked": ("A1", "X2-lost"),
    "the scan comes before the check": ("A1", "X2-lost"),
    "the announcement is confirmed": ("A1b", "X2-lost"),
    "If-Match on erasing": ("A1", "X2-lost"),
    "a creator completes a purge": ("A1", "X1-left"),
    "a new session begins without artifacts": ("A1", "X3-seen"),
    "clearing is announced": ("A3", "X4-incomplete"),
    "memories know their source": ("A5", "X2-lost"),
    "a fork confirms its source": ("A6", "X6-fork"),
}

MUTANTS_OF_MARKERS = {
    "an object without a marker proves itself": ("M1", "I2-two-winners"),
    "a refusal of an object is confirmed": ("M1c", "I5-false-stale"),
    "a marker of another process is checked": ("M2", "I7-append-to-nobody"),
    "a refusal of a marker is confirmed": ("M2c", "I6-false-notfound"),
}

MUTANTS = {
    **EARLIER_MUTANTS,
    **MUTANTS_OF_LAG,
    **MUTANTS_OF_FORKS,
    **MUTANTS_OF_VALUES,
    **MUTANTS_OF_FIRST_EVENTS,
    **MUTANTS_OF_DEPENDANTS,
    **MUTANTS_OF_MARKERS,
}

# What went wrong without any of these rules: symptom -> (scenario, invariant that breaks)
FINDINGS = {
    "a get shows the state of a revision with fewer events": ("L1", "I11-torn-events"),
    "iter_events ends without an error and is not complete": ("L2", "I16-incomplete"),
    "a purge erases nothing and marks the session purged": ("L4", "I13-unerased"),
    "purge_user misses sessions": ("L5", "I13-unerased"),
    "repair writes the revision back": ("L3", "I3-revision-back"),
    "one process ahead: a session in use expires": ("T1", "I4-none"),
    "all clocks slow: events of a session in use expire": ("T2", "I11-torn-events"),
    "a host a day ahead: keys that others write are lost": ("C1b", "I8-delta-lost"),
    "the same for keys given to create_session": ("C1", "I8-delta-lost"),
    "a merge brings erased state back": ("E1", "I15-returned"),
    "a session whose document expired cannot be erased": ("E3b", "I13-unerased"),
    "a body without owner outlives its purge": ("E4", "I13-unerased"),
}


def scenario(name: str, *left_out: str) -> Scenario:
    """A scenario, optionally without some rules of the protocol."""
    shared = () if name in WITHOUT_SHARED_STATE else ("user",)
    if name == "S1b":
        shared = ("user", "app")
    return SCENARIOS[name](Rules(shared, left_out, name in WITH_BODIES))
