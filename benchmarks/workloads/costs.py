"""What an append costs besides time: CPU and request units, and how they grow."""

from __future__ import annotations

import asyncio
import operator
import statistics
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from typing import Any

from azure.core import MatchConditions

from benchmarks.cosmos import EVERYTHING, Bare, InProcess, OverHttp
from benchmarks.lanes import EVENTS_OF_A_TURN, Append, Turn
from benchmarks.material import event
from benchmarks.measure import Effort, Lane, Timing, clock, compare, freeze, uncollected
from benchmarks.peers import Peer
from benchmarks.results import Plot, Result, Target, ms, ratio, size
from benchmarks.stand import (
    BARE,
    BARE_IN_PROCESS,
    BLOCK,
    COUNTED,
    IN_PROCESS,
    IN_PROCESS_BLOCK,
    OURS,
    Stand,
)
from cosmosservice.sessions.store.documents import EVENTS_CONTAINER, SESSIONS_CONTAINER

SESSIONS = 64
Work = Callable[[], Awaitable[object]]


async def both(stand: Stand) -> tuple[InProcess, Bare]:
    """Our service and the bare SDK on the same emulator, in this process."""
    peer = await stand.peer(IN_PROCESS, 0)
    assert isinstance(peer, InProcess)
    return peer, await stand.bare(BARE_IN_PROCESS, 0)


async def throughput(stand: Stand) -> Result:
    """64 sessions at once in one process."""
    each = 5
    result = Result(
        "throughput",
        f"Throughput: {SESSIONS} sessions at once in one process, in-process transport",
        ["", "× bare creates", "a second"],
    )
    peer, bare = await both(stand)
    in_block = await stand.peer(IN_PROCESS_BLOCK, 0)
    document = await stand.event_document()

    async def creates() -> None:
        for _ in range(each):
            await bare.create(dict(document))

    async def bare_lane() -> float:
        start = clock()
        await asyncio.gather(*(creates() for _ in range(SESSIONS)))
        return clock() - start

    caught_up: list[float] = []
    lanes = {
        BARE: bare_lane,
        OURS: await many_appends(stand, peer, each, caught_up),
        BLOCK: await many_appends(stand, in_block, each, []),
    }
    # Many small portions: the speed of a processor varies.
    timings = await compare(lanes, Effort(stand.effort.runs, 3 if stand.quick else 15))
    timings[f"{OURS}, until the session documents have followed"] = Timing([caught_up[1:]])
    limit = timings[BARE]
    for label, timing in timings.items():
        rate = SESSIONS * each / timing.seconds
        result.rows.append([label, ratio(limit.by(timing)), f"{rate:,.0f}"])
    result.targets = [
        Target("throughput, by bare creates", "≥", 0.85, limit.by(timings[OURS])),
        Target("… in a block", "≥", 0.92, limit.by(timings[BLOCK])),
    ]
    return result


async def many_appends(stand: Stand, peer: Peer, each: int, caught_up: list[float]) -> Lane:
    """This many appends to each of the sessions, concurrently."""
    sessions = [await peer.get(await stand.session(peer, 1)) for _ in range(SESSIONS)]

    async def appends(session: Any, events: list[Any]) -> None:
        for new in events:
            await peer.service.append_event(session, new)

    async def lane() -> float:
        new = [[event() for _ in range(each)] for _ in sessions]
        freeze()
        start = clock()
        await asyncio.gather(*(appends(*pair) for pair in zip(sessions, new, strict=True)))
        spent = clock() - start
        await peer.drain()
        caught_up.append(clock() - start)
        return spent

    return lane


async def cpu_of(work: Work, times: int) -> float:
    """CPU seconds of this process, all threads, per call."""
    spent = 0.0
    for _ in range(times):
        # Made just before, like the events of ADK's runner. An event from a long list would first
        # have to be fetched from memory.
        ready = work()
        start = time.process_time()
        await ready
        spent += time.process_time() - start
    return spent / times


