"""One append, compared with one bare create of the same bytes."""

from __future__ import annotations

from collections.abc import Mapping

from benchmarks.lanes import Append, creates
from benchmarks.measure import Effort, Lane, Timing, compare
from benchmarks.results import Plot, Result, Target, ms, ratio, size
from benchmarks.stand import (
    BARE,
    BARE_AS_IT_COMES,
    BARE_IN_PROCESS,
    BLOCK,
    IN_PROCESS,
    IN_PROCESS_BLOCK,
    NETWORKED,
    OURS,
    ROUND_TRIP,
    Stand,
)

PAST = 4
LOCALLY = (IN_PROCESS, IN_PROCESS_BLOCK, BARE_IN_PROCESS)


async def one_append(
    stand: Stand, result: Result, scopes: tuple[str, ...]
) -> tuple[dict[str, Timing], int]:
    """Fills the table. Returns the times at 5 ms, and the round trips that ours waited for."""
    effort = Effort(stand.effort.runs, 10 if stand.quick else 25)
    at: dict[float, dict[str, Timing]] = {}
    trips: dict[str, int] = {}
    sent: dict[str, str] = {}
    for round_trip in (0.0, ROUND_TRIP):  # the counts of the latter are kept
        lanes: dict[str, Lane] = {}
        for label in (BARE, BARE_AS_IT_COMES, BARE_IN_PROCESS):
            bare = await stand.bare(label, round_trip)
            lanes[label] = creates(bare, await stand.event_document())
            traffic = await stand.count(bare.port, lanes[label])
            if bare.port:
                trips[label], sent[label] = traffic.round_trips, size(traffic.up)
        # Two services that change the same state in turn would conflict.
        ours = (OURS, IN_PROCESS) if scopes else (OURS, BLOCK, IN_PROCESS, IN_PROCESS_BLOCK)
        for label in (*ours, *NETWORKED):
            peer = await stand.peer(label, round_trip)
            lane = Append(peer, await stand.session(peer, PAST), scopes)
            for _ in range(3):  # warm-up: connections, prepared statements
                await lane()
            traffic = await stand.count(peer.port, lane.append, peer.drain)
            if peer.port:
                trips[label], sent[label] = traffic.round_trips, size(traffic.up)
            lanes[label] = lane
        at[round_trip] = await compare(lanes, effort)
    far = at[ROUND_TRIP]
    for label, timing in far.items():
        limit = far[BARE_IN_PROCESS if label in LOCALLY else BARE]
        result.rows.append(
            [
                label,
                ratio(timing.by(limit)),
                ms(timing.seconds),
                ms(at[0.0][label].seconds),
                str(trips.get(label, "")),
                sent.get(label, ""),
            ]
        )
    result.plot = Plot(
        f"{result.title}, 5 ms a round trip",
        "ms",
        [(label, timing.seconds * 1e3) for label, timing in far.items()],
    )
    return far, trips[OURS]


def against_bare(promise: str, limit: float, far: Mapping[str, Timing]) -> list[Target]:
    """Over HTTP and in process, each compared with the bare SDK on the same path."""
    return [
        Target(promise, "≤", limit, far[OURS].by(far[BARE])),
        Target("… in process", "≤", limit, far[IN_PROCESS].by(far[BARE_IN_PROCESS])),
    ]


COLUMNS = ["", "× bare create", "at 5 ms", "at 0 ms", "round trips", "sent"]


async def append_plain(stand: Stand) -> Result:
    """An event of 1 KB without state changes."""
    result = Result("append_plain", "Append of a plain event", COLUMNS)
    far, trips = await one_append(stand, result, ())
    result.targets = [
        *against_bare("append of a plain event, by a bare create, at 5 ms", 1.10, far),
        Target("requests on the critical path of an append", "≤", 1, trips, ""),
    ]
    return result


async def append_deltas(stand: Stand) -> Result:
    """An event that changes session, user and app state."""
    result = Result("append_deltas", "Append with session, user and app state", COLUMNS)
    far, _ = await one_append(stand, result, ("", "user:", "app:"))
    result.targets = against_bare(
        "append with session, user and app deltas, by a bare create", 2.2, far
    )
    return result
