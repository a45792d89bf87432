"""Every request of every operation, failing in every way.

The requests are those that the emulator logs when nothing fails, so that new requests are covered
automatically. Each case has a store of its own and runs in virtual time:

    the operation, with the fault at its n-th request
    → a new process looks: as before or as after, never between; every guarantee holds
    → the operation is tried again: it succeeds, or says truthfully why not
    → a new process looks, and a second look finds nothing left to write

With lag, the replicas stop before the operation: a process that took no part in it may see the
session as it was before. Once the replicas have caught up, the same holds as without lag.

    python -m tests.reliability.crash_matrix [--json] [--lag no|yes|both] [OPERATION …]
"""

from __future__ import annotations

import argparse
import asyncio
import json
import logging
import multiprocessing
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from cosmos_emulator import Replicas
from cosmos_emulator.requests_log import RequestRecord
from cosmosservice.errors import StaleSessionError
from tests.reliability.guarantees import APP, Broken, Picture, View, check_guarantees
from tests.reliability.operations import OPERATIONS, WHERE, Operation, Stage, attempt
from tests.reliability.simulation import Killed, simulate
from tests.support.figures import record

GIVEN_UP = {"UnavailableError", "ThrottledError", "stored, state follows"}
NO_ANSWER = {"killed", "cancelled"}

Arm = Callable[[Stage, asyncio.Task[str], int], None]


@dataclass(frozen=True)
class Fault:
    """`arm` makes the n-th request fail. `bearable`: the caller should not notice. `in_block`: the
    service lives on its caller's loop, so that a cancellation reaches into it."""

    name: str
    arm: Arm
    bearable: bool = False
    in_block: bool = False


def _rule(method: str, *args: Any, **options: Any) -> Arm:
    return lambda stage, _, n: getattr(stage.emulator.faults, method)(*args, nth=n, **options)


def _kill(when: str) -> Arm:
    def arm(stage: Stage, _: asyncio.Task[str], n: int) -> None:
        def hook(_: RequestRecord) -> None:
            stage.victim.kill()
            raise Killed

        stage.emulator.faults.call(hook, when=when, nth=n)  # type: ignore[arg-type]

    return arm


def _cancel(when: str) -> Arm:
    def arm(stage: Stage, task: asyncio.Task[str], n: int) -> None:
        async def hook(_: RequestRecord) -> None:
            task.cancel()
            for _ in range(10):  # until it has reached every task
                await asyncio.sleep(0)

        stage.emulator.faults.call(hook, when=when, nth=n)  # type: ignore[arg-type]

    return arm


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
    Fault("killed after", _kill("after")),
    Fault("cancelled before", _cancel("before")),
    Fault("cancelled after", _cancel("after")),
    Fault("cancelled before, in a block", _cancel("before"), in_block=True),
    Fault("cancelled after, in a block", _cancel("after"), in_block=True),
]


@dataclass(frozen=True)
class Case:
    """One cell of the matrix. `look`: a reader comes before the operation is tried again. `lag`:
    the replicas stop before the operation."""

    operation: str
    place: int
    request: str
    fault: str
    look: bool
    lag: bool = False


@dataclass(frozen=True)
class Outcome:
    """What the callers were told, the first time and when they tried again."""

    case: Case
    first: str
    again: str
    problem: str | None = None


def requests_of(operation: Operation) -> list[str]:
    """The requests that the operation sends when nothing fails, in order."""

    async def record() -> list[str]:
        for_looking, stage = Stage(**operation.options), Stage(**operation.options)
        await operation.prepare(for_looking)
        assert await _look(for_looking, operation) == operation.before
        await operation.prepare(stage)
        stage.emulator.clear_requests()
        answers = await attempt(_operate(operation, stage))
        assert answers == (operation.refusal.__name__ if operation.refusal else "ok")
        sent = [_describe(each) for each in stage.emulator.requests]
        assert await _look(stage, operation) == operation.after
        return sent

    return simulate(record)


