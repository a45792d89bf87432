"""Every request of every artifact operation, to Cosmos DB and to Blob Storage, is interrupted.

The same cases as tests/artifacts/crash_matrix.py, with large payloads in Azurite. They run on a
real event loop in real time, so there are fewer faults.

    python -m tests.blobs.crash_matrix [OPERATION …]
"""

from __future__ import annotations

import asyncio
import itertools
import sys
import tempfile
from collections.abc import Callable, Coroutine, Iterator
from pathlib import Path
from typing import Any
from unittest import mock

from azure.core.exceptions import ServiceResponseError
from azure.storage.blob import ContainerClient

from cosmos_emulator import Emulator
from cosmosservice.account.retries import Retry
from cosmosservice.artifacts import blob_requests, blobs
from tests.artifacts import crash_matrix as matrix
from tests.artifacts.crash_matrix import OPERATIONS, Operation
from tests.artifacts.processes import Process, documents, store
from tests.blobs.azurite import Azurite, running
from tests.reliability.matrix import FAULTS, Fault, Outcome, quietly, report
from tests.reliability.simulation import Killed

CHOSEN = ("dropped after", "killed before", "killed after")
BLOB_FAULTS = ("dropped before", "dropped after", "killed before", "killed after")


class Wire:
    """The requests of all blob clients of a stage, and what happens to them."""

    def __init__(self) -> None:
        self.sent: list[str] = []
        self.fails: tuple[int, str] | None = None
        self.counting = False
        self.victim: Process | None = None


class Transport(blob_requests.Transport):
    """The service's own transport, with a fault at one request."""

    def __init__(self, wire: Wire, process: Process) -> None:
        super().__init__()
        self._wire, self._process = wire, process

    async def send(self, request: Any, **options: Any) -> Any:
        wire = self._wire
        if self._process.wire.dead:
            raise Killed
        if not wire.counting or self._process is not wire.victim:
            return await super().send(request, **options)
        wire.sent.append(request.method)
        due = wire.fails is not None and len(wire.sent) == wire.fails[0]
        fault = wire.fails[1] if due and wire.fails else ""
        if fault.endswith("before"):
            self._fail(fault)
        response = await super().send(request, **options)
        if fault:
            self._fail(fault)
        return response

    def _fail(self, fault: str) -> None:
        if fault.startswith("killed"):
            self._process.kill()
            raise Killed
        raise ServiceResponseError("the connection was dropped")


class BlobStage:
    """A store, a blob container, and the process whose requests fail."""

    patience = 0.05
    commits = "create"

    def __init__(self, azurite: Azurite) -> None:
        self.emulator: Emulator = store()
        self.container: ContainerClient = azurite.container()
        self._url = azurite.url(str(self.container.container_name))
        self.wire = Wire()
        self._processes: list[Process] = []
        self._victim = self.process()

    @property
    def victim(self) -> Process:
        return self._victim

    @victim.setter
    def victim(self, process: Process) -> None:
        self._victim = self.wire.victim = process

    def process(self) -> Process:
        made = Process(self.emulator, blobs=self._url)
        options = blobs.client_options
        opening = made.service._stores.open

        async def open_(connection: Any) -> Any:
            def with_transport(size: int) -> dict[str, Any]:
                return options(size) | {"transport": Transport(self.wire, made)}

            with mock.patch.object(blobs, "client_options", with_transport):
                return await opening(connection)

        made.service._stores.open = open_  # type: ignore[method-assign]
        self._processes.append(made)
        return made

    async def close(self) -> None:
        for process in self._processes:
            await process.service.close()
        self.container.close()
        self.emulator.close()

    def disarm(self) -> None:
        self.emulator.faults.clear()
        self.wire.counting = False

    async def blobs_left(self) -> list[str]:
        """The blobs that no version names."""
        versions = documents(self.emulator, "version")
        owned = {each["payload"]["upload"] for each in versions if "payload" in each}
        found = [each.name for each in self.container.list_blobs(include=["uncommittedblobs"])]
        return [name for name in found if name.partition("/")[2] not in owned]


def _run(work: Callable[[], Coroutine[Any, Any, Any]]) -> Any:
    return asyncio.run(work())


def outcomes(operation: Operation, azurite: Azurite) -> Iterator[Outcome]:
    chosen = [fault for fault in FAULTS if fault.name in CHOSEN]
    make = lambda: BlobStage(azurite)  # noqa: E731
    at_once = Retry(4, 0.0, 0.0)
    with (
        mock.patch.object(blobs, "COPY", at_once),
        mock.patch.object(blob_requests, "REQUEST", at_once),
    ):
        yield from matrix.outcomes(operation, chosen, make, _run)
        for nth in itertools.count(1):
            reached = False
            for name in BLOB_FAULTS:
                stages: list[BlobStage] = []

                def arm(stage: BlobStage, _: Any, n: int, fault: str = name, **which: Any) -> None:
                    stage.wire.victim = stage.victim
                    stage.wire.fails, stage.wire.counting = (n, fault), True
                    stages.append(stage)  # noqa: B023

                fault = Fault(f"blob {name}", arm, bearable=name.startswith("dropped"))
                found = matrix.play(operation, fault, nth, "blob request", make, _run)
                reached = reached or len(stages[0].wire.sent) >= nth
                yield found
            if not reached:
                break


def main(names: list[str]) -> int:
    quietly()
    chosen = [each for each in OPERATIONS if not names or each.name in names]
    with tempfile.TemporaryDirectory() as folder, running(Path(folder)) as azurite:
        found = (list(outcomes(operation, azurite)) for operation in chosen)
        return report(found, None if names else "blobs")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
