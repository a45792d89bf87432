"""Every request of adding, deleting and purging, failing in every way.

The requests are those that the emulator
logs when nothing fails. Each case has a store of its own and runs in virtual time.

    the operation, with the fault at its n-th request
    → a new process looks: nothing that was acknowledged is missing, nothing else has changed
    → the operation is tried again: it succeeds
    → a new process looks: all of it is there, once, or all of it is gone
"""

from __future__ import annotations

import random
import sys
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from google.adk.events import Event

from cosmos_emulator import Emulator
from cosmosservice import CosmosMemoryService, CosmosSessionService
from cosmosservice.account import chunks
from cosmosservice.memory import documents
from cosmosservice.memory.documents import chunk_ids
from tests.memory.raw import documents_of
from tests.memory.support import USER, session
from tests.reliability.matrix import (
    FAULTS,
    GIVEN_UP,
    NO_ANSWER,
    Case,
    Fault,
    Outcome,
    expect,
    in_processes,
    interrupted,
    named,
    played,
    quietly,
    report,
)
from tests.reliability.simulation import SharedLoop, Wire, content_after, simulate
from tests.support.adk import event

WHO = {"app_name": "app", "user_id": USER}
NOON = 1_700_000_000.5
# Random, so that it does not compress: it needs chunks, and has more words than fit into a
# document.
_CHANCE = random.Random(0)
LARGE = "".join(chr(0x4E00 + _CHANCE.randrange(20_000)) for _ in range(900))

View = frozenset[str]


def said(name: str, text: str | None = None) -> Event:
    return event(text or f"word {name}", id=name, timestamp=NOON)


FIRST = [said("first"), said("second")]
TURN = [said("third"), said("fourth")]
BULKY = said("bulky", f"word {LARGE}")


class Process:
    """A service with a connection of its own."""

    def __init__(self, emulator: Emulator) -> None:
        self.wire = Wire(emulator)
        self.service = CosmosMemoryService.embedded(self.wire, ensure="never")  # type: ignore[arg-type]
        account = self.service.account
        account.executor = SharedLoop(account.executor.new_resources)
        self.sessions = CosmosSessionService(account=account, memory=self.service)

    def kill(self) -> None:
        self.wire.dead = True


class Stage:
    def __init__(self) -> None:
        self.emulator = Emulator.load(_empty_store())
        self.victim = Process(self.emulator)

    def fresh(self) -> Process:
        return Process(self.emulator)


@lru_cache(maxsize=1)
def _empty_store() -> bytes:
    async def open_containers(emulator: Emulator) -> None:
        await CosmosMemoryService.embedded(emulator).search_memory(**WHO, query="nothing")
        await CosmosSessionService.embedded(emulator).list_sessions(app_name="app")

    return content_after(open_containers)


Run = Callable[[Process], Awaitable[Any]]


@dataclass(frozen=True)
class Operation:
    """`prepare`, then `run` on the victim, then again. Each memory changes on its own."""

    name: str
    prepare: Run
    run: Run
    before: View
    after: View
    in_background: bool = False  # the caller is not told whether it was done


async def nothing(process: Process) -> None:
    await process.service.search_memory(**WHO, query="connect")


async def stored(process: Process) -> None:
    await process.service.add_session_to_memory(session(*FIRST))


async def stored_large(process: Process) -> None:
    await process.service.add_session_to_memory(session(FIRST[0], BULKY))


def add_session(*events: Event) -> Run:
    return lambda process: process.service.add_session_to_memory(session(*events))


async def appended(process: Process) -> None:
    made = await process.sessions.create_session(**WHO, session_id="s")
    for each in FIRST:
        await process.sessions.append_event(made, each.model_copy())
    await process.sessions.flush()


async def append_turn(process: Process) -> None:
    """Appends what the session lacks, and an event without text. With that event, earlier appends
    that were not remembered become memories too."""
    found = await process.sessions.get_session(**WHO, session_id="s")
    assert found is not None
    there = ids(*found.events)
    for each in [*(turn for turn in TURN if turn.id not in there), Event(author="user")]:
        await process.sessions.append_event(found, each.model_copy())
    await process.sessions.flush()


def ids(*events: Event) -> View:
    return frozenset(each.id for each in events)