async def cpu(stand: Stand) -> Result:
    """The cost of the service's own code, without the SDK's work for the same requests."""
    rounds, times = (20 if stand.quick else 80), 10
    result = Result(
        "cpu", "Processor time of an append, in-process transport", ["", "each", "an append"]
    )
    peer, bare = await both(stand)
    document = await stand.event_document()
    session_id = await stand.session(peer, 1)
    [kept] = [
        found for found in await peer.stored("sessions") if found.get("session_id") == session_id
    ]
    etag = (await bare.sessions.upsert_item(kept))["_etag"]

    async def create() -> None:
        await bare.create(document)

    async def replace() -> None:
        nonlocal etag

        def hook(headers: Any, _: object) -> None:
            nonlocal etag
            etag = headers["etag"]

        await bare.sessions.replace_item(
            kept["id"],
            kept,
            etag=etag,
            match_condition=MatchConditions.IfNotModified,
            no_response=True,
            response_hook=hook,
        )

    async def read() -> None:
        await bare.sessions.read_item(kept["id"], kept["user_id"])

    async def query() -> None:
        text = "SELECT * FROM c WHERE c.id >= @first ORDER BY c.id"
        named: list[dict[str, object]] = [{"name": "@first", "value": "~"}]
        found = bare.events.query_items(text, parameters=named, partition_key="none")
        assert [item async for item in found] == []

    session = await peer.get(session_id)
    in_block = await stand.peer(IN_PROCESS_BLOCK, 0)
    assert isinstance(in_block, InProcess)
    of_block = await in_block.get(await stand.session(in_block, 1))

    # The lanes alternate in small portions: the speed of a processor varies.
    sdk: dict[str, Work] = {"create": create, "replace": replace, "read": read, "query": query}
    lanes: dict[str, Work] = sdk | {
        "append": lambda: peer.service.append_event(session, event()),
        "in a block": lambda: in_block.service.append_event(of_block, event()),
    }
    for work in lanes.values():
        await cpu_of(work, times)
    for each in (peer, in_block):
        await each.drain()
        each.charges.clear()
    seen: dict[str, list[float]] = {name: [] for name in lanes}
    with uncollected():
        for _ in range(rounds):
            for name, work in lanes.items():
                seen[name].append(await cpu_of(work, times))
    await peer.drain()
    await in_block.drain()
    costs = {name: statistics.median(of_one) for name, of_one in seen.items()}
    sent = Counter(charge.request for charge in in_block.charges)
    sent_each = {name: sent[name] / (rounds * times) for name in sdk}
    for name in sdk:
        if sent_each[name]:
            label = f"the SDK's {name}, {sent_each[name]:.2f} for each append"
            result.rows.append([label, ms(costs[name]), ms(costs[name] * sent_each[name])])
    # Differences of adjacent samples, round by round.
    own = statistics.median(
        seen["in a block"][number] - sum(seen[name][number] * sent_each[name] for name in sdk)
        for number in range(rounds)
    )
    hop = statistics.median(map(operator.sub, seen["append"], seen["in a block"]))
    result.rows.append(["the service's own", "", ms(own)])
    result.rows.append(["the hop to the I/O thread and back, without a block", "", ms(hop)])
    result.rows.append(["all, without a block", "", ms(costs["append"])])
    result.targets = [
        Target("CPU that the hop to the I/O thread adds to an append", "≤", 0.12, hop * 1e3, "ms"),
        Target("CPU of an append beyond the SDK's, in a block", "≤", 0.12, own * 1e3, "ms"),
    ]
    return result


