"""Listing the sessions of a user."""

from __future__ import annotations

from benchmarks.cosmos import Cosmos
from benchmarks.lanes import lists, pages
from benchmarks.measure import Effort, Lane, compare
from benchmarks.results import Result, Target, ms, ratio
from benchmarks.stand import OURS, POSTGRES, Stand


async def list_sessions(stand: Stand) -> Result:
    """All sessions of a user with many sessions, and the first page of them."""
    few, many = (50, 500) if stand.quick else (500, 5000)
    result = Result(
        "list_sessions",
        f"List of {many:,} sessions of a user, and a page of 50, at 5 ms",
        ["", "× ours", "time"],
    )
    lanes: dict[str, Lane] = {}
    for label in (OURS, POSTGRES):
        peer = await stand.peer(label)
        for count in (few, many):
            await peer.seed_sessions(f"user-of-{count}", [stand.fresh() for _ in range(count)])
        lanes[label] = lists(peer, f"user-of-{many}", many)
    ours = await stand.peer(OURS)
    assert isinstance(ours, Cosmos)
    page = {count: f"{OURS}, 50 of {count:,}" for count in (few, many)}
    for count, name in page.items():
        lanes[name] = pages(ours, f"user-of-{count}", 50)
    timings = await compare(lanes, Effort(stand.effort.runs, 3))
    result.rows = [
        [label, ratio(timing.by(timings[OURS])), ms(timing.seconds)]
        for label, timing in timings.items()
    ]
    result.targets = [
        Target(
            f"list of {many:,} sessions, faster than {POSTGRES}",
            "≥",
            1,
            timings[POSTGRES].by(timings[OURS]),
        ),
        Target(
            f"a page of 50 of {many:,} sessions, by one of {few:,}",
            "≤",
            1.5,
            timings[page[many]].by(timings[page[few]]),
        ),
    ]
    return result
