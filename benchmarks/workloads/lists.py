"""Listing the sessions of a user."""

from __future__ import annotations

from benchmarks.cosmos import Cosmos
from benchmarks.lanes import lists, pages
from benchmarks.measure import Effort, Lane, compare
from benchmarks.results import Result, Target, ms, ratio
from benchmarks.stand import BLOCK, IN_MEMORY, OURS, POSTGRES, SQLITE, Stand


def user(label: str, count: int) -> str:
    """Peers may share a store."""
    return f"{label}: {count}"


async def list_sessions(stand: Stand) -> Result:
    """All sessions of a user with many sessions, and the first page of them."""
    few, many = (50, 500) if stand.quick else (500, 5000)
    result = Result(
        "list_sessions",
        f"List of {many:,} sessions of a user, and a page of 50, at 5 ms",
        ["", "× ours", "time"],
    )
    lanes: dict[str, Lane] = {}
    for label in (OURS, BLOCK, POSTGRES, SQLITE, IN_MEMORY):
        peer = await stand.peer(label)
        counts = (few, many) if label == OURS else (many,)
        for count in counts:
            sessions = [stand.fresh() for _ in range(count)]
            await peer.seed_sessions(user(label, count), sessions)
        lanes[label] = lists(peer, user(label, many), many)
    ours = await stand.peer(OURS)
    assert isinstance(ours, Cosmos)
    page = {count: f"{OURS}, 50 of {count:,}" for count in (few, many)}
    for count, name in page.items():
        lanes[name] = pages(ours, user(OURS, count), 50)
    timings = await compare(lanes, Effort(stand.effort.runs, 3))
    result.rows = [
        [label, ratio(timing.by(timings[OURS])), ms(timing.seconds)]
        for label, timing in timings.items()
    ]
    result.targets = [
        Target(
            f"list of {many:,} sessions, faster than {POSTGRES}",
            "≥",
            2.5,
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
