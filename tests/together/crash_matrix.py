"""Every request of every operation on a session's life is interrupted, with three services.

    the process is killed at the n-th request of a purge, a create, a restore or a fork
    → a new process, with all services or only with sessions, reads, creates, purges or restores
    → a new process looks: the session is whole, or new and empty, or gone; its neighbours are whole
    → the new session is used, purge_deleted runs: the new session and its neighbours are whole
    → everything is purged: no document holds any of it

With lag, the replicas stop before the operation and catch up before the first look.

    python -m tests.together.crash_matrix [--every N] [OPERATION …]
"""

from __future__ import annotations

import argparse
import asyncio
import datetime
import sys
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass
from functools import cache, partial
from typing import Any, ClassVar

from cosmos_emulator import Replicas
from cosmosservice.errors import AlreadyExistsError, SessionNotFoundError
from tests.reliability import matrix
from tests.reliability.guarantees import _everything
from tests.reliability.matrix import KILLED_AFTER, Outcome, expect, interrupted, named, played
from tests.reliability.operations import attempt
from tests.reliability.simulation import VirtualLoop, simulate
from tests.together.processes import (
    ADA,
    BOB,
    Process,
    Sight,
    full,
    left_of,
    look,
    remembered,
    store,
)

THIS = ADA | {"session_id": "s"}
FORKED = ADA | {"session_id": "fork"}
OLD, NEW, OTHER, STRANGER = "oldtexts", "newtexts", "othertxt", "bobstext"
EMPTY = Sight((), frozenset(), ())
MONTHS = 70 * 24 * 3600

Run = Callable[[Process], Awaitable[Any]]


@dataclass(frozen=True)
class Operation:
    name: str
    run: Run
    deleted: bool = False  # the session is deleted before it
    erases: bool = False  # it erases the session for good
    whole_user: bool = False  # … and everything else of the user


def _purge_deleted(process: Process) -> Awaitable[Any]:
    return process.sessions.purge_deleted(older_than=datetime.timedelta(0))


OPERATIONS = [
    Operation("purge_session", lambda p: p.sessions.purge_session(**THIS), erases=True),
    Operation(
        "purge_user",
        lambda p: p.sessions.purge_user(**ADA, include_state=True),
        erases=True,
        whole_user=True,
    ),
    Operation("purge_deleted", _purge_deleted, deleted=True, erases=True),
    Operation("create over deleted", lambda p: p.sessions.create_session(**THIS), deleted=True),
    Operation("restore", lambda p: p.sessions.restore_session(**THIS), deleted=True),
    Operation("fork", lambda p: p.sessions.fork_session(**THIS, new_session_id="fork")),
]

NEXT: dict[str, Run] = {
    "get": lambda p: p.sessions.get_session(**THIS),
    "create": lambda p: p.sessions.create_session(**THIS),
    "purge": lambda p: p.sessions.purge_session(**THIS),
    "restore": lambda p: p.sessions.restore_session(**THIS),
}


@dataclass(frozen=True)
class Case(matrix.Case):
    """`nth` 0: the operation is not interrupted."""

    then: str = "get"
    whole: bool = True  # the next process has all services
    lag: bool = False


class Stage:
    faults: ClassVar = {KILLED_AFTER.name: KILLED_AFTER}
    victim: Process

    def __init__(self, *, lag: bool = False, **options: Any) -> None:
        self.emulator = store(Replicas() if lag else None, **options)

    def process(self, **options: Any) -> Process:
        return Process(self.emulator, **options)

    def hold(self) -> None:
        if self.emulator.replicas is not None:
            self.emulator.replicas.hold()

    def catch_up(self) -> None:
        if self.emulator.replicas is not None:
            self.emulator.replicas.release()
            self.emulator.replicas.catch_up()

    def blobs_left(self) -> list[str]:
        return []

    def close(self) -> None:
        self.emulator.close()


async def prepare(stage: Stage, operation: Operation) -> None:
    first = stage.process()
    await first.fill("s", OLD)
    await first.fill("other", OTHER)
    await first.fill("stranger", STRANGER, BOB)
    if operation.deleted:
        await first.sessions.delete_session(**THIS)
    await first.sessions.close()


@cache
def prepared(operation: Operation) -> bytes:
    """What the store holds before the operation."""

    async def fill() -> bytes:
        stage = Stage()
        await prepare(stage, operation)
        content = stage.emulator.dump()
        stage.close()
        return content

    return simulate(fill, seed=1)  # with other ids than later


def _later() -> None:
    """After `prepared`. In real time it is later anyway."""
    loop = asyncio.get_running_loop()
    if isinstance(loop, VirtualLoop):
        loop.advance(60)


def requests_of(operation: Operation) -> int:
    """How many it sends when nothing fails."""

    async def record() -> int:
        _later()
        stage = Stage(content=prepared(operation))
        stage.emulator.clear_requests()
        await operation.run(stage.process())
        sent = len(stage.emulator.requests)
        stage.close()
        return sent

    prepared(operation)
    return simulate(record)


