"""Real processes that are killed lose nothing and leave nothing half done."""

from __future__ import annotations

from tests.reliability.crash_processes import run


def test_killed_processes_lose_nothing():
    report = run(seed=1, kills=6, workers=3)
    assert report.kills == 6
    assert report.processes > 3
    assert report.told["stored"] > 0
