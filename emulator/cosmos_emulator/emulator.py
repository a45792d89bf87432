"""The emulator: storage, gateway, faults and request log in one object, and its transports."""

from __future__ import annotations

import inspect
import itertools
import os
import threading
import time
from collections.abc import Awaitable, Collection, Generator
from typing import TYPE_CHECKING, Any

from cosmos_emulator.aside import Aside, TakesLong
from cosmos_emulator.auth import EMULATOR_KEY
from cosmos_emulator.clock import Clock
from cosmos_emulator.deviations import parse
from cosmos_emulator.faults import ConnectionDropped, Faults
from cosmos_emulator.gateway import Gateway
from cosmos_emulator.likeness import Handle, Likeness
from cosmos_emulator.messages import Flaw, Request, Response
from cosmos_emulator.replicas import Replicas
from cosmos_emulator.requests_log import RequestLog
from cosmos_emulator.rules import DEFAULT_CAPABILITIES, Rules
from cosmos_emulator.storage import Storage

if TYPE_CHECKING:
    from cosmos_emulator.transports import EmulatorAsyncTransport, EmulatorTransport

# https, because the SDK sends Entra ID tokens only over https; in process nothing is encrypted.
# Each emulator has its own name, because the SDK caches the ranges of an endpoint for all clients
# of the process.
ENDPOINT = "https://emulator-{}.localhost:8081/"
_numbers = itertools.count(1)

# What an exchange waits for: seconds, a coroutine of the user, or a request that takes long.
Step = float | Awaitable[Any] | Request


