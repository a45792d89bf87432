"""What is not a median: the slowest turns, bursts, the start of a process and its end."""

from __future__ import annotations

import asyncio
import os
import resource
import statistics
import subprocess
import sys
import time
from pathlib import Path

from benchmarks.cosmos import InProcess
from benchmarks.lanes import EVENTS_OF_A_TURN, look_at
from benchmarks.material import APP, USER, event
from benchmarks.measure import Effort, Lane, clock, compare, uncollected
from benchmarks.peers import Peer
from benchmarks.results import Result, Target, ms, ratio
from benchmarks.servers import scratch
from benchmarks.stand import (
    BARE_IN_PROCESS,
    IN_MEMORY,
    IN_PROCESS,
    IN_PROCESS_BLOCK,
    LOOKED,
    Stand,
)

AT_ONCE = 64
ROOT = Path(__file__).parents[2]


async def tail(stand: Stand) -> Result:
    """The slowest turns, by processor time: in process nothing else makes one slow."""
    length, turns = (500, 20) if stand.quick else (5000, 40)
    result = Result(
        "tail",
        f"The slowest turns (a get and 4 appends) after {length:,} events, seen before, in"
        " process: processor time",
        ["", "p95 ÷ p50", "p50", "p95"],
    )
    for label in (IN_PROCESS, IN_PROCESS_BLOCK, IN_MEMORY):
        peer = await stand.peer(label, 0)
        session_id = await stand.session(peer, length)
        for look in (False, True):
            spent = [await _turn(peer, session_id, look=look) for _ in range(turns + 1)][1:]
            *_, p95 = statistics.quantiles(spent, n=20)
            p50 = statistics.median(spent)
            name = label + LOOKED if look else label
            result.rows.append([name, ratio(p95 / p50), ms(p50), ms(p95)])
            if label == IN_PROCESS:
                promise = "… every event looked at" if look else f"p95 of a turn after {length:,}"
                result.targets.append(Target(promise, "≤", 1.5, p95 / p50))
    return result


async def _turn(peer: Peer, session_id: str, *, look: bool) -> float:
    events = [event() for _ in range(EVENTS_OF_A_TURN)]
    start = time.process_time()
    session = await peer.get(session_id)
    if look:
        look_at(session)
    for each in events:
        await peer.service.append_event(session, each)
    return time.process_time() - start


async def burst(stand: Stand) -> Result:
    """Gets of different sessions at once, by bare requests for the same documents at once."""
    result = Result(
        "burst",
        f"{AT_ONCE} gets at once of sessions of 20 events, seen before, in process",
        ["", "× bare requests", "each"],
    )
    peer = await stand.peer(IN_PROCESS, 0)
    in_block = await stand.peer(IN_PROCESS_BLOCK, 0)
    bare = await stand.bare(BARE_IN_PROCESS, 0)
    assert isinstance(peer, InProcess)
    sessions = [await stand.session(peer, 20) for _ in range(AT_ONCE)]
    of_block = [await stand.session(in_block, 20) for _ in range(AT_ONCE)]
    stored = {each.get("session_id"): each for each in await peer.stored("sessions")}
    await asyncio.gather(*(bare.sessions.upsert_item(stored[each]) for each in sessions))
    text = "SELECT * FROM c WHERE c.id >= @first ORDER BY c.id"
    named: list[dict[str, object]] = [{"name": "@first", "value": "~"}]

    async def requests(session_id: str) -> None:
        async def query() -> None:
            found = bare.events.query_items(text, parameters=named, partition_key=session_id)
            assert [item async for item in found] == []

        document = stored[session_id]
        reads = (bare.sessions.read_item(document["id"], document["user_id"]) for _ in range(3))
        await asyncio.gather(*reads, query())

    async def bare_lane() -> float:
        start = clock()
        await asyncio.gather(*map(requests, sessions))
        return clock() - start

    def gets(of: Peer, ids: list[str]) -> Lane:
        async def lane() -> float:
            start = clock()
            await asyncio.gather(*map(of.get, ids))
            return clock() - start

        return lane

    name = f"{AT_ONCE} × 3 bare reads and a query"
    lanes = {
        IN_PROCESS: gets(peer, sessions),
        IN_PROCESS_BLOCK: gets(in_block, of_block),
        name: bare_lane,
    }
    timings = await compare(lanes, Effort(stand.effort.runs, 5))
    for label, timing in timings.items():
        result.rows.append([label, ratio(timing.by(timings[name])), ms(timing.seconds / AT_ONCE)])
    result.targets = [
        Target(
            f"get under {AT_ONCE} at once, by bare requests for the same documents",
            "≤",
            1.4,
            timings[IN_PROCESS].by(timings[name]),
        )
    ]
    return result


