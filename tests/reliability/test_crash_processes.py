"""Killing real processes loses nothing and leaves nothing half done."""

from __future__ import annotations

import pytest

from tests.reliability.crash_processes import run


@pytest.mark.parametrize("lag", [0.0, 0.3])
def test_killed_processes_lose_nothing(lag):
    report = run(seed=1, kills=4, workers=3, lag=lag)
    assert report.kills == 4
    assert report.processes > 3
    assert report.reported["stored"] > 0