class Emulator:
    """A Cosmos DB account in this process, in a file or in memory.

    One object may serve several threads and several event loops at once. A new container gets at
    least `partitions` physical partitions, whose answers a client has to merge. With
    `enforce_throughput` each of them answers 429 beyond its share of the RU/s.
    `like="vnext"` behaves as Microsoft's public container (deviations.py).

    What Azure refuses is refused. `lenient=True` answers queries that a client has to merge as
    long as a container has one physical partition. `capabilities` are those of the account:
    vector and full-text search unless told otherwise. `consistency` is its default level.
    """

    def __init__(
        self,
        path: str | os.PathLike[str] = ":memory:",
        *,
        key: str = EMULATOR_KEY,
        faults: Faults | None = None,
        partitions: int = 1,
        replicas: Replicas | None = None,
        lenient: bool = False,
        capabilities: Collection[str] = DEFAULT_CAPABILITIES,
        consistency: str = "Session",
        like: str | None = None,
        serverless: bool = False,
        enforce_throughput: bool = False,
        _content: bytes | None = None,
    ) -> None:
        if partitions < 1:
            raise ValueError(f"a container needs at least one partition, not {partitions}")
        deviations = parse(like) if like is not None else frozenset()
        rules = Rules(lenient, frozenset(capabilities), consistency, deviations)
        self.key = key
        self.endpoint = ENDPOINT.format(next(_numbers))
        self.faults = faults if faults is not None else Faults()
        self.requests = RequestLog()
        self.clock = Clock()
        self.replicas = replicas
        self._aside = Aside()
        self.closed = threading.Event()
        self._storage = Storage(os.fspath(path), _content)
        if replicas is not None:
            replicas.follow(self._storage.keep_history(replicas.attach(self.clock.elapsed)))
        self._gateway = Gateway(
            self._storage,
            self.clock,
            key,
            self.endpoint,
            partitions,
            replicas,
            rules,
            serverless=serverless,
            enforce_throughput=enforce_throughput,
        )
        self._handle: Handle = self._gateway.handle
        if deviations:
            self._handle = Likeness(deviations, self._handle, self._gateway.key_of).handle

    @classmethod
    def load(cls, content: bytes, **options: Any) -> Emulator:
        """An emulator in memory that holds what `dump` of another one returned."""
        return cls(_content=content, **options)

    def dump(self) -> bytes:
        """All databases, containers and documents: the bytes of the file that would hold them."""
        return self._storage.dump()

    def async_transport(self) -> EmulatorAsyncTransport:
        """For `azure.cosmos.aio.CosmosClient(endpoint, key, transport=…)`."""
        from cosmos_emulator.transports import EmulatorAsyncTransport

        return EmulatorAsyncTransport(self)

    def transport(self) -> EmulatorTransport:
        """For `azure.cosmos.CosmosClient(endpoint, key, transport=…)`."""
        from cosmos_emulator.transports import EmulatorTransport

        return EmulatorTransport(self)

    def split(self, container: str) -> None:
        """Splits every range of a container in two, as the service does when a container has grown.
        Clients that use the old ranges get 410, and read the new ones."""
        self._gateway.split(container)

    async def inspect(self, request: Request) -> Response:
        """Answers a request of the data page: it needs no signature, meets no fault, and is not in
        the request log."""
        try:
            return self._gateway.handle(request, trusted=True)
        except TakesLong:
            return await self._aside.run_in_thread(
                request, lambda: self._gateway.handle(request, trusted=True)
            )

    def recognises(self, request: Request) -> bool:
        """Whether the gateway will accept the signature of a request."""
        return self._gateway.recognises(request)

    def clear_requests(self) -> None:
        self.requests.clear()

    @property
    def path(self) -> str:
        """The file, or `:memory:`."""
        return self._storage.path

    def erase_remnants(self) -> bool:
        """Rewrites the file, so that it holds no bytes of deleted or replaced data. False if
        another process is using the file: its write-ahead log may still hold some."""
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
        """Answers a request; delays do not block other tasks of the loop."""
        import asyncio  # whoever calls this has loaded it; others need not

        steps = self._exchange(request, endpoint)
        try:
            step = next(steps)
            while True:
                result = None
                try:
                    if isinstance(step, float):
                        await asyncio.sleep(step)
                    elif isinstance(step, Request):
                        result = await self._aside.run_in_thread(
                            step, lambda: self._handle(request, endpoint)
                        )
                    else:
                        await step
                except BaseException as error:
                    step = steps.throw(error)
                else:
                    step = steps.send(result)
        except StopIteration as done:
            return done.value  # type: ignore[no-any-return]

    def exchange(self, request: Request, endpoint: str | None = None) -> Response:
        """Answers a request; delays block the thread."""
        steps = self._exchange(request, endpoint)
        try:
            step = next(steps)
            while True:
                if isinstance(step, Request):
                    answer = self._aside.run(step, lambda: self._handle(request, endpoint))
                    step = steps.send(answer)
                elif isinstance(step, float):
                    time.sleep(step)
                    step = steps.send(None)
                else:
                    steps.close()
                    raise TypeError("a hook that is a coroutine needs an asynchronous client")
        except StopIteration as done:
            return done.value  # type: ignore[no-any-return]

    def _exchange(
        self, request: Request, endpoint: str | None
    ) -> Generator[Step, Response | None, Response]:
        """Process a request, including faults. Yields what the caller has to wait for."""
        record = self.requests.begin(request)
        response: Response | None = None
        try:
            rule = self.faults.choose(record)
            wait = self.faults.latency + (rule.delay if rule else 0.0)
            if wait:
                yield wait
            if rule is None:
                response = yield from self._answer(request, endpoint)
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
            answer = yield from self._answer(request, endpoint)
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

    def _answer(
        self, request: Request, endpoint: str | None
    ) -> Generator[Step, Response | None, Response]:
        self._aside.met = time.monotonic()
        try:
            if not self._aside.expects(request):
                try:
                    return self._handle(request, endpoint)
                except TakesLong:
                    pass  # begins again, aside
            answer = yield request
            assert answer is not None
            return answer
        finally:
            self._aside.met = time.monotonic()


def _flawed(answer: Response, flaw: Flaw) -> Response:
    if flaw.kind == "cut" and not answer.body:
        raise ConnectionDropped  # There is no body to cut in half.
    if flaw.kind == "endless" and answer.status in (204, 304):
        flaw = Flaw("silent")  # These have no body that could be endless.
    return Response(answer.status, answer.headers, answer.body, flaw)
