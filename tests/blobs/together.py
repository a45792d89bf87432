"""Every request of every operation on a session's life is interrupted, with blobs.

The cases of tests/together/crash_matrix.py, with large payloads in Azurite: the process is killed
after each request to Cosmos DB, and after each to Blob Storage. They run in real time, so the next
steps take turns. A process with only the session service knows of the blobs from its settings.

    python -m tests.blobs.together [--every N] [OPERATION …]
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import itertools
import os
import sys
import tempfile
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, TypeVar
from unittest import mock

from cosmosservice.artifacts import blob_requests, blobs
from tests.blobs.azurite import Azurite, running
from tests.reliability.matrix import KILLED_AFTER, Fault, Outcome, played, quietly, report
from tests.reliability.simulation import Killed
from tests.together import crash_matrix as matrix
from tests.together.crash_matrix import NEXT, OPERATIONS, Case, Operation, Stage
from tests.together.processes import Process

T = TypeVar("T")


def _arm(stage: BlobStage, _: Any, nth: int) -> None:
    stage.armed, stage.killed_after = stage.victim, nth


KILLED_AFTER_BLOB = Fault("killed after a blob request", _arm)


@dataclass(frozen=True)
class Prepared:
    """What the store and the blob container hold before an operation."""

    content: bytes | None = None
    blobs: tuple[tuple[str, bytes], ...] = ()


class Transport(blob_requests.Transport):
    """The service's own transport, of a process that may be killed after a request."""

    def __init__(self, stage: BlobStage) -> None:
        super().__init__()
        self._stage, self._process = stage, stage.latest

    async def send(self, request: Any, **options: Any) -> Any:
        if self._process.wire.dead:
            raise Killed
        response = await super().send(request, **options)
        if self._process is self._stage.armed:
            self._stage.blob_requests += 1
            if self._stage.blob_requests == self._stage.killed_after:
                self._process.kill()
                raise Killed
        return response


class BlobStage(Stage):
    """Its processes work one after the other: a client belongs to the latest."""

    faults: ClassVar = {each.name: each for each in (KILLED_AFTER, KILLED_AFTER_BLOB)}
    latest: Process
    armed: Process | None = None

    def __init__(self, azurite: Azurite, prepared: Prepared, *, lag: bool = False) -> None:
        super().__init__(lag=lag, content=prepared.content)
        self.container = azurite.container()
        self._url = azurite.url(str(self.container.container_name))
        self.blob_requests, self.killed_after = 0, -1
        self._processes: list[Process] = []
        for name, data in prepared.blobs:
            self.container.upload_blob(name, data)

    def process(self, **options: Any) -> Process:
        with mock.patch.dict(os.environ, {"COSMOSDB_ARTIFACT_BLOBS": self._url}):
            self.latest = Process(self.emulator, **options)
        self._processes.append(self.latest)
        return self.latest

    def blobs_left(self) -> list[str]:
        return [each.name for each in self.container.list_blobs(include=["uncommittedblobs"])]

    def prepared(self) -> Prepared:
        content = (
            (name, self.container.download_blob(name).readall()) for name in self.blobs_left()
        )
        return Prepared(self.emulator.dump(), tuple(content))

    async def end(self) -> None:
        for each in self._processes:
            each.wire.dead = False  # so that it can close
            with contextlib.suppress(Killed):  # the SDK keeps what its health check was told
                await each.sessions.close()
        self.container.close()
        self.emulator.close()

    def close(self) -> None:
        """`end` does."""


async def _on(make: Callable[[], BlobStage], work: Callable[[BlobStage], Awaitable[T]]) -> T:
    """Does the work on a stage that is made for it."""
    options, stage = blobs.client_options, make()

    def with_transport(size: int) -> dict[str, Any]:
        return options(size) | {"transport": Transport(stage)}

    with mock.patch.object(blobs, "client_options", with_transport):
        try:
            return await work(stage)
        finally:
            await stage.end()


def prepared(operation: Operation, azurite: Azurite) -> Prepared:
    async def fill(stage: BlobStage) -> Prepared:
        await matrix.prepare(stage, operation)
        return stage.prepared()

    return asyncio.run(_on(lambda: BlobStage(azurite, Prepared()), fill))


def requests_of(operation: Operation, make: Callable[[], BlobStage]) -> dict[Fault, int]:
    """How many it sends, by the fault that counts them."""

    async def count(stage: BlobStage) -> dict[Fault, int]:
        stage.emulator.clear_requests()
        stage.armed = stage.process()
        await operation.run(stage.armed)
        return {KILLED_AFTER: len(stage.emulator.requests), KILLED_AFTER_BLOB: stage.blob_requests}

    return asyncio.run(_on(make, count))


def cases(operation: Operation, make: Callable[[], BlobStage]) -> Iterator[Case]:
    """Every request. The next steps take turns, and so do processes and lag."""
    steps = itertools.cycle(itertools.product((True, False), (True, False), NEXT))
    for fault, count in requests_of(operation, make).items():
        for nth in range(1, count + 1):
            whole, lag, then = next(steps)
            yield Case(operation.name, nth, fault.name, "", then, whole, lag)


def outcomes(operation: Operation, azurite: Azurite, *, every: int = 1) -> Iterator[Outcome]:
    make = partial(BlobStage, azurite, prepared(operation, azurite))
    for case in itertools.islice(cases(operation, make), 0, None, every):
        yield _outcome(case, partial(make, lag=case.lag))


def _outcome(case: Case, make: Callable[[], BlobStage]) -> Outcome:
    return played(
        case,
        lambda answers: _on(make, lambda stage: matrix.play(case, stage, answers)),
        lambda work: asyncio.run(work()),
    )


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.blobs.together")
    parser.add_argument("--every", type=int, default=1, help="only every n-th case")
    parser.add_argument("operations", nargs="*")
    options = parser.parse_args(arguments)
    names, every = options.operations, options.every
    chosen = [each for each in OPERATIONS if not names or each.name in names]
    quietly()
    with tempfile.TemporaryDirectory() as folder, running(Path(folder)) as azurite:
        found = (list(outcomes(each, azurite, every=every)) for each in chosen)
        return report(found, "together with blobs" if not names and every == 1 else None)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
