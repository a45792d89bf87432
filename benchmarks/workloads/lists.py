"""Listing the sessions of a user."""

from __future__ import annotations

from benchmarks.material import APP
from benchmarks.measure import Effort, Lane, clock, compare
from benchmarks.peers import Peer
from benchmarks.results import Result, ms
from benchmarks.stand import POSTGRES, Stand


def lists(peer: Peer, user_id: str, count: int) -> Lane:
    async def lane() -> float:
        start = clock()
        listed = await peer.service.list_sessions(app_name=APP, user_id=user_id)
        spent = clock() - start
        assert len(listed.sessions) == count
        return spent

    return lane


async def list_sessions(stand: Stand) -> Result:
    """All sessions of a user who has many."""
    count = 500 if stand.quick else 5000
    result = Result(
        "list_sessions", f"List of {count:,} sessions of a user, at 5 ms", ["service", "time"]
    )
    peer = await stand.peer(POSTGRES)
    await peer.seed_sessions("lister", [stand.fresh() for _ in range(count)])
    lanes = {POSTGRES: lists(peer, "lister", count)}
    timings = await compare(lanes, Effort(stand.effort.runs, 3))
    result.rows = [[label, ms(timing.seconds)] for label, timing in timings.items()]
    return result
