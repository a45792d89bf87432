"""The faults that differ most, at every request, a third of them where replicas lag.

`make crash-matrix` tries all of them, with lag and without.
"""

from __future__ import annotations

import pytest

from tests.reliability.crash_matrix import FAULTS, cases, run
from tests.reliability.operations import OPERATIONS

CHOSEN = {
    "dropped after",
    "outage",
    "killed before",
    "killed after",
    "cancelled before",
    "cancelled after, in a block",
}


# Of these every fifth case: they take many requests, and each fault meets every kind of them.
LONG = {"append of large values", "purge of a user with large values", "fork", "rebuild"}
LONG |= {"create with large values"}


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda each: each.name)
def test_no_failure_of_any_request_breaks_a_guarantee(operation):
    faults = [each for each in FAULTS if each.name in CHOSEN]
    chosen = list(cases(operation, faults, lag="split"))
    outcomes = [run(case) for case in (chosen[::5] if operation.name in LONG else chosen)]
    assert len(outcomes) >= 2 * len(CHOSEN)
    assert [each for each in outcomes if each.problem] == []