def _describe(record: RequestRecord) -> str:
    what = "" if record.resource == "docs" else f" ({record.resource})"
    return f"{record.operation} {record.container}{what}"


def cases(
    operation: Operation, faults: Sequence[Fault] = FAULTS, *, lag: str = "no"
) -> Iterator[Case]:
    """All cases without lag, with it, with both, or `split`: some with lag and some without."""
    for place, request in enumerate(requests_of(operation), 1):
        for number, fault in enumerate(faults):
            look, third = (place + number) % 2 == 0, (place + number) % 3 == 0
            lags = {"no": [False], "yes": [True], "both": [False, True], "split": [third]}[lag]
            for lags_here in lags:
                yield Case(operation.name, place, request, fault.name, look, lags_here)


def run(case: Case) -> Outcome:
    """Runs the case. The outcome names the problem, if there is one."""
    answers = ["", ""]
    try:
        simulate(lambda: _play(case, answers))
        problem = None
    except Exception as error:
        problem = f"{type(error).__name__}: {error}"
    return Outcome(case, answers[0], answers[1], problem)


async def _play(case: Case, answers: list[str]) -> None:
    operation = next(each for each in OPERATIONS if each.name == case.operation)
    fault = next(each for each in FAULTS if each.name == case.fault)
    refusal = operation.refusal.__name__ if operation.refusal else None
    stage = Stage(replicas=Replicas() if case.lag else None, **operation.options)
    if fault.in_block:
        await stage.victim.service.__aenter__()
    await operation.prepare(stage)
    before, after = operation.before, operation.after
    if stage.emulator.replicas is not None:
        stage.emulator.replicas.hold()

    started = asyncio.Event()

    async def first() -> str:
        await started.wait()
        return await attempt(_operate(operation, stage))

    task = asyncio.create_task(first())
    fault.arm(stage, task, case.place)
    started.set()
    answers[0] = await task
    stage.emulator.faults.clear()
    allowed = {refusal or "ok"}
    if not fault.bearable:
        allowed |= GIVEN_UP | NO_ANSWER
        if refusal and case.fault.startswith("cancelled"):
            allowed.add("ok")
    _expect(answers[0] in allowed, f"the caller was told {answers[0]}")
    if stage.event is not None and not fault.bearable:
        stage.history.cut_off.add(stage.event.id)
    if not fault.bearable:
        stage.history.cut_off.update(operation.uploads)
    _session_object(stage)

    alive = not stage.victim.wire.dead
    possible = [after] if answers[0] in ("ok", "stored, state follows") else [before, after]
    if case.look:
        await _check(stage, operation, [before, after] if case.lag else possible, lag=case.lag)
    if not alive and operation.refusal is StaleSessionError:
        return  # a new attempt would load the session again: another operation
    process = stage.victim if alive else stage.fresh()
    answers[1] = await attempt(operation.run(stage, process))
    allowed = {refusal or "ok"}
    if operation.again is not None:
        allowed.add(operation.again.__name__)
    _expect(answers[1] in allowed, f"when tried again, the caller was told {answers[1]}")
    if alive:
        _session_object(stage)
    await process.service.flush()
    if stage.emulator.replicas is not None:
        check_guarantees(stage.emulator, stage.history)
        stage.emulator.replicas.catch_up()
    await _check(stage, operation, [after])


async def _operate(operation: Operation, stage: Stage) -> None:
    await operation.run(stage, stage.victim)
    await stage.victim.service.flush()


async def _check(
    stage: Stage, operation: Operation, possible: list[View], *, lag: bool = False
) -> None:
    """Two new processes look, one after the other."""
    check_guarantees(stage.emulator, stage.history)
    seen = await _look(stage, operation, lag=lag)
    _expect(seen in possible, f"a reader sees {seen}, not one of {possible}")
    if lag:  # another process may see an older state
        check_guarantees(stage.emulator, stage.history)
        return
    picture = check_guarantees(stage.emulator, stage.history, flushed=seen is not None)
    again = await _look(stage, operation)
    _expect(again == seen, f"a second reader sees {again} instead of {seen}")
    _expect(Picture(stage.emulator).dump() == picture.dump(), "a second look writes something")


