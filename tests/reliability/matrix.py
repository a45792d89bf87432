"""What crash matrices share: the faults, an attempt under one of them, and the run of all cases.

A matrix has operations, and the cases of each. Each case has a store of its own, and runs in
virtual time.
"""

from __future__ import annotations

import asyncio
import logging
import multiprocessing
from collections import Counter
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from cosmos_emulator.requests_log import RequestRecord
from tests.reliability.guarantees import Broken
from tests.reliability.operations import attempt
from tests.reliability.simulation import Killed, simulate
from tests.support.figures import record

GIVEN_UP = {"UnavailableError", "ThrottledError", "stored, state follows"}
NO_ANSWER = {"killed", "cancelled"}

Arm = Callable[..., Any]  # (stage, task of the operation, number of the request, **which requests)


@dataclass(frozen=True)
class Fault:
    """`arm` makes the n-th request fail. `bearable`: the caller should not notice. `in_block`: the
    service lives on its caller's loop, so that a cancellation reaches into it."""

    name: str
    arm: Arm
    bearable: bool = False
    in_block: bool = False


def _rule(method: str, *args: Any, **options: Any) -> Arm:
    def arm(stage: Any, _: asyncio.Task[str], nth: int, **which: Any) -> None:
        getattr(stage.emulator.faults, method)(*args, nth=nth, **options, **which)

    return arm


def _kill(when: str) -> Arm:
    def arm(stage: Any, _: asyncio.Task[str], nth: int, **which: Any) -> None:
        def hook(_: RequestRecord) -> None:
            stage.victim.kill()
            raise Killed

        stage.emulator.faults.call(hook, when=when, nth=nth, **which)

    return arm


def _cancel(when: str) -> Arm:
    def arm(stage: Any, task: asyncio.Task[str], nth: int, **which: Any) -> None:
        async def hook(_: RequestRecord) -> None:
            task.cancel()
            for _ in range(10):  # until it has reached every task
                await asyncio.sleep(0)

        stage.emulator.faults.call(hook, when=when, nth=nth, **which)

    return arm


KILLED_AFTER = Fault("killed after", _kill("after"))

FAULTS = [
    Fault("dropped before", _rule("drop_before"), bearable=True),
    Fault("dropped after", _rule("drop_after"), bearable=True),
    Fault("429 once", _rule("throttle", retry_after_ms=1), bearable=True),
    Fault("429 for long", _rule("throttle", retry_after_ms=1, times=None)),
    Fault("503", _rule("fail", 503), bearable=True),
    Fault("408", _rule("fail", 408), bearable=True),
    Fault("outage", _rule("drop_before", times=None)),
    Fault("answers lost", _rule("drop_after", times=None)),
    Fault("killed before", _kill("before")),
    KILLED_AFTER,
    Fault("cancelled before", _cancel("before")),
    Fault("cancelled after", _cancel("after")),
    Fault("cancelled before, in a block", _cancel("before"), in_block=True),
    Fault("cancelled after, in a block", _cancel("after"), in_block=True),
]


@dataclass(frozen=True)
class Case:
    """One cell of a matrix: a fault at the n-th request of an operation."""

    operation: str
    nth: int
    fault: str
    request: str = ""


@dataclass(frozen=True)
class Outcome:
    """What the callers were told, the first time and when they tried again."""

    case: Case
    answers: tuple[str, ...] = ()
    problem: str | None = None


def expect(holds: bool, problem: str) -> None:
    if not holds:
        raise Broken(problem)


def named(name: str, among: Sequence[Any]) -> Any:
    return next(each for each in among if each.name == name)


async def interrupted(
    stage: Any, fault: Fault, nth: int, work: Callable[[], Awaitable[Any]], **which: Any
) -> str:
    """Does the work with the fault at its n-th request, and returns what its caller is told."""
    started = asyncio.Event()

    async def first() -> str:
        await started.wait()
        return await attempt(work())

    task = asyncio.create_task(first())
    fault.arm(stage, task, nth, **which)
    started.set()
    return await task


def played(
    case: Case,
    play: Callable[[list[str]], Coroutine[Any, Any, None]],
    run: Callable[..., Any] = simulate,
) -> Outcome:
    """Plays the case, which notes the answers. The outcome names the problem, if there is one."""
    answers: list[str] = []
    problem = None
    try:
        run(lambda: play(answers))
    except Exception as error:
        problem = f"{type(error).__name__}: {error}"
    return Outcome(case, tuple(answers), problem)


def quietly() -> None:
    """Faults are expected here: the Azure SDK logs them too."""
    logging.getLogger().setLevel(logging.CRITICAL)


def in_processes(
    operations: Iterable[Any],
    cases: Callable[[Any], Iterable[Case]],
    run: Callable[[Any], Outcome],
    begin: Callable[[], None] = quietly,
) -> Iterator[list[Outcome]]:
    """All outcomes, operation by operation. `begin` prepares each process, this one too."""
    begin()
    with multiprocessing.Pool(initializer=begin) as pool:
        for operation in operations:
            yield pool.map(run, list(cases(operation)), chunksize=4)


def report(found: Iterable[list[Outcome]], run: str | None) -> int:
    """Prints the outcomes, operation by operation, and keeps the figures of the run if it was a
    whole one. Returns the exit code."""
    count = broken = 0
    for outcomes in found:
        wrong = [each for each in outcomes if each.problem]
        count, broken = count + len(outcomes), broken + len(wrong)
        told = Counter(each.answers[0] for each in outcomes if each.answers)
        print(*wrong, sep="\n", end="\n" if wrong else "")
        title = f"{outcomes[0].case.operation}: {len(outcomes):,} cases, {len(wrong)} broken"
        print(f"{title}: {dict(told)}", flush=True)
    print(f"{count:,} cases, {broken} broken.")
    if run is not None:
        record(run, cases=count, broken=broken)
    return 1 if broken or not count else 0  # a misspelt operation has no cases
