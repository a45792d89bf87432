"""A turn of an agent: one get, then an append for each of its four events."""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks.material import event, history
from benchmarks.measure import Effort, Lane, clock, compare
from benchmarks.peers import Peer
from benchmarks.results import Plot, Result, ms
from benchmarks.stand import IN_MEMORY, LOCAL, NETWORKED, REDIS, ROUND_TRIP, Stand

EVENTS_OF_A_TURN = 4


def turns(peer: Peer, sessions: Iterator[str]) -> Lane:
    """Each sample is a turn on the next of the sessions."""

    async def lane() -> float:
        session_id = next(sessions)
        events = [event() for _ in range(EVENTS_OF_A_TURN)]
        start = clock()
        session = await peer.get(session_id)
        for each in events:
            await peer.service.append_event(session, each)
        spent = clock() - start
        await peer.settle()
        return spent

    return lane


async def seeded(stand: Stand, peer: Peer, count: int, length: int) -> list[str]:
    sessions = [stand.fresh() for _ in range(count)]
    for session_id in sessions:
        await peer.seed(session_id, history(length))
    return sessions


async def turn(stand: Stand) -> Result:
    """The everyday case: 20 events of history."""
    result = Result(
        "turn",
        "One turn: a get and 4 appends of 1 KB, after 20 events",
        ["service", "at 5 ms", "at 0 ms", "round trips"],
    )
    at: dict[float, dict[str, float]] = {}
    trips: dict[str, str] = {}
    for round_trip in (ROUND_TRIP, 0.0):
        lanes: dict[str, Lane] = {}
        for label in (*NETWORKED, *LOCAL):
            peer = await stand.peer(label, round_trip)
            sessions = iter(await seeded(stand, peer, stand.effort.total + 1, 20))
            lanes[label] = turns(peer, sessions)
            async with stand.watch(peer) as traffic:
                await lanes[label]()
            trips[label] = str(traffic.round_trips) if peer.port else "none"
        timings = await compare(lanes, stand.effort)
        at[round_trip] = {label: timing.seconds for label, timing in timings.items()}
    for label, seconds in at[ROUND_TRIP].items():
        result.rows.append([label, ms(seconds), ms(at[0.0][label]), trips[label]])
    result.plot = Plot(
        "One turn at 5 ms a round trip",
        "ms",
        [(label, seconds * 1e3) for label, seconds in at[ROUND_TRIP].items()],
    )
    return result


async def turn_long(stand: Stand) -> Result:
    """The conversation that never ends: 5,000 events of history, seen before."""
    length = 500 if stand.quick else 5000
    result = Result(
        "turn_long",
        f"One turn on a session of {length:,} events, seen before, at 5 ms",
        ["service", "at 5 ms"],
    )
    lanes: dict[str, Lane] = {}
    effort = Effort(stand.effort.runs, 1)
    for label in (*NETWORKED[:1], REDIS, IN_MEMORY):
        peer = await stand.peer(label)
        [session_id] = await seeded(stand, peer, 1, length)
        lanes[label] = turns(peer, iter([session_id] * effort.total))
    timings = await compare(lanes, effort)
    result.rows = [[label, ms(timing.seconds)] for label, timing in timings.items()]
    result.plot = Plot(
        result.title, "ms", [(label, timing.seconds * 1e3) for label, timing in timings.items()]
    )
    return result
