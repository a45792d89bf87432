"""A few seconds of the soak; `make soak` runs it for minutes."""

from __future__ import annotations

from tests.reliability.load.soak import Soak


def test_nothing_is_lost_or_leaked_in_bad_weather():
    figures = Soak(seconds=4, sessions=12, seed=7, storm_every=2.0).run()
    assert figures.sound, figures
    assert figures.events > 12
    assert sum(figures.faults.values()) > 5
    assert figures.faults.get("429 in a storm")
