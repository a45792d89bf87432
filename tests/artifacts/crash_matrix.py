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
import sys
from collections.abc import Awaitable, Callable, Coroutine, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from cosmosservice import CosmosArtifactService, CosmosSessionService
from cosmosservice.errors import AlreadyExistsError
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
from tests.reliability.matrix import (
    FAULTS,
    Case,
    Fault,
    Outcome,
    expect,
    in_processes,
    interrupted,
    named,
    played,
    report,
)
from tests.reliability.operations import attempt
from tests.reliability.simulation import Killed, simulate

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


def requests_of(
    operation: Operation, make: Callable[[], Any] = Stage, run: Run = simulate
) -> list[str]:
    """The requests that the operation sends when nothing fails, in order."""

    async def record() -> list[str]:
        stage = make()
        await operation.prepare(stage, stage.victim.service)
        process = _runner(operation, stage)
        await process.service.list_artifact_keys(**THIS)
        expect(await view(stage.process().service) == operation.before, "not as before")
        stage.emulator.clear_requests()
        await operation.run(stage, process.service)
        sent = [each.operation for each in stage.emulator.requests if each.resource == "docs"]
        expect(await view(stage.process().service) == operation.after, "not as after")
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
    for nth, request in enumerate(requests_of(operation, make, run), 1):
        for fault in faults:
            yield play(operation, fault, nth, request, make, run)


def play(
    operation: Operation,
    fault: Fault,
    nth: int,
    request: str,
    make: Callable[[], Any] = Stage,
    run: Run = simulate,
) -> Outcome:
    async def work(answers: list[str]) -> None:
        stage = make()
        try:
            await _perform(stage, operation, fault, nth, answers)
        finally:
            await stage.close()

    return played(Case(operation.name, nth, fault.name, request), work, run)


async def _perform(
    stage: Any, operation: Operation, fault: Fault, nth: int, answers: list[str]
) -> None:
    await operation.prepare(stage, stage.victim.service)
    stage.victim = process = _runner(operation, stage)
    if fault.in_block:
        await process.service.__aenter__()
    await process.service.list_artifact_keys(**THIS)
    # Only requests for documents count: the other requests of a client vary.
    answer = await interrupted(
        stage, fault, nth, lambda: operation.run(stage, process.service), resource="docs"
    )
    answers.append(answer)
    await asyncio.sleep(stage.patience)  # requests under way arrive
    stage.disarm()
    if fault.bearable:
        expect(answer == "ok", f"the caller was told {answer}")
    reader = stage.process().service
    seen = await view(reader)
    possible = [operation.before, operation.after, *operation.between]
    if answer == "ok":
        possible = [operation.after]
    expect(seen in possible, f"a reader sees {_brief(seen)}")
    again = process if not process.wire.dead else stage.process()
    expect(await attempt(operation.run(stage, again.service)) == "ok", "it fails again")
    wanted = operation.twice if seen == operation.after else operation.after
    now = await view(stage.process().service)
    expect(now == wanted, f"after another try a reader sees {_brief(now)}")
    stage.emulator.clock.advance(DAYS)
    await stage.process().service.sweep()
    expect(await view(stage.process().service) == wanted, "a sweep changed what readers see")
    left = garbage(stage.emulator) + await stage.blobs_left()
    expect(not left, f"left after a sweep: {left}")
    if not wanted:
        kept = content(stage.emulator)
        expect(not kept, f"left of what was deleted: {kept}")


def _brief(seen: View) -> dict[str, list[int]]:
    return {name: [len(each) for each in versions] for name, versions in seen.items()}


def cases(operation: Operation) -> Iterator[Case]:
    for nth, request in enumerate(requests_of(operation), 1):
        for fault in FAULTS:
            yield Case(operation.name, nth, fault.name, request)


def run(case: Case) -> Outcome:
    operation, fault = named(case.operation, OPERATIONS), named(case.fault, FAULTS)
    return play(operation, fault, case.nth, case.request)


def main(names: list[str]) -> int:
    chosen = [each for each in OPERATIONS if not names or each.name in names]
    return report(in_processes(chosen, cases, run), None if names else "artifacts")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
