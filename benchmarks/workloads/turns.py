"""A turn of an agent: one get, then an append for each of its four events."""

from __future__ import annotations

from benchmarks.lanes import EVENTS_OF_A_TURN, Turn, creates
from benchmarks.measure import Effort, Lane, compare
from benchmarks.results import Plot, Result, Target, ms, ratio
from benchmarks.stand import (
    BARE_TURN,
    COUNTED,
    IN_MEMORY,
    IN_PROCESS,
    LOCAL,
    LOOKED,
    NETWORKED,
    OURS,
    POSTGRES,
    POSTGRES_NO_PING,
    REDIS,
    ROUND_TRIP,
    THREAD,
    UNSEEN,
    Stand,
)

HISTORY = 20


async def turn(stand: Stand) -> Result:
    """The everyday case: 20 events of history."""
    result = Result(
        "turn",
        "One turn: a get and 4 appends of 1 KB, after 20 events",
        ["", "× ours", "at 5 ms", "at 0 ms", "round trips"],
    )
    at: dict[float, dict[str, float]] = {}
    trips: dict[str, str] = {}
    for round_trip in (ROUND_TRIP, 0.0):
        bare = await stand.bare(round_trip)
        document = await stand.event_document()
        lanes: dict[str, Lane] = {BARE_TURN: creates(bare, document, 1 + EVENTS_OF_A_TURN)}
        trips[BARE_TURN] = str(1 + EVENTS_OF_A_TURN)
        for label in (OURS, UNSEEN, THREAD, IN_PROCESS, *NETWORKED, *LOCAL):
            peer = await stand.peer(OURS if label == UNSEEN else label, round_trip)
            sessions = [
                await stand.session(peer, HISTORY) for _ in range(stand.effort.total + COUNTED)
            ]
            if label in (OURS, THREAD, IN_PROCESS):
                for session_id in sessions:
                    await peer.get(session_id)
            lane = Turn(peer, iter(sessions))
            traffic = await stand.count(peer.port, lane.turn, peer.settle)
            trips[label] = str(traffic.round_trips) if peer.port else "none"
            lanes[label] = lane
        timings = await compare(lanes, stand.effort)
        at[round_trip] = {label: timing.seconds for label, timing in timings.items()}
    far = at[ROUND_TRIP]
    for label, seconds in far.items():
        result.rows.append(
            [label, ratio(seconds / far[OURS]), ms(seconds), ms(at[0.0][label]), trips[label]]
        )
    result.plot = Plot(
        "One turn at 5 ms a round trip",
        "ms",
        [(label, value * 1e3) for label, value in far.items()],
    )
    faster = "a turn, faster than "
    result.targets = [
        Target(f"{faster}{POSTGRES} on PostgreSQL", "≥", 7, far[POSTGRES] / far[OURS]),
        Target(
            f"{faster}the same without pool_pre_ping", "≥", 5, far[POSTGRES_NO_PING] / far[OURS]
        ),
        Target(f"{faster}{REDIS}", "≥", 2.5, far[REDIS] / far[OURS]),
        Target("a turn, by five bare requests", "≤", 1.15, far[OURS] / far[BARE_TURN]),
        Target(
            "a turn on a session not seen before, by five bare requests",
            "≤",
            1.15,
            far[UNSEEN] / far[BARE_TURN],
        ),
    ]
    return result


async def turn_long(stand: Stand) -> Result:
    """The conversation that never ends: 5,000 events of history, seen before."""
    length = 500 if stand.quick else 5000
    result = Result(
        "turn_long",
        f"One turn on a session of {length:,} events, seen before, at 5 ms",
        ["", "× ours", "at 5 ms"],
    )
    lanes: dict[str, Turn] = {}
    effort = Effort(stand.effort.runs, 2)
    for label in (OURS, OURS + LOOKED, POSTGRES, REDIS, IN_MEMORY):
        peer = await stand.peer(label.removesuffix(LOOKED))
        session_id = await stand.session(peer, length)
        lanes[label] = Turn(peer, iter([session_id] * effort.total), look=True)
    lanes[OURS].look = False
    timings = await compare(lanes, effort)
    ours = timings[OURS].seconds
    result.rows = [
        [label, ratio(timing.seconds / ours), ms(timing.seconds)]
        for label, timing in timings.items()
    ]
    result.plot = Plot(
        result.title, "ms", [(label, timing.seconds * 1e3) for label, timing in timings.items()]
    )
    result.targets = [
        Target(
            f"a turn on a session of {length:,} events, warm, faster than {IN_MEMORY}",
            "≥",
            1,
            timings[IN_MEMORY].seconds / ours,
        ),
        Target(
            "… when the agent looks at every event",
            "≥",
            1,
            timings[IN_MEMORY].seconds / timings[OURS + LOOKED].seconds,
        ),
    ]
    return result
