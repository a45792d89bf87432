"""A few seconds of the soak; `make soak` runs it for minutes."""

from __future__ import annotations

import pytest

from tests.reliability.load.soak import Soak


@pytest.mark.parametrize("lag", [0.0, 0.3])
def test_nothing_is_lost_or_leaked_in_bad_weather(lag):
    figures = Soak(seconds=3, sessions=12, seed=7, storm_every=2.0, lag=lag).run()
    assert figures.sound, figures
    assert figures.events > 12
    assert sum(figures.faults.values()) > 5
    assert figures.faults.get("429 in a storm")
    assert bool(figures.late_reads) == bool(lag)
