"""Every request fails with one of six chosen faults, a third of the cases under lag.

`make crash-matrix` tries all faults at every request, with lag and without.
"""

from __future__ import annotations

import pytest

from tests.reliability.crash_matrix import cases, run
from tests.reliability.matrix import FAULTS
from tests.reliability.operations import OPERATIONS

CHOSEN = [
    "dropped after",
    "outage",
    "killed before",
    "killed after",
    "cancelled before",
    "cancelled after, in a block",
]


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda each: each.name)
def test_no_failure_of_any_request_breaks_a_guarantee(operation):
    faults = [each for each in FAULTS if each.name in CHOSEN]
    every = list(cases(operation, faults, lag="split"))
    requests = every[-1].nth
    turns = len(CHOSEN)
    chosen = [case for case in every if (CHOSEN.index(case.fault) - case.nth) % turns == 0]
    assert {case.nth for case in chosen} == set(range(1, requests + 1))
    outcomes = [run(case) for case in chosen]
    assert [each for each in outcomes if each.problem] == []
