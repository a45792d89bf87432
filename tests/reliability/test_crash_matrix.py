"""The whole crash matrix. `make crash-matrix` prints it as a table."""

from __future__ import annotations

import pytest

from tests.reliability.crash_matrix import FAULTS, cases, run
from tests.reliability.operations import OPERATIONS


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda each: each.name)
def test_no_failure_of_any_request_breaks_a_guarantee(operation):
    outcomes = [run(case) for case in cases(operation)]
    assert len(outcomes) >= 2 * len(FAULTS)
    assert [each for each in outcomes if each.problem] == []
