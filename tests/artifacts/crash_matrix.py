"""Every request of every artifact operation, failing in every way.

the operation, with the fault at its n-th request
→ a new process looks: as before or as after, never between; every version loads
→ the operation is tried again: it succeeds
→ a new process looks
→ a day later a sweep removes whatever was left, and nothing else

python -m tests.artifacts.crash_matrix [OPERATION …]
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import multiprocessing
import sys
from collections import Counter
from collections.abc import Awaitable, Callable, Coroutine, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from cosmosservice import CosmosArtifactService, CosmosSessionService
from cosmosservice.errors import AlreadyExistsError, CosmosServiceError, StorageError
from tests.artifacts.kinds import blob
from tests.artifacts.processes import (
    THIS,
    WHO,
    Process,
    View,
    bytes_of,
    content,
    garbage,
    store,
    view,
)
from tests.reliability.crash_matrix import FAULTS, Fault, quietly
from tests.reliability.simulation import Killed, simulate
from tests.support.figures import record

SMALL, LARGE, OTHER = bytes_of("small", 15), bytes_of("large", 1000), bytes_of("other", 900)
MEDIUM = bytes_of("medium", 200)  # in the version's document, which then has a header
DAYS = 2 * 24 * 3600.0


class Stage:
    """A store and the process whose requests fail."""

    patience = 5.0  # seconds
    commits = "batch"  # the request that creates the version of a large save

    def __init__(self) -> None:
        self.emulator = store()
        self.victim = self.process()

    def process(self) -> Process:
        return Process(self.emulator)

    def disarm(self) -> None:
        self.emulator.faults.clear()

    async def blobs_left(self) -> list[str]:
        return []

    async def close(self) -> None:
        """Nothing to do: no socket is open."""


Run = Callable[[Callable[[], Coroutine[Any, Any, Any]]], Any]
Work = Callable[[Any, CosmosArtifactService], Awaitable[None]]


def saving(*saves: tuple[str, bytes]) -> Work:
    async def work(stage: Any, service: CosmosArtifactService) -> None:
        for name, data in saves:
            await service.save_artifact(**THIS, filename=name, artifact=blob(data))

    return work


def streaming(name: str, data: bytes) -> Work:
    async def work(stage: Any, service: CosmosArtifactService) -> None:
        parts = [data[n : n + 100] for n in range(0, len(data), 100)]
        await service.save_artifact_stream(**THIS, filename=name, data=parts, mime_type="image/png")

    return work


def deleting(*names: str) -> Work:
    async def work(stage: Any, service: CosmosArtifactService) -> None:
        for name in names:
            await service.delete_artifact(**THIS, filename=name)

    return work


async def purging(stage: Any, service: CosmosArtifactService) -> None:
    await service.purge_artifacts(**WHO)


async def sweeping(stage: Any, service: CosmosArtifactService) -> None:
    await service.sweep()


async def source(stage: Any, service: CosmosArtifactService) -> None:
    """Another session, which this one will be a fork of."""
    other = WHO | {"session_id": "source"}
    for name, data in (("f", LARGE), ("f", SMALL), ("g", LARGE), ("h", MEDIUM)):
        await service.save_artifact(**other, filename=name, artifact=blob(data))
    await CosmosSessionService(account=service.account).create_session(**other)


async def forking(stage: Any, service: CosmosArtifactService) -> None:
    sessions = CosmosSessionService(account=service.account)
    with contextlib.suppress(AlreadyExistsError):  # begun before: the next reader completes it
        await sessions.fork_session(**WHO, session_id="source", new_session_id=THIS["session_id"])
    assert await sessions.get_session(**THIS) is not None


def then(*works: Work) -> Work:
    async def work(stage: Any, service: CosmosArtifactService) -> None:
        for each in works:
            await each(stage, service)

    return work


async def left_over(stage: Any, service: CosmosArtifactService) -> None:
    """What a save leaves that died after its pieces, and a delete that died after its tombstone."""
    await saving(("f", LARGE), ("g", OTHER))(stage, service)
    for operation, work in (
        (stage.commits, saving(("f", bytes_of("third", 950)))),
        ("replace", deleting("g")),
    ):
        dying = stage.process()
        stage.emulator.faults.call(_dies(dying), operation=operation)
        try:
            await work(stage, dying.service)
        except Killed:
            stage.emulator.faults.clear()
    stage.emulator.clock.advance(DAYS)


def _dies(process: Process) -> Callable[[Any], None]:
    def hook(_: Any) -> None:
        process.kill()
        raise Killed

    return hook


@dataclass(frozen=True)
class Operation:
    """`prepare`, then `run`. A reader sees `before` or `after`, or `twice` if it ran twice."""

    name: str
    prepare: Work
    run: Work
    before: View
    after: View
    twice: View
    fresh: bool = False  # run by a new process
    between: list[View] = field(default_factory=list)  # for several operations in one


def _parts_of(whole: View) -> list[View]:
    """Any of its names, but not none."""
    return [
        {name: whole[name] for name in names}
        for count in range(1, len(whole) + 1)
        for names in itertools.combinations(whole, count)
    ]


def _operations() -> list[Operation]:
    nothing, one = saving(), saving(("f", SMALL))
    save_small, save_large = saving(("f", SMALL)), saving(("f", LARGE))
    save_medium = saving(("f", MEDIUM))
    had = saving(("f", LARGE), ("f", SMALL))
    everything = {"f": LARGE, "g": SMALL, "i": MEDIUM, "user:h": LARGE}
    forked = {"f": [LARGE, SMALL], "g": [LARGE], "h": [MEDIUM]}
    return [
        Operation("save small", nothing, save_small, {}, {"f": [SMALL]}, {"f": [SMALL] * 2}),
        Operation(
            "save small, guess wrong", one, save_small, {"f": [SMALL]}, {"f": [SMALL] * 2},
            {"f": [SMALL] * 3}, fresh=True,
        ),
        Operation("save medium", nothing, save_medium, {}, {"f": [MEDIUM]}, {"f": [MEDIUM] * 2}),
        Operation(
            "save medium, guess wrong", save_medium, save_medium, {"f": [MEDIUM]},
            {"f": [MEDIUM] * 2}, {"f": [MEDIUM] * 3}, fresh=True,
        ),
        Operation(
            "save medium after a delete", then(save_medium, deleting("f")), save_medium, {},
            {"f": [MEDIUM]}, {"f": [MEDIUM] * 2},
        ),
        Operation("save large", nothing, save_large, {}, {"f": [LARGE]}, {"f": [LARGE] * 2}),
        Operation(
            "save the same again", save_large, save_large, {"f": [LARGE]}, {"f": [LARGE] * 2},
            {"f": [LARGE] * 3},
        ),
        Operation(
            "save small after a delete", then(had, deleting("f")), save_small, {},
            {"f": [SMALL]}, {"f": [SMALL] * 2},
        ),
        Operation(
            "save large after a delete", then(had, deleting("f")), save_large, {},
            {"f": [LARGE]}, {"f": [LARGE] * 2}, fresh=True,
        ),
        Operation(
            "save a stream", nothing, streaming("f", LARGE), {}, {"f": [LARGE]},
            {"f": [LARGE] * 2},
        ),
        Operation("delete small", one, deleting("f"), {"f": [SMALL]}, {}, {}),
        Operation(
            "delete medium", saving(("f", MEDIUM), ("f", SMALL), ("f", MEDIUM)), deleting("f"),
            {"f": [MEDIUM, SMALL, MEDIUM]}, {}, {},
        ),
        Operation("delete large", had, deleting("f"), {"f": [LARGE, SMALL]}, {}, {}, fresh=True),
        Operation(
            "delete what shares its payload", saving(("f", LARGE), ("g", LARGE)), deleting("f"),
            {"f": [LARGE], "g": [LARGE]}, {"g": [LARGE]}, {"g": [LARGE]},
        ),
        Operation(
            "purge", saving(*everything.items()), purging,
            {name: [data] for name, data in everything.items()}, {}, {},
            between=_parts_of({name: [data] for name, data in everything.items()}),
        ),
        Operation(
            "fork", source, forking, {}, forked, forked,
            between=[*_parts_of(forked), *_parts_of(forked | {"f": [LARGE]})],
        ),
        Operation("sweep", left_over, sweeping, {"f": [LARGE]}, {"f": [LARGE]}, {"f": [LARGE]}),
    ]  # fmt: skip


OPERATIONS = _operations()


class Broken(Exception):
    """A guarantee does not hold."""


@dataclass(frozen=True)
class Outcome:
    operation: str
    place: int
    request: str
    fault: str
    answer: str = ""
    problem: str | None = None


async def attempt(work: Awaitable[None]) -> str:
    try:
        await work
    except StorageError as error:
        return type(error).__name__
    except Killed:
        return "killed"
    except asyncio.CancelledError:
        return "cancelled"
    return "ok"


def requests_of(
    operation: Operation, make: Callable[[], Any] = Stage, run: Run = simulate
) -> list[str]:
    """The requests that the operation sends when nothing fails, in order."""

    async def record() -> list[str]:
        stage = make()
        await operation.prepare(stage, stage.victim.service)
        process = _runner(operation, stage)
        await process.service.list_artifact_keys(**THIS)
        _expect(await view(stage.process().service) == operation.before, "not as before")
        stage.emulator.clear_requests()
        await operation.run(stage, process.service)
        sent = [each.operation for each in stage.emulator.requests if each.resource == "docs"]
        _expect(await view(stage.process().service) == operation.after, "not as after")
        await stage.close()
        return sent

    return run(record)


def _runner(operation: Operation, stage: Any) -> Process:
    return stage.process() if operation.fresh else stage.victim


def outcomes(
    operation: Operation,
    faults: Sequence[Fault],
    make: Callable[[], Any] = Stage,
    run: Run = simulate,
) -> Iterator[Outcome]:
    for place, request in enumerate(requests_of(operation, make, run), 1):
        for fault in faults:
            yield play(operation, fault, place, request, make, run)


def play(
    operation: Operation,
    fault: Fault,
    place: int,
    request: str,
    make: Callable[[], Any],
    run: Run,
) -> Outcome:
    """Runs one case. The outcome names the problem, if there is one."""
    answer = [""]
    problem = None
    try:
        run(partial(_play, operation, fault, place, answer, make))
    except (Broken, AssertionError, CosmosServiceError) as error:
        problem = f"{type(error).__name__}: {error}"
    return Outcome(operation.name, place, request, fault.name, answer[0], problem)


async def _play(
    operation: Operation, fault: Fault, place: int, answer: list[str], make: Callable[[], Any]
) -> None:
    stage = make()
    try:
        await _perform(stage, operation, fault, place, answer)
    finally:
        await stage.close()


async def _perform(
    stage: Any, operation: Operation, fault: Fault, place: int, answer: list[str]
) -> None:
    await operation.prepare(stage, stage.victim.service)
    stage.victim = process = _runner(operation, stage)
    if fault.in_block:
        await process.service.__aenter__()
    await process.service.list_artifact_keys(**THIS)
    started = asyncio.Event()

    async def first() -> str:
        await started.wait()
        return await attempt(operation.run(stage, process.service))

    task = asyncio.create_task(first())
    _arm(fault, stage, task, place)
    started.set()
    answer[0] = await task
    await asyncio.sleep(stage.patience)  # requests under way arrive
    stage.disarm()
    if fault.bearable:
        _expect(answer[0] == "ok", f"the caller was told {answer[0]}")
    reader = stage.process().service
    seen = await view(reader)
    possible = [operation.before, operation.after, *operation.between]
    if answer[0] == "ok":
        possible = [operation.after]
    _expect(seen in possible, f"a reader sees {_brief(seen)}")
    again = process if not process.wire.dead else stage.process()
    _expect(await attempt(operation.run(stage, again.service)) == "ok", "it fails again")
    wanted = operation.twice if seen == operation.after else operation.after
    now = await view(stage.process().service)
    _expect(now == wanted, f"after another try a reader sees {_brief(now)}")
    stage.emulator.clock.advance(DAYS)
    await stage.process().service.sweep()
    _expect(await view(stage.process().service) == wanted, "a sweep changed what readers see")
    left = garbage(stage.emulator) + await stage.blobs_left()
    _expect(not left, f"left after a sweep: {left}")
    if not wanted:
        kept = content(stage.emulator)
        _expect(not kept, f"left of what was deleted: {kept}")


def _arm(fault: Fault, stage: Any, task: asyncio.Task[str], place: int) -> None:
    """Counts only requests for documents: the other requests of a client vary."""
    faults = stage.emulator.faults
    original = faults._add

    def add(rule: Any) -> Any:
        rule.match["resource"] = "docs"
        return original(rule)

    faults._add = add
    try:
        fault.arm(stage, task, place)
    finally:
        del faults._add


def _brief(seen: View) -> dict[str, list[int]]:
    return {name: [len(each) for each in versions] for name, versions in seen.items()}


def _expect(holds: bool, problem: str) -> None:
    if not holds:
        raise Broken(problem)


def _all(name: str) -> list[Outcome]:
    operation = next(each for each in OPERATIONS if each.name == name)
    return list(outcomes(operation, FAULTS))


def main(chosen: list[str]) -> int:
    broken: list[Outcome] = []
    count = 0
    names = [each.name for each in OPERATIONS if not chosen or each.name in chosen]
    with multiprocessing.Pool(initializer=quietly) as pool:
        for name, found in zip(names, pool.imap(_all, names), strict=True):
            answer = Counter(each.answer for each in found)
            broken += [each for each in found if each.problem]
            count += len(found)
            requests = max(each.place for each in found)
            wrong = sum(each.problem is not None for each in found)
            print(
                f"{name}: {requests} requests, {len(found)} cases, {wrong} broken: {dict(answer)}",
                flush=True,
            )
    for each in broken:
        print(each)
    if not chosen:
        record("artifacts", cases=count, broken=len(broken))
    print(f"{count} cases, {len(broken)} broken.")
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
