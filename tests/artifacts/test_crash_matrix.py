"""The faults that differ most, at every request. `make artifacts-matrix` tries all of them."""

from __future__ import annotations

import pytest

from tests.artifacts.crash_matrix import FAULTS, OPERATIONS, outcomes

CHOSEN = {"dropped after", "killed after"}
LONG = {"purge", "sweep", "save large after a delete", "fork"}  # only there


@pytest.mark.parametrize(
    "operation", [each for each in OPERATIONS if each.name not in LONG], ids=lambda each: each.name
)
def test_no_failure_of_any_request_breaks_a_guarantee(operation):
    found = list(outcomes(operation, [each for each in FAULTS if each.name in CHOSEN]))
    assert len(found) >= len(CHOSEN)
    assert [each for each in found if each.problem] == []
