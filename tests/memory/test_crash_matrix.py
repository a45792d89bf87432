"""Every request of every operation fails with some of the faults of crash_matrix.py.

`make crash-matrix` tries all of them.
"""

from __future__ import annotations

import pytest

from tests.memory import crash_matrix
from tests.memory.crash_matrix import OPERATIONS


@pytest.fixture(autouse=True)
def small_documents(monkeypatch):
    """Smaller limits: the same requests, with less data."""
    monkeypatch.setattr("cosmosservice.memory.documents.INLINE_BYTES", 1_000)
    monkeypatch.setattr("cosmosservice.account.chunks.CHUNK_BYTES", 1_100)
    monkeypatch.setattr("cosmosservice.memory.documents.TOKENS_OF_A_DOCUMENT", 500)


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda operation: operation.name)
def test_no_failure_of_a_request_breaks_a_guarantee(operation):
    every = list(crash_matrix.cases([operation]))
    step = 1 if len(every) < 30 else 5 if len(every) < 150 else 11
    chosen = every[::step]  # the faults alternate; make crash-matrix runs all cases
    assert len(chosen) >= 8
    assert [each for each in map(crash_matrix.run, chosen) if each.problem] == []
