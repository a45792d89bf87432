"""The emulator: storage, gateway, faults and request log in one object, and its transports."""

from __future__ import annotations

import asyncio
import inspect
import itertools
import os
import threading
import time
from collections.abc import Awaitable, Generator
from typing import TYPE_CHECKING, Any

from .auth import EMULATOR_KEY
from .clock import Clock
from .faults import ConnectionDropped, Faults
from .gateway import Gateway
from .messages import Flaw, Request, Response
from .replicas import Replicas
from .requests_log import RequestLog
from .storage import Storage

if TYPE_CHECKING:
    from .transports import EmulatorAsyncTransport, EmulatorTransport

# https, because the SDK sends Entra ID tokens only over https; in process nothing is encrypted.
# Each emulator has its own name, because the SDK caches the ranges of an endpoint for all clients
# of the process.
ENDPOINT = "https://emulator-{}.localhost:8081/"
_numbers = itertools.count(1)

Step = float | Awaitable[Any]


class Emulator:
    """A Cosmos DB account in this process, in a file or in memory.

    One object may serve several threads and several event loops at once. A new container gets at
    least ``partitions`` physical partitions, whose answers a client has to merge.
    """

    def __init__(
        self,
        path: str | os.PathLike[str] = ":memory:",
        *,
        key: str = EMULATOR_KEY,
        faults: Faults | None = None,
        partitions: int = 1,
        replicas: Replicas | None = None,
    ) -> None:
        if partitions < 1:
            raise ValueError(f"a container needs at least one partition, not {partitions}")
        self.key = key
        self.endpoint = ENDPOINT.format(next(_numbers))
        self.faults = faults if faults is not None else Faults()
        self.requests = RequestLog()
        self.clock = Clock()
        self.replicas = replicas
        self.closed = threading.Event()
        self._storage = Storage(os.fspath(path))
        if replicas is not None:
            replicas.follow(self._storage.keep_history(replicas.attach(self.clock.elapsed)))
        self._gateway = Gateway(self._storage, self.clock, key, self.endpoint, partitions, replicas)

    def async_transport(self) -> EmulatorAsyncTransport:
        """For ``azure.cosmos.aio.CosmosClient(endpoint, key, transport=…)``."""
        from .transports import EmulatorAsyncTransport

        return EmulatorAsyncTransport(self)

    def transport(self) -> EmulatorTransport:
        """For ``azure.cosmos.CosmosClient(endpoint, key, transport=…)``."""
        from .transports import EmulatorTransport

        return EmulatorTransport(self)

    def split(self, container: str) -> None:
        """Split every range of a container in two, as the service does when a container has grown.
        Clients that use the old ranges get 410, and read the new ones."""
        self._gateway.split(container)

    def clear_requests(self) -> None:
        self.requests.clear()

    @property
    def path(self) -> str:
        """The file, or ``:memory:``."""
        return self._storage.path

    def erase_remnants(self) -> bool:
        """Rewrite the file, so that it holds no bytes of deleted or replaced data. False if another
        process is using the file: its write-ahead log may still hold some."""
        return self._storage.rewrite()

    def close(self) -> None:
        self.closed.set()
        self._storage.close()

    def __enter__(self) -> Emulator:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<Emulator {self._storage.path}>"

    async def exchange_async(self, request: Request, endpoint: str | None = None) -> Response:
        """Answer a request; delays do not block other tasks of the loop."""
        steps = self._exchange(request, endpoint)
        try:
            step = next(steps)
            while True:
                try:
                    if isinstance(step, float):
                        await asyncio.sleep(step)
                    else:
                        await step
                except BaseException as error:
                    step = steps.throw(error)
                else:
                    step = steps.send(None)
        except StopIteration as done:
            return done.value  # type: ignore[no-any-return]

    def exchange(self, request: Request, endpoint: str | None = None) -> Response:
        """Answer a request; delays block the thread."""
        steps = self._exchange(request, endpoint)
        try:
            step = next(steps)
            while True:
                if not isinstance(step, float):
                    steps.close()
                    raise TypeError("a hook that is a coroutine needs an asynchronous client")
                time.sleep(step)
                step = steps.send(None)
        except StopIteration as done:
            return done.value  # type: ignore[no-any-return]

    def _exchange(self, request: Request, endpoint: str | None) -> Generator[Step, None, Response]:
        """Process a request, including faults. Yields what the caller has to wait for."""
        record = self.requests.begin(request)
        response: Response | None = None
        try:
            rule = self.faults.choose(record)
            wait = self.faults.latency + (rule.delay if rule else 0.0)
            if wait:
                yield wait
            if rule is None:
                response = self._gateway.handle(request, endpoint)
                return response
            record.fault = rule.name
            if rule.before is not None:
                result = rule.before(record)
                if inspect.isawaitable(result):
                    yield result
            if rule.drop == "before":
                raise ConnectionDropped
            if rule.error is not None:
                response = rule.error.response(request.headers.get("x-ms-activity-id", ""))
                return response
            if rule.flaw is not None and not rule.applied:
                return Response(0, flaw=rule.flaw)
            answer = self._gateway.handle(request, endpoint)
            if rule.after is not None:
                result = rule.after(record)
                if inspect.isawaitable(result):
                    yield result
            if rule.drop == "after":
                raise ConnectionDropped
            if rule.flaw is not None:
                return _flawed(answer, rule.flaw)
            response = answer
            return response
        finally:
            if request.sight is not None:
                record.served_lsn = request.sight.lsn
                record.stale = request.sight.lsn < request.sight.newest
            self.requests.end(record, response)


def _flawed(answer: Response, flaw: Flaw) -> Response:
    if flaw.kind == "cut" and not answer.body:
        raise ConnectionDropped  # There is no body to cut in half.
    if flaw.kind == "endless" and answer.status in (204, 304):
        flaw = Flaw("silent")  # These have no body that could be endless.
    return Response(answer.status, answer.headers, answer.body, flaw)