async def request_units(stand: Stand) -> Result:
    """A turn of four 1 KB events, including the get, on a session that this process has seen."""
    result = Result(
        "request_units",
        "Request units of one turn: a get and 4 appends of 1 KB, warm (the emulator's model)",
        ["", "× ours", "RU"],
    )
    peer, bare = await both(stand)
    session_id = await stand.session(peer, 20)
    lane = Turn(peer, iter([session_id] * 10))
    await lane()
    turns = []
    for _ in range(5):
        peer.emulator.clear_requests()
        await lane()
        requests = list(peer.emulator.requests)
        units = sum(request.charge for request in requests)
        turns.append((units, Counter(request.operation for request in requests)))
    turns.sort(key=lambda turn: turn[0])
    ours, counted = turns[len(turns) // 2]
    [kept] = [
        found for found in await peer.stored("sessions") if found.get("session_id") == session_id
    ]
    eager = {
        "the same documents, the session replaced at every append": await eager_turn(
            bare, await stand.event_document(), kept, None
        ),
        "… and the default indexing policy": await eager_turn(
            bare, await stand.event_document(), kept, EVERYTHING
        ),
    }
    made = ", ".join(f"{count} {name}" for name, count in sorted(counted.items()))
    result.rows = [[f"{OURS} ({made})", ratio(1), f"{ours:.1f}"]]
    result.rows += [[label, ratio(units / ours), f"{units:.1f}"] for label, units in eager.items()]
    result.plot = Plot(
        "Request units of one turn", "RU", [(OURS, ours), *((k, v) for k, v in eager.items())]
    )
    result.targets = [Target("request units of a turn, the get included", "≤", 34, ours, "RU")]
    return result


async def eager_turn(
    bare: Bare, document: dict[str, Any], kept: dict[str, Any], policy: dict[str, Any] | None
) -> float:
    """The same turn without a log: each append also replaces the session."""
    suffix = "_all" if policy else ""
    events = await bare.container(f"events{suffix}", EVENTS_CONTAINER, policy)
    sessions = await bare.container(f"sessions{suffix}", SESSIONS_CONTAINER, policy)
    await sessions.upsert_item(kept)
    bare.units = 0.0
    for _ in range(3):  # session, user and app document
        await sessions.read_item(kept["id"], kept["user_id"], response_hook=bare.charge)
    found = events.query_items(
        "SELECT * FROM c WHERE c.id >= @first ORDER BY c.id",
        parameters=[{"name": "@first", "value": "~"}],
        partition_key=document["session_id"],
        response_hook=bare.charge,
    )
    assert [item async for item in found] == []
    for _ in range(EVENTS_OF_A_TURN):
        await bare.create(document, events)
        await sessions.replace_item(kept["id"], kept, response_hook=bare.charge)
    return bare.units


async def growth(stand: Stand) -> Result:
    """An append to a new session, compared with one to a long session."""
    lengths = (0, 500 if stand.quick else 5000)
    result = Result(
        "growth",
        "Append of 1 KB to a new and to a long session, at 5 ms",
        ["", "× new", "time", "RU", "sent"],
    )
    peer = await stand.peer(OURS)
    assert isinstance(peer, OverHttp)
    lanes: dict[str, Lane] = {}
    units: dict[str, float] = {}
    sent: dict[str, int] = {}
    for length in lengths:
        name = f"{length:,} events"
        session_id = stand.fresh()
        if length:
            session_id = await stand.session(peer, length)
        else:
            await peer.create(session_id)
        lane = Append(peer, session_id)
        for _ in range(3):
            await lane()
        peer.spent()
        traffic = await stand.count(peer.port, lane)
        units[name], sent[name] = peer.spent() / COUNTED, traffic.up
        lanes[name] = lane
    timings = await compare(lanes, Effort(stand.effort.runs, 10 if stand.quick else 25))
    new, long = lanes
    for name, timing in timings.items():
        times = timing.by(timings[new])
        result.rows.append(
            [name, ratio(times), ms(timing.seconds), f"{units[name]:.1f}", size(sent[name])]
        )
    promise = f"append to {long}, by one to a new session"
    result.targets = [
        Target(f"{promise}: time", "≤", 1.1, timings[long].by(timings[new])),
        Target(f"{promise}: request units", "≤", 1.1, units[long] / units[new]),
        Target(f"{promise}: bytes sent", "≤", 1.1, sent[long] / sent[new]),
    ]
    return result