async def _look(stage: Stage, operation: Operation, *, lag: bool = False) -> View:
    reader = stage.fresh()
    user, session = operation.where
    expected = Picture(stage.emulator).view(operation.where)
    found = await reader.service.get_session(app_name=APP, user_id=user, session_id=session)
    seen = None if found is None else ([each.id for each in found.events], found.state)
    _expect(lag or seen == expected, f"a reader sees {seen} where {expected} is stored")
    await reader.service.close()
    return seen


def _session_object(stage: Stage) -> None:
    """The caller's object holds an event if and only if the store does."""
    if stage.event is None or stage.victim.wire.dead or stage.session is None:
        return
    held = [each.id for each in stage.session.events]
    log = Picture(stage.emulator).live(WHERE)
    there = [each["event_id"] for each in log if each["document_type"] == "adk_event"]
    answers = stage.event.id in stage.history.stored
    if answers:
        _expect(held == there, f"the session object holds {held}, the store {there}")


def _expect(holds: bool, problem: str) -> None:
    if not holds:
        raise Broken(problem)


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description="Fails every request of every operation.")
    parser.add_argument("operations", nargs="*", help="only these; default: all")
    parser.add_argument(
        "--lag", choices=["no", "yes", "both"], default="both", help="replicas that stop"
    )
    parser.add_argument("--json", action="store_true", help="every case, instead of the table")
    options = parser.parse_args(arguments)
    chosen = [
        each for each in OPERATIONS if not options.operations or each.name in options.operations
    ]
    outcomes: list[Outcome] = []
    with multiprocessing.Pool(initializer=quietly) as pool:
        for number, operation in enumerate(chosen, 1):
            found = pool.map(run, list(cases(operation, lag=options.lag)), chunksize=4)
            outcomes += found
            title = f"{number} of {len(chosen)}: {operation.name}"
            print(f"{title}: {len(found):,} cases", file=sys.stderr, flush=True)
    if options.json:
        print(json.dumps([asdict(each) for each in outcomes], indent=1))
    else:
        _print(outcomes)
    broken = sum(each.problem is not None for each in outcomes)
    if not options.operations and options.lag == "both":
        record("sessions", cases=len(outcomes), broken=broken)
    return 1 if broken else 0


def quietly() -> None:
    """Faults are expected here: the Azure SDK logs them too."""
    logging.getLogger().setLevel(logging.CRITICAL)


_WORDS = {
    "UnavailableError": "no answer",
    "ThrottledError": "throttled",
    "stored, state follows": "unmerged",
    "StaleSessionError": "stale",
    "SessionNotFoundError": "not found",
}


def _print(outcomes: list[Outcome]) -> None:
    """What callers were told the first time, and how often, by operation and fault."""
    from rich.console import Console
    from rich.table import Table

    console = Console(width=None if sys.stdout.isatty() else 200, emoji=False)
    table = Table("operation", "requests", *(fault.name for fault in FAULTS))
    for operation in dict.fromkeys(each.case.operation for each in outcomes):
        mine = [each for each in outcomes if each.case.operation == operation]
        cells = []
        for fault in FAULTS:
            answers = Counter(
                "BROKEN" if each.problem else _WORDS.get(each.first, each.first)
                for each in mine
                if each.case.fault == fault.name
            )
            cells.append("\n".join(f"{count} {word}" for word, count in answers.most_common()))
        table.add_row(operation, str(max(each.case.place for each in mine)), *cells)
    console.print(table)
    broken = [each for each in outcomes if each.problem]
    for each in broken:
        console.print(f"{each.case}: {each.first}, {each.again}\n    {each.problem}", markup=False)
    console.print("; ".join(f"{word}: {name}" for name, word in _WORDS.items()))
    console.print(f"{len(outcomes)} cases, {len(broken)} broken.")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
