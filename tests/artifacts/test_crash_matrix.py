"""Every request fails with one of two chosen faults. `make artifacts-matrix` tries all faults."""

from __future__ import annotations

import pytest

from tests.artifacts.crash_matrix import OPERATIONS, play, requests_of
from tests.reliability.matrix import FAULTS

CHOSEN = [each for each in FAULTS if each.name in ("dropped after", "killed after")]
LONG = {"purge", "sweep", "save large after a delete", "fork"}  # only in artifacts-matrix


@pytest.mark.parametrize(
    "operation", [each for each in OPERATIONS if each.name not in LONG], ids=lambda each: each.name
)
def test_no_failure_of_any_request_breaks_a_guarantee(operation):
    requests = requests_of(operation)
    found = [
        play(operation, CHOSEN[nth % 2], nth, request) for nth, request in enumerate(requests, 1)
    ]
    assert found
    assert [each for each in found if each.problem] == []
