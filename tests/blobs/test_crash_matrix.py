"""Every request to Cosmos DB and to Blob Storage is interrupted."""

from __future__ import annotations

import pytest

from tests.artifacts.crash_matrix import OPERATIONS
from tests.blobs.crash_matrix import outcomes


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda each: each.name)
def test_no_failure_of_any_request_breaks_a_guarantee(operation, azurite):
    found = list(outcomes(operation, azurite))
    assert len(found) > 5
    assert [each for each in found if each.problem] == []