OPERATIONS = [
    Operation("add a session", nothing, add_session(*FIRST), ids(), ids(*FIRST)),
    Operation("add a turn", stored, add_session(*FIRST, *TURN), ids(*FIRST), ids(*FIRST, *TURN)),
    Operation(
        "add a large memory",
        nothing,
        add_session(FIRST[0], BULKY),
        ids(),
        ids(FIRST[0], BULKY),
    ),
    Operation(
        "add events",
        stored,
        lambda process: process.service.add_events_to_memory(**WHO, events=TURN, session_id="s"),
        ids(*FIRST),
        ids(*FIRST, *TURN),
    ),
    Operation(
        "delete a memory",
        stored,
        lambda process: process.service.delete_memory(**WHO, memory_id="first"),
        ids(*FIRST),
        ids(FIRST[1]),
    ),
    Operation(
        "delete a large memory",
        stored_large,
        lambda process: process.service.delete_memory(**WHO, memory_id="bulky"),
        ids(FIRST[0], BULKY),
        ids(FIRST[0]),
    ),
    Operation(
        "purge a session",
        stored_large,
        lambda process: process.service.purge_memories(**WHO, session_id="s"),
        ids(FIRST[0], BULKY),
        ids(),
    ),
    Operation(
        "append a turn",
        appended,
        append_turn,
        ids(*FIRST),
        ids(*FIRST, *TURN),
        in_background=True,
    ),
    Operation(
        "purge a user",
        stored_large,
        lambda process: process.service.purge_memories(**WHO),
        ids(FIRST[0], BULKY),
        ids(),
    ),
]


def requests_of(operation: Operation) -> int:
    """The number of requests that the operation sends when nothing fails."""

    async def record() -> int:
        stage = Stage()
        await operation.prepare(stage.victim)
        expect(await _look(stage) == operation.before, "it begins otherwise")
        stage.emulator.clear_requests()
        await operation.run(stage.victim)
        sent = len(stage.emulator.requests)
        expect(await _look(stage) == operation.after, "it leads elsewhere")
        return sent

    return simulate(record)


def cases(operations: Sequence[Operation] = OPERATIONS) -> Iterator[Case]:
    for operation in operations:
        for nth in range(1, requests_of(operation) + 1):
            for fault in FAULTS:
                yield Case(operation.name, nth, fault.name)


def run(case: Case) -> Outcome:
    return played(case, lambda answers: _play(case, answers))


async def _play(case: Case, answers: list[str]) -> None:
    operation: Operation = named(case.operation, OPERATIONS)
    fault: Fault = named(case.fault, FAULTS)
    stage = Stage()
    if fault.in_block:
        await stage.victim.service.__aenter__()
    await operation.prepare(stage.victim)
    answer = await interrupted(stage, fault, case.nth, lambda: operation.run(stage.victim))
    answers.append(answer)
    stage.emulator.faults.clear()
    allowed = {"ok"} if fault.bearable else {"ok"} | GIVEN_UP | NO_ANSWER
    expect(answer in allowed, f"the caller was told {answer}")
    seen = await _look(stage)
    if answer == "ok" and not operation.in_background:
        expect(seen == operation.after, f"after an answer a reader sees {set(seen)}")
    both = operation.before, operation.after
    expect(both[0] & both[1] <= seen <= both[0] | both[1], f"a reader sees {set(seen)}")
    process = stage.fresh() if stage.victim.wire.dead else stage.victim
    await operation.run(process)
    seen = await _look(stage)
    expect(seen == operation.after, f"when tried again, a reader sees {set(seen)}")
    _check_raw(stage, operation)
    if operation.name.startswith("delete"):
        await stage.fresh().service.add_session_to_memory(session(FIRST[0], FIRST[1], BULKY))
        gone = operation.before - operation.after
        expect(not gone & await _look(stage), "what was deleted is back")


async def _look(stage: Stage) -> View:
    """What a new process finds by listing and by searching. The two must agree."""
    service = stage.fresh().service
    listed = [each.id async for each in service.iter_memories(**WHO)]
    expect(len(listed) == len(set(listed)), "a memory is there twice")
    found = (await service.search_memory(**WHO, query="word", limit=50)).memories
    expect({each.id for each in found} == set(listed), "a search finds other memories than a list")
    for each in found:
        if each.id == BULKY.id:
            expect(each.content == BULKY.content, "a large memory has changed")
    await service.close()
    return frozenset(str(each) for each in listed)


def _check_raw(stage: Stage, operation: Operation) -> None:
    """Nothing is stored twice, and nothing is left of what was deleted."""
    found = documents_of(stage.emulator)
    present = {each["id"] for each in found}
    for each in found:
        if each["kind"] == "memory" and "chunks" in each:
            expect(set(chunk_ids(each)) <= present, "a large memory lacks parts")
        if each["kind"] == "part":
            owner = [other for other in found if other["id"] == each["of"]]
            expect([other["kind"] for other in owner] == ["memory"], "a part has no memory")
    for gone in operation.before - operation.after:
        left = [each for each in found if gone in str(each.get("tokens", "")) or "data" in each]
        if gone == BULKY.id or not operation.after:
            expect(not any("data" in each for each in left), "a part of what is gone is left")


def small_documents() -> None:
    """Smaller limits: the same requests, with less data."""
    documents.INLINE_BYTES = 1_000  # type: ignore[misc]
    chunks.CHUNK_BYTES = 1_100  # type: ignore[misc]
    documents.TOKENS_OF_A_DOCUMENT = 500  # type: ignore[misc]


def _begin() -> None:
    quietly()
    small_documents()


def main() -> int:
    found = in_processes(OPERATIONS, lambda operation: cases([operation]), run, _begin)
    return report(found, "memories")


if __name__ == "__main__":
    sys.exit(main())