IMPORT = "from google.adk.sessions import InMemorySessionService"
FIRST_GET = """
import asyncio
from cosmosservice import CosmosSessionService
service = CosmosSessionService.embedded({path!r})
asyncio.run(service.get_session(app_name="a", user_id="u", session_id="s"))
"""


async def start(stand: Stand) -> Result:
    """Import and first get of a new process, from an embedded file."""
    result = Result(
        "start", "The start of a process: processor time", ["", "× InMemory's import", "time"]
    )
    with scratch() as folder:
        programs = {
            "cosmosservice: import": "from cosmosservice import CosmosSessionService",
            "cosmosservice: import and first get, embedded file": FIRST_GET.format(
                path=str(folder / "sessions.db")
            ),
            f"{IN_MEMORY}: import": IMPORT,
            "the Cosmos SDK beside it: import": f"{IMPORT}\nimport azure.cosmos.aio",
        }
        # As for an installed program: compiled once.
        environment = os.environ | {"PYTHONPYCACHEPREFIX": str(folder / "compiled")}
        environment.pop("PYTHONDONTWRITEBYTECODE", None)
        found: dict[str, list[float]] = {name: [] for name in programs}
        for sample in range(4 if stand.quick else 8):
            for name, program in programs.items():
                spent = await asyncio.to_thread(_processor_time, program, environment)
                if sample:
                    found[name].append(spent)
    limit = found[f"{IN_MEMORY}: import"]
    by = {
        name: statistics.median(a / b for a, b in zip(spent, limit, strict=True))
        for name, spent in found.items()
    }
    result.rows = [
        [name, ratio(by[name]), ms(statistics.median(spent))] for name, spent in found.items()
    ]
    result.targets = [
        Target(
            "import and first get from an embedded file, by InMemorySessionService's import",
            "≤",
            1.25,
            by["cosmosservice: import and first get, embedded file"],
        )
    ]
    return result


def _processor_time(program: str, environment: dict[str, str]) -> float:
    def children() -> float:
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        return used.ru_utime + used.ru_stime

    before = children()
    command = [sys.executable, "-W", "ignore", "-c", program]
    subprocess.run(command, check=True, env=environment, cwd=ROOT)
    return children() - before


async def closing(stand: Stand) -> Result:
    """The end of a service that has created many sessions."""
    count = 500 if stand.quick else 5000
    result = Result("closing", f"close() after {count:,} sessions, in process", ["", "time"])
    peer = InProcess(IN_PROCESS)
    await peer.open()
    with uncollected():
        for _ in range(count // AT_ONCE + 1):
            await asyncio.gather(*(_create(stand, peer) for _ in range(AT_ONCE)))
        start = clock()
        await peer.service.close()
        spent = clock() - start
    await peer.close()
    result.rows = [["cosmosservice", ms(spent)]]
    result.targets = [
        Target(f"close() of a service that created {count:,} sessions", "≤", 1, spent, "s")
    ]
    return result


async def _create(stand: Stand, peer: Peer) -> None:
    await peer.service.create_session(app_name=APP, user_id=USER, session_id=stand.fresh())
