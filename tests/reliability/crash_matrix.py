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
import json
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import partial

from cosmos_emulator import Replicas
from cosmos_emulator.requests_log import RequestRecord
from cosmosservice.errors import StaleSessionError
from tests.reliability import matrix
from tests.reliability.guarantees import APP, Picture, View, check_guarantees
from tests.reliability.matrix import (
    FAULTS,
    GIVEN_UP,
    NO_ANSWER,
    Fault,
    Outcome,
    expect,
    interrupted,
    named,
    played,
)
from tests.reliability.operations import OPERATIONS, WHERE, Operation, Stage, attempt
from tests.reliability.simulation import simulate
from tests.support.figures import record


@dataclass(frozen=True)
class Case(matrix.Case):
    """`look`: a reader comes before the operation is tried again. `lag`: the replicas stop before
    the operation."""

    look: bool = False
    lag: bool = False


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
    for nth, request in enumerate(requests_of(operation), 1):
        for number, fault in enumerate(faults):
            look, third = (nth + number) % 2 == 0, (nth + number) % 3 == 0
            lags = {"no": [False], "yes": [True], "both": [False, True], "split": [third]}[lag]
            for lags_here in lags:
                yield Case(operation.name, nth, fault.name, request, look, lags_here)


def run(case: Case) -> Outcome:
    return played(case, lambda answers: _play(case, answers))


async def _play(case: Case, answers: list[str]) -> None:
    operation: Operation = named(case.operation, OPERATIONS)
    fault: Fault = named(case.fault, FAULTS)
    refusal = operation.refusal.__name__ if operation.refusal else None
    stage = Stage(replicas=Replicas() if case.lag else None, **operation.options)
    if fault.in_block:
        await stage.victim.service.__aenter__()
    await operation.prepare(stage)
    before, after = operation.before, operation.after
    if stage.emulator.replicas is not None:
        stage.emulator.replicas.hold()

    first = await interrupted(stage, fault, case.nth, lambda: _operate(operation, stage))
    answers.append(first)
    stage.emulator.faults.clear()
    allowed = {refusal or "ok"}
    if not fault.bearable:
        allowed |= GIVEN_UP | NO_ANSWER
        if refusal and case.fault.startswith("cancelled"):
            allowed.add("ok")
    expect(first in allowed, f"the caller was told {first}")
    if stage.event is not None and not fault.bearable:
        stage.history.cut_off.add(stage.event.id)
    if not fault.bearable:
        stage.history.cut_off.update(operation.uploads)
    _session_object(stage)

    alive = not stage.victim.wire.dead
    possible = [after] if first in ("ok", "stored, state follows") else [before, after]
    if case.look:
        await _check(stage, operation, [before, after] if case.lag else possible, lag=case.lag)
    if not alive and operation.refusal is StaleSessionError:
        return  # a new attempt would load the session again: another operation
    process = stage.victim if alive else stage.fresh()
    again = await attempt(operation.run(stage, process))
    answers.append(again)
    allowed = {refusal or "ok"}
    if operation.again is not None:
        allowed.add(operation.again.__name__)
    expect(again in allowed, f"when tried again, the caller was told {again}")
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
    expect(seen in possible, f"a reader sees {seen}, not one of {possible}")
    if lag:  # another process may see an older state
        check_guarantees(stage.emulator, stage.history)
        return
    picture = check_guarantees(stage.emulator, stage.history, flushed=seen is not None)
    again = await _look(stage, operation)
    expect(again == seen, f"a second reader sees {again} instead of {seen}")
    expect(Picture(stage.emulator).dump() == picture.dump(), "a second look writes something")


async def _look(stage: Stage, operation: Operation, *, lag: bool = False) -> View:
    reader = stage.fresh()
    user, session = operation.where
    expected = Picture(stage.emulator).view(operation.where)
    found = await reader.service.get_session(app_name=APP, user_id=user, session_id=session)
    seen = None if found is None else ([each.id for each in found.events], found.state)
    expect(lag or seen == expected, f"a reader sees {seen} where {expected} is stored")
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
        expect(held == there, f"the session object holds {held}, the store {there}")


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
    found = matrix.in_processes(chosen, partial(cases, lag=options.lag), run)
    for number, some in enumerate(found, 1):
        outcomes += some
        title = f"{number} of {len(chosen)}: {some[0].case.operation}"
        print(f"{title}: {len(some):,} cases", file=sys.stderr, flush=True)
    if options.json:
        print(json.dumps([asdict(each) for each in outcomes], indent=1))
    else:
        _print(outcomes)
    broken = sum(each.problem is not None for each in outcomes)
    if not options.operations and options.lag == "both":
        record("sessions", cases=len(outcomes), broken=broken)
    return 1 if broken else 0


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
                "BROKEN" if each.problem else _WORDS.get(each.answers[0], each.answers[0])
                for each in mine
                if each.case.fault == fault.name
            )
            cells.append("\n".join(f"{count} {word}" for word, count in answers.most_common()))
        table.add_row(operation, str(max(each.case.nth for each in mine)), *cells)
    console.print(table)
    broken = [each for each in outcomes if each.problem]
    for each in broken:
        console.print(f"{each.case}: {each.answers}\n    {each.problem}", markup=False)
    console.print("; ".join(f"{word}: {name}" for name, word in _WORDS.items()))
    console.print(f"{len(outcomes)} cases, {len(broken)} broken.")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
