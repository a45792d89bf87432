"""Reading a session."""

from __future__ import annotations

from benchmarks.lanes import gets
from benchmarks.measure import Effort, Lane, compare
from benchmarks.proxy import Traffic
from benchmarks.results import Result, Target, ms, ratio, size
from benchmarks.stand import (
    BLOCK,
    LOOKED,
    OURS,
    POSTGRES,
    REDIS,
    SQLITE,
    UNSEEN,
    UNSEEN_BLOCK,
    Stand,
)

PAGE = 4 * 1024 * 1024  # the maximum that Cosmos DB puts into one answer


def row(label: str, length: int, times: float, seconds: float, traffic: Traffic) -> list[str]:
    return [
        label,
        f"{length:,}",
        ratio(times),
        ms(seconds),
        str(traffic.round_trips),
        size(traffic.down),
    ]


async def get_cold(stand: Stand) -> Result:
    """All events of a session that this process has not seen."""
    result = Result(
        "get_cold",
        "Get of a session that this process has not seen, at 5 ms",
        ["", "events", "× ours", "time", "round trips", "received"],
    )
    effort = Effort(stand.effort.runs, 3)
    for length in (100, 1000) if stand.quick else (100, 1000, 5000):
        lanes: dict[str, Lane] = {}
        traffic: dict[str, Traffic] = {}
        for label in (UNSEEN, UNSEEN_BLOCK, POSTGRES, REDIS, SQLITE):
            peer = await stand.peer(label)
            session_id = await stand.past(peer, length)
            lanes[label] = gets(peer, session_id)
            await lanes[label]()
            traffic[label] = await stand.count(peer.port, lanes[label])
            if label == UNSEEN:
                lanes[UNSEEN + LOOKED] = gets(peer, session_id, look=True)
                traffic[UNSEEN + LOOKED] = traffic[UNSEEN]
        timings = await compare(lanes, effort)
        ours = timings[UNSEEN]
        for label, timing in timings.items():
            result.rows.append(row(label, length, timing.by(ours), timing.seconds, traffic[label]))
        result.targets += [
            Target(
                f"get of {length:,} events, cold: round trips",
                "≤",
                1 + traffic[UNSEEN].down // PAGE,
                traffic[UNSEEN].round_trips,
                "",
            ),
            Target(
                f"get of {length:,} events, cold, faster than {POSTGRES}, every event looked at",
                "≥",
                2,
                timings[POSTGRES].by(timings[UNSEEN + LOOKED]),
            ),
            Target(
                f"get of {length:,} events, cold, faster than {REDIS}",
                "≥",
                1,
                timings[REDIS].by(ours),
            ),
        ]
    return result


async def growth(
    stand: Stand, result: Result, label: str, lengths: tuple[int, int], recent: int | None = None
) -> tuple[float, float]:
    """Gets of a short and of a long session, a row for each.

    Returns how many times as long the long one takes, and how many times as many bytes.
    """
    peer = await stand.peer(label)
    lanes: dict[str, Lane] = {}
    traffic: dict[str, Traffic] = {}
    for length in lengths:
        name = f"{length:,}"
        lanes[name] = gets(peer, await stand.past(peer, length), recent=recent)
        await lanes[name]()
        traffic[name] = await stand.count(peer.port, lanes[name])
    timings = await compare(lanes, Effort(stand.effort.runs, 9))
    short, long = lanes
    for length, name in zip(lengths, lanes, strict=True):
        timing = timings[name]
        times = timing.by(timings[short])
        result.rows.append(row(label, length, times, timing.seconds, traffic[name]))
    return timings[long].by(timings[short]), traffic[long].down / traffic[short].down


async def get_warm(stand: Stand) -> Result:
    """A long session that this process has seen: only new events are transferred."""
    result = Result(
        "get_warm",
        "Get of a session that this process has seen, at 5 ms",
        ["", "events", "× 50 events", "time", "round trips", "received"],
    )
    lengths = (50, 1000 if stand.quick else 5000)
    short, long = (f"{length:,}" for length in lengths)
    time, received = await growth(stand, result, OURS, lengths)
    await growth(stand, result, BLOCK, lengths)
    result.targets = [
        Target(f"get of {long} events, warm, by that of {short}", "≤", 2, time),
        Target(
            f"get of {long} events, warm: bytes received, by that of {short}", "≤", 1.1, received
        ),
    ]
    return result


async def get_recent(stand: Stand) -> Result:
    """The last 50 events of a short and of a long session, neither of them seen before."""
    result = Result(
        "get_recent",
        "Get of the 50 most recent events, not seen before, at 5 ms",
        ["", "events", "× 100 events", "time", "round trips", "received"],
    )
    lengths = (100, 1000 if stand.quick else 10_000)
    short, long = (f"{length:,}" for length in lengths)
    for label in (UNSEEN, UNSEEN_BLOCK, POSTGRES, REDIS):
        time, _ = await growth(stand, result, label, lengths, recent=50)
        if label == UNSEEN:
            result.targets = [
                Target(f"get of the last 50 of {long} events, by that of {short}", "≤", 1.2, time)
            ]
    return result
