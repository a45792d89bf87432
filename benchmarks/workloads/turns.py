"""A turn of an agent: one get, then an append for each of its four events."""

from __future__ import annotations

from benchmarks.cosmos import Cosmos
from benchmarks.lanes import EVENTS_OF_A_TURN, Turn, creates
from benchmarks.measure import Effort, Lane, Timing, compare
from benchmarks.results import Plot, Result, Target, ms, ratio
from benchmarks.stand import (
    BARE,
    BARE_IN_PROCESS,
    BARE_TURN,
    BARE_TURN_IN_PROCESS,
    BLOCK,
    COUNTED,
    IN_MEMORY,
    IN_PROCESS,
    IN_PROCESS_BLOCK,
    LOCAL,
    LOOKED,
    NETWORKED,
    OURS,
    POSTGRES,
    POSTGRES_NO_PING,
    REDIS,
    ROUND_TRIP,
    SQLITE,
    UNSEEN,
    Stand,
)

HISTORY = 20
PEERS = (POSTGRES, REDIS, SQLITE, IN_MEMORY)


async def turn(stand: Stand) -> Result:
    """The common case: 20 events of history."""
    result = Result(
        "turn",
        "One turn: a get and 4 appends of 1 KB, after 20 events",
        ["", "× ours", "at 5 ms", "at 0 ms", "round trips"],
    )
    at: dict[float, dict[str, Timing]] = {}
    trips: dict[str, str] = {}
    requests = 1 + EVENTS_OF_A_TURN
    for round_trip in (0.0, ROUND_TRIP):  # the counts of the latter are kept
        lanes: dict[str, Lane] = {}
        for label, kind in ((BARE_TURN, BARE), (BARE_TURN_IN_PROCESS, BARE_IN_PROCESS)):
            bare = await stand.bare(kind, round_trip)
            lanes[label] = creates(bare, await stand.event_document(), requests)
            trips[label] = str(requests) if bare.port else "none"
        for label in (OURS, BLOCK, UNSEEN, IN_PROCESS, IN_PROCESS_BLOCK, *NETWORKED, *LOCAL):
            peer = await stand.peer(OURS if label == UNSEEN else label, round_trip)
            sessions = [
                await stand.session(peer, HISTORY) for _ in range(stand.effort.total + COUNTED)
            ]
            if label != UNSEEN and isinstance(peer, Cosmos):
                for session_id in sessions:
                    await peer.get(session_id)
            lane = Turn(peer, iter(sessions))
            traffic = await stand.count(peer.port, lane.turn, peer.drain)
            trips[label] = str(traffic.round_trips) if peer.port else "none"
            lanes[label] = lane
        at[round_trip] = await compare(lanes, stand.effort)
    far = at[ROUND_TRIP]
    for label, timing in far.items():
        near = ms(at[0.0][label].seconds)
        result.rows.append(
            [label, ratio(timing.by(far[OURS])), ms(timing.seconds), near, trips[label]]
        )
    result.plot = Plot(
        "One turn at 5 ms a round trip",
        "ms",
        [(label, timing.seconds * 1e3) for label, timing in far.items()],
    )
    for theirs, name, least in (
        (far[POSTGRES], f"{POSTGRES} on PostgreSQL", 7),
        (far[POSTGRES_NO_PING], "the same without pool_pre_ping", 5),
        (far[REDIS], REDIS, 2.5),
    ):
        result.targets += [
            Target(f"a turn, faster than {name}", "≥", least, theirs.by(far[OURS])),
            Target("… in process", "≥", least, theirs.by(far[IN_PROCESS])),
        ]
    five = "by five bare requests"
    result.targets += [
        Target(f"a turn, {five}", "≤", 1.08, far[OURS].by(far[BARE_TURN])),
        Target("… in process", "≤", 1.08, far[IN_PROCESS].by(far[BARE_TURN_IN_PROCESS])),
        Target(
            f"a turn on a session not seen before, {five}",
            "≤",
            1.15,
            far[UNSEEN].by(far[BARE_TURN]),
        ),
    ]
    return result


async def turn_long(stand: Stand) -> Result:
    """A very long conversation: 5,000 events of history, seen before."""
    length = 500 if stand.quick else 5000
    result = Result(
        "turn_long",
        f"One turn on a session of {length:,} events, seen before, at 5 ms",
        ["", "× ours", "at 5 ms"],
    )
    lanes: dict[str, Turn] = {}
    effort = Effort(stand.effort.runs, 2)
    for label in (OURS, OURS + LOOKED, BLOCK, BLOCK + LOOKED, *PEERS):
        peer = await stand.peer(label.removesuffix(LOOKED))
        session_id = await stand.session(peer, length)
        lanes[label] = Turn(peer, iter([session_id] * effort.total), look=True)
    lanes[OURS].look = lanes[BLOCK].look = False
    timings = await compare(lanes, effort)
    ours, in_memory = timings[OURS], timings[IN_MEMORY]
    result.rows = [
        [label, ratio(timing.by(ours)), ms(timing.seconds)] for label, timing in timings.items()
    ]
    result.plot = Plot(
        result.title, "ms", [(label, timing.seconds * 1e3) for label, timing in timings.items()]
    )
    result.targets = [
        Target(
            f"a turn on a session of {length:,} events, warm, faster than {IN_MEMORY}",
            "≥",
            1,
            in_memory.by(ours),
        ),
        Target(
            "… when the agent looks at every event",
            "≥",
            1,
            in_memory.by(timings[OURS + LOOKED]),
        ),
    ]
    return result
