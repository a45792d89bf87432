"""Reading a session."""

from __future__ import annotations

from benchmarks.measure import Effort, Lane, clock, compare
from benchmarks.peers import Peer
from benchmarks.results import Result, ms, size
from benchmarks.stand import POSTGRES, REDIS, Stand
from benchmarks.workloads.turns import seeded


def gets(peer: Peer, session_id: str, recent: int | None = None) -> Lane:
    async def lane() -> float:
        start = clock()
        await peer.get(session_id, recent)
        return clock() - start

    return lane


async def get_cold(stand: Stand) -> Result:
    """All events of a session that this process has not seen."""
    result = Result(
        "get_cold",
        "Get of a session that this process has not seen, at 5 ms",
        ["service", "events", "time", "round trips", "bytes received"],
    )
    effort = Effort(stand.effort.runs, 3)
    for length in (100, 1000) if stand.quick else (100, 1000, 5000):
        lanes: dict[str, Lane] = {}
        traffics = {}
        for label in (POSTGRES, REDIS):
            peer = await stand.peer(label)
            [session_id] = await seeded(stand, peer, 1, length)
            lanes[label] = gets(peer, session_id)
            async with stand.watch(peer) as traffics[label]:
                await lanes[label]()
        timings = await compare(lanes, effort)
        for label, timing in timings.items():
            traffic = traffics[label]
            result.rows.append(
                [
                    label,
                    f"{length:,}",
                    ms(timing.seconds),
                    str(traffic.round_trips),
                    size(traffic.down),
                ]
            )
    return result
