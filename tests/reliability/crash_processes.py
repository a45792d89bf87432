"""Several real processes on one emulator over HTTP, killed at moments that a seed chooses.

A killed process is replaced by a new one. At the end, every acknowledged event is stored exactly
once, and every guarantee holds. Half of the kills happen while replicas lag.

    python -m tests.reliability.crash_processes [--seed N] [--kills N] [--workers N] [--lag SECONDS]
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import multiprocessing
import os
import random
import signal
import sys
import time
from collections import Counter
from dataclasses import dataclass, field
from multiprocessing.connection import Connection, wait
from typing import Any

from cosmos_emulator import Emulator, Replicas
from cosmos_emulator.requests_log import RequestRecord
from cosmos_emulator.serving import serving
from cosmosservice import CosmosSessionService
from tests.reliability.guarantees import (
    APP,
    Broken,
    History,
    Picture,
    Where,
    check_guarantees,
)
from tests.reliability.worker import SESSIONS, work
from tests.support.figures import record

DEADLINE = 300  # seconds: a run that takes longer is stuck
_REQUESTS = (10, 60)  # between two kills


@dataclass
class Report:
    """The figures of a run."""

    seed: int
    lag: float = 0.0
    processes: int = 0
    kills: int = 0
    requests: int = 0
    reported: Counter[str] = field(default_factory=Counter)
    unanswered_stored: int = 0  # events whose writer died before it got an answer
    seconds: float = 0.0


class _Crew:
    """The living processes."""

    def __init__(self, endpoint: str, key: str, seed: int) -> None:
        self._context = multiprocessing.get_context("forkserver")
        self._context.set_forkserver_preload([work.__module__])
        self._address = endpoint, key
        self._seed = seed
        self.started = 0
        self.members: dict[Connection, Any] = {}

    def hire(self) -> None:
        self.started += 1
        mine, theirs = self._context.Pipe()
        arguments = (theirs, *self._address, f"p{self.started}", self._seed + self.started)
        process = self._context.Process(target=work, args=arguments, daemon=True)
        process.start()
        theirs.close()
        self.members[mine] = process

    def bury(self, pipe: Connection) -> None:
        self.members.pop(pipe).join()
        pipe.close()


def run(seed: int, *, kills: int, workers: int, lag: float = 0.0) -> Report:
    """Raises Broken if a guarantee does not hold. Replicas lag by up to `lag` seconds."""
    began = time.monotonic()
    report = Report(seed, lag)
    replicas = Replicas((0.0, lag), seed=seed) if lag else None
    history = History()
    dice = random.Random(seed)
    with Emulator(replicas=replicas) as emulator, serving(emulator) as endpoint:
        asyncio.run(_prepare(endpoint, emulator.key))
        crew = _Crew(endpoint, emulator.key, seed)
        for _ in range(workers):
            crew.hire()
        due = dice.randint(*_REQUESTS)
        counted = 0

        def maybe_kill(_: RequestRecord) -> None:
            nonlocal due, counted
            counted += 1
            if counted < due or report.kills >= kills:
                return
            due = counted + dice.randint(*_REQUESTS)
            living = [each for each in crew.members.values() if each.is_alive()]
            if living:
                os.kill(dice.choice(living).pid, signal.SIGKILL)
                report.kills += 1

        emulator.faults.call(maybe_kill, when="before", resource="docs", times=None)
        stopping = False
        while crew.members:
            if time.monotonic() - began > DEADLINE:
                raise Broken("G10: the processes do not come to an end")
            for pipe in wait(list(crew.members), timeout=1):
                try:
                    reported, name, where = pipe.recv()
                except (EOFError, OSError):
                    crew.bury(pipe)
                    if report.kills < kills:
                        crew.hire()
                    continue
                report.reported[reported] += 1
                _note(history, reported, name, where)
            if report.kills >= kills and not stopping:
                stopping = True
                for pipe in crew.members:
                    with contextlib.suppress(OSError):
                        pipe.send("stop")
        emulator.faults.clear()
        report.processes, report.requests = crew.started, counted
        picture = check_guarantees(emulator, history)
        asyncio.run(_look(endpoint, emulator, history, picture))
        events = {r["event_id"] for log in picture.logs.values() for r in log}
        report.unanswered_stored = len(history.unknown & events - history.stored.keys())
    report.seconds = time.monotonic() - began
    return report


def _note(history: History, reported: str, name: str, where: Where) -> None:
    if reported == "born":
        history.initial[name] = {"born": name}
    elif reported == "tried":
        history.unknown.add(name)
    elif reported == "stored":
        history.stored[name] = where
    else:
        history.unknown.discard(name)
        history.refused.add(name)


async def _prepare(endpoint: str, key: str) -> None:
    async with CosmosSessionService(endpoint=endpoint, credential=key, database="adk") as service:
        await service.list_sessions(app_name=APP)


async def _look(endpoint: str, emulator: Emulator, history: History, picture: Picture) -> None:
    """New readers see what is stored. The second one finds nothing left to do."""
    _catch_up(emulator)
    for where in SESSIONS:
        await _read(endpoint, emulator.key, where)
    _catch_up(emulator)
    picture = check_guarantees(emulator, history, flushed=True)
    for where in SESSIONS:
        seen = await _read(endpoint, emulator.key, where)
        if seen != picture.view(where):
            raise Broken(f"{where}: a reader sees {seen}, stored is {picture.view(where)}")
    if Picture(emulator).dump() != picture.dump():
        raise Broken("a second look writes something")


def _catch_up(emulator: Emulator) -> None:
    if emulator.replicas is not None:
        emulator.replicas.catch_up()


async def _read(endpoint: str, key: str, where: Where) -> Any:
    service = CosmosSessionService(
        endpoint=endpoint, credential=key, database="adk", ensure="never"
    )
    async with service:
        found = await service.get_session(app_name=APP, user_id=where[0], session_id=where[1])
        return found and ([each.id for each in found.events], found.state)


KILLS = 100  # figures of fewer are not kept


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description="Kills real processes at random moments.")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--kills", type=int, default=KILLS)
    parser.add_argument("--workers", type=int, default=6)
    parser.add_argument("--lag", type=float, default=0.3, help="seconds; 0: without")
    options = parser.parse_args(arguments)
    lags = [0.0, options.lag] if options.lag else [0.0]
    reports = []
    for number, lag in enumerate(lags):
        kills = options.kills // len(lags)
        reports.append(run(options.seed + number, kills=kills, workers=options.workers, lag=lag))
        print(reports[-1])
    if options.kills >= KILLS:
        record(
            "crash-processes",
            kills=sum(each.kills for each in reports),
            acknowledged=sum(each.reported["stored"] for each in reports),
            broken=0,  # a broken guarantee raises
        )
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
