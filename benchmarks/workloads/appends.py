"""One append, beside one bare create of the same bytes."""

from __future__ import annotations

from benchmarks.lanes import Append, creates
from benchmarks.measure import Effort, Lane, compare
from benchmarks.results import Plot, Result, Target, ms, ratio, size
from benchmarks.stand import BARE, IN_PROCESS, NETWORKED, OURS, ROUND_TRIP, THREAD, Stand

PAST = 4


async def one_append(stand: Stand, result: Result, scopes: tuple[str, ...]) -> tuple[float, int]:
    """Fills the table. How ours compares with a bare create, and the round trips it waited for."""
    effort = Effort(stand.effort.runs, 10 if stand.quick else 40)
    at: dict[float, dict[str, float]] = {}
    trips: dict[str, int] = {}
    sent: dict[str, str] = {}
    for round_trip in (ROUND_TRIP, 0.0):
        bare = await stand.bare(round_trip)
        lanes: dict[str, Lane] = {BARE: creates(bare, await stand.event_document())}
        traffic = await stand.count(bare.port, lanes[BARE])
        trips[BARE], sent[BARE] = traffic.round_trips, size(traffic.up)
        # Two services that change the same state in turn would get in each other's way.
        ours = (OURS, IN_PROCESS) if scopes else (OURS, THREAD, IN_PROCESS)
        for label in (*ours, *NETWORKED):
            peer = await stand.peer(label, round_trip)
            lane = Append(peer, await stand.session(peer, PAST), scopes)
            for _ in range(3):  # what only the first pays: connections, prepared statements
                await lane()
            traffic = await stand.count(peer.port, lane.append, peer.settle)
            if peer.port:
                trips[label], sent[label] = traffic.round_trips, size(traffic.up)
            lanes[label] = lane
        timings = await compare(lanes, effort)
        at[round_trip] = {label: timing.seconds for label, timing in timings.items()}
    limit = at[ROUND_TRIP][BARE]
    for label, seconds in at[ROUND_TRIP].items():
        zero = ms(at[0.0][label])
        result.rows.append(
            [
                label,
                ratio(seconds / limit),
                ms(seconds),
                zero,
                str(trips.get(label, "")),
                sent.get(label, ""),
            ]
        )
    result.plot = Plot(
        f"{result.title}, 5 ms a round trip",
        "ms",
        [(label, seconds * 1e3) for label, seconds in at[ROUND_TRIP].items()],
    )
    return at[ROUND_TRIP][OURS] / limit, trips[OURS]


COLUMNS = ["", "× bare create", "at 5 ms", "at 0 ms", "round trips", "sent"]


async def append_plain(stand: Stand) -> Result:
    """An event of 1 KB without state changes."""
    result = Result("append_plain", "Append of a plain event", COLUMNS)
    times, trips = await one_append(stand, result, ())
    result.targets = [
        Target("append of a plain event, by a bare create, at 5 ms", "≤", 1.10, times),
        Target("requests on the critical path of an append", "≤", 1, trips, ""),
    ]
    return result


async def append_deltas(stand: Stand) -> Result:
    """An event that changes session, user and app state."""
    result = Result("append_deltas", "Append with session, user and app state", COLUMNS)
    times, _ = await one_append(stand, result, ("", "user:", "app:"))
    result.targets = [
        Target("append with session, user and app deltas, by a bare create", "≤", 2.2, times)
    ]
    return result