def cases(operation: Operation, *, every: int = 1) -> Iterator[Case]:
    """Every request, every next step. Half of them have lag, and only the session service. With
    `every`, that part of them."""
    for number in range(requests_of(operation) + 1):
        for kind, then in enumerate(NEXT):
            if (4 * number + kind) % every == 0:
                whole, lag = (number + kind) % 2 == 0, (number // 2 + kind) % 2 == 0
                yield Case(operation.name, number, KILLED_AFTER.name, "", then, whole, lag)


def run(case: Case, stage: Callable[..., Stage] = Stage) -> Outcome:
    content = prepared(named(case.operation, OPERATIONS))
    return played(case, lambda answers: play(case, stage(lag=case.lag, content=content), answers))


async def play(case: Case, stage: Stage, answers: list[str]) -> None:
    operation: Operation = named(case.operation, OPERATIONS)
    _later()
    stage.hold()
    answer = await _operate(stage, operation, case)
    answers.append(answer)
    told = await attempt(NEXT[case.then](stage.process(whole=case.whole)))
    expect(
        told in ("ok", AlreadyExistsError.__name__, SessionNotFoundError.__name__),
        f"the next process was told {told}",
    )
    stage.catch_up()
    await _check(stage, operation, case, answer=answer, told=told)
    await _go_on(stage, operation)
    await _end(stage)
    stage.close()


async def _operate(stage: Stage, operation: Operation, case: Case) -> str:
    stage.victim = victim = stage.process()
    if case.nth:
        fault = stage.faults[case.fault]
        answer = await interrupted(stage, fault, case.nth, lambda: operation.run(victim))
    else:
        answer = await attempt(operation.run(victim))
    stage.emulator.faults.clear()
    expect(answer in ("ok", "killed"), f"the caller was told {answer}")
    return answer


async def _check(stage: Stage, operation: Operation, case: Case, *, answer: str, told: str) -> None:
    """What a new process with all services sees."""
    erased = operation.erases and answer == "ok"
    process = stage.process()
    seen = await look(process, "s")
    forked = await look(process, "fork")
    forks = operation.name == "fork"  # which may have copied something, and are erased later
    left = [] if forks else left_of(stage.emulator, OLD)
    purged = case.then == "purge" or erased
    if purged and case.then in ("purge", "get"):
        expect(seen == Sight(None, frozenset(), ()), f"a purged session shows {seen}")
        expect(left == [], f"left: {left}")
    elif seen.events is None:
        gone = _status(stage) in ("deleted", "clearing", "purging")  # not erased yet
        expect(seen.files == () or gone, f"there is no session, but {seen}")
    elif seen.events == (OLD,):
        expect(not erased, "an erased session is back")
        expect(seen == full(OLD), f"the session is not whole: {seen}")
    else:
        expect(seen == EMPTY, f"a new session shows {seen}")
    if case.then == "create" and told == "ok":
        expect(seen == EMPTY, f"a created session shows {seen}")
    if case.then == "restore" and told == "ok":
        created = operation.name == "create over deleted" and answer == "ok"
        expect(seen == (EMPTY if created else full(OLD)), f"a restored session shows {seen}")
    status = _status(stage)
    if status == "purged":
        expect(left == [], f"marked purged, with {left}")
    elif not operation.erases and case.then != "purge":
        expect(OLD in await remembered(process), "the user's memory is gone")
    await _neighbours(process, operation)
    if forked.events is not None:
        expect(
            (forked.events, forked.files) == (full(OLD).events, full(OLD).files), f"fork {forked}"
        )
    await process.sessions.close()


async def _neighbours(process: Process, operation: Operation) -> None:
    if not operation.whole_user:
        expect(await look(process, "other") == full(OTHER), "another session is not whole")
    expect(await look(process, "stranger", BOB) == full(STRANGER), "another user's is not whole")


async def _go_on(stage: Stage, operation: Operation) -> None:
    """A new session is used under the same name; months later, the sweep takes nothing of it."""
    process = stage.process()
    if await process.sessions.get_session(**THIS) is not None:
        await process.sessions.delete_session(**THIS)
    session = await process.sessions.create_session(**THIS)
    expect(await look(process, "s") == EMPTY, f"created again, it shows {await look(process, 's')}")
    await process.use(session, NEW)
    if (await look(process, "fork")).events is not None:
        await process.sessions.purge_session(**FORKED)
    stage.emulator.clock.advance(MONTHS)
    await process.sessions.list_sessions(**ADA)  # its answer tells the time
    report = await process.sessions.purge_deleted()
    expect(report.failed == (), f"the sweep failed: {report.failed}")
    process = stage.process(whole=True)
    expect(await look(process, "s") == full(NEW), f"a sweep left {await look(process, 's')}")
    expect(left_of(stage.emulator, OLD) == [], f"after months: {left_of(stage.emulator, OLD)}")
    await _neighbours(process, operation)


async def _end(stage: Stage) -> None:
    process = stage.process(whole=False)
    await process.sessions.purge_user(**ADA, include_state=True)
    await process.sessions.purge_user(**BOB, include_state=True)
    for text in (OLD, NEW, OTHER, STRANGER):
        expect(left_of(stage.emulator, text) == [], f"at the end: {left_of(stage.emulator, text)}")
    expect(stage.blobs_left() == [], "blobs are left")


def _status(stage: Stage) -> str | None:
    found = [
        each
        for each in _everything(stage.emulator)
        if each.get("document_type") == "session"
        and (each["user_id"], each["session_id"]) == ("ada", "s")
    ]
    return found[0]["status"] if found else None


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.together.crash_matrix")
    parser.add_argument("--every", type=int, default=1, help="only every n-th case")
    parser.add_argument("operations", nargs="*")
    options = parser.parse_args(arguments)
    names, every = options.operations, options.every
    chosen = [each for each in OPERATIONS if not names or each.name in names]
    found = matrix.in_processes(chosen, partial(cases, every=every), run)
    return matrix.report(found, "together" if not names and every == 1 else None)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
