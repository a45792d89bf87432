"""A TCP proxy on loopback that adds a fixed latency per round trip and counts round trips.

Every chunk of bytes is forwarded half a round trip after it arrived, in either direction. Chunks do
not wait for each other: throughput is not limited, and requests on different connections (or
pipelined on one) overlap as on a real network.

The proxy is a separate process, so that its work is not charged to its client. It reads commands as
JSON lines on standard input and ends when that closes.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from benchmarks.measure import precise_loop

LINE_LIMIT = 64 * 1024 * 1024  # the log of many exchanges is one line


@dataclass(slots=True)
class Exchange:
    """A request and its answer on one connection: the client sent bytes, then the server did."""

    start: float  # the first byte of the request reached the proxy
    end: float = 0.0  # the last byte of the answer left the proxy; 0 while there is none
    up: int = 0
    down: int = 0


@dataclass(slots=True)
class Traffic:
    """What crossed a route between two moments."""

    requests: int = 0
    round_trips: int = 0  # the longest chain of exchanges that had to wait for one another
    up: int = 0
    down: int = 0

    def fill(self, exchanges: list[Exchange], until: float) -> None:
        self.requests = len(exchanges)
        self.up = sum(exchange.up for exchange in exchanges)
        self.down = sum(exchange.down for exchange in exchanges)
        # The completed exchanges, by their end. Greedily choosing those that do not overlap gives
        # the longest chain.
        last = 0.0
        for exchange in sorted(exchanges, key=lambda exchange: exchange.end):
            if 0 < exchange.end <= until and exchange.start >= last:
                self.round_trips += 1
                last = exchange.end


class Pipe(asyncio.Protocol):
    """One end of a proxied connection. Bytes that arrive here leave at the other end, later."""

    def __init__(self, delay: float) -> None:
        self.delay = delay
        self.other: Pipe | None = None
        self.transport: asyncio.Transport | None = None
        self.held: deque[bytes | None] = deque()  # None is the end of the stream
        self.loop = asyncio.get_running_loop()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        self.pass_on(data)

    def connection_lost(self, exc: Exception | None) -> None:
        self.pass_on(None)

    def pass_on(self, data: bytes | None) -> None:
        self.held.append(data)
        if self.delay:
            self.loop.call_later(self.delay, self.release)
        else:
            self.release()

    def release(self) -> None:
        # One at a time from the left: timers for the same instant keep the order.
        data = self.held.popleft()
        out = self.other.transport if self.other is not None else None
        if out is None or out.is_closing():
            return
        if data is None:
            out.close()
        else:
            # Recorded first: the client may have continued by the time write() returns.
            self.passing()
            out.write(data)

    def passing(self) -> None:
        """Called before bytes are forwarded. The side that counts overrides it."""


class ClientSide(Pipe):
    def __init__(self, delay: float, target: int, log: list[Exchange]) -> None:
        super().__init__(delay)
        self.target = target
        self.log = log
        self.exchange: Exchange | None = None
        self.connecting: asyncio.Task[None] | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        assert self.transport is not None
        self.transport.pause_reading()  # until there is a connection to forward to
        self.connecting = self.loop.create_task(self.connect())

    async def connect(self) -> None:
        assert self.transport is not None
        server = ServerSide(self.delay, self)
        try:
            await self.loop.create_connection(lambda: server, "127.0.0.1", self.target)
        except OSError:
            self.transport.abort()
            return
        self.other, server.other = server, self
        self.transport.resume_reading()

    def data_received(self, data: bytes) -> None:
        if self.exchange is None or self.exchange.down:
            self.exchange = Exchange(start=time.monotonic())
            self.log.append(self.exchange)
        self.exchange.up += len(data)
        super().data_received(data)


class ServerSide(Pipe):
    def __init__(self, delay: float, client: ClientSide) -> None:
        super().__init__(delay)
        self.client = client

    def data_received(self, data: bytes) -> None:
        if self.client.exchange is not None:
            self.client.exchange.down += len(data)
        super().data_received(data)

    def passing(self) -> None:
        if self.client.exchange is not None:
            self.client.exchange.end = time.monotonic()


async def serve() -> None:
    """Reads commands from standard input: route, clear, log."""
    loop = asyncio.get_running_loop()
    commands = asyncio.StreamReader()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(commands), sys.stdin)
    logs: dict[int, list[Exchange]] = {}
    servers: list[asyncio.Server] = []
    while line := await commands.readline():
        command: dict[str, Any] = json.loads(line)
        answer: Any = None
        if command["do"] == "route":
            log: list[Exchange] = []
            make = partial(ClientSide, command["round_trip"] / 2, command["target"], log)
            server = await loop.create_server(make, "127.0.0.1", 0)
            servers.append(server)
            answer = server.sockets[0].getsockname()[1]
            logs[answer] = log
        elif command["do"] == "clear":
            logs[command["port"]].clear()
        elif command["do"] == "log":
            answer = [[e.start, e.end, e.up, e.down] for e in logs[command["port"]]]
        sys.stdout.write(json.dumps(answer) + "\n")
        sys.stdout.flush()


@dataclass
class Proxy:
    """The client of the proxy process."""

    process: asyncio.subprocess.Process | None = None
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def start(self) -> None:
        self.process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "benchmarks.proxy",
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            limit=LINE_LIMIT,
        )

    async def stop(self) -> None:
        if self.process is not None and self.process.stdin is not None:
            self.process.stdin.close()
            await self.process.wait()

    async def ask(self, **command: Any) -> Any:
        assert self.process is not None
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        async with self.lock:
            self.process.stdin.write(json.dumps(command).encode() + b"\n")
            answer = await self.process.stdout.readline()
        if not answer:
            raise RuntimeError("The proxy has ended.")
        return json.loads(answer)

    async def route(self, target: int, round_trip: float) -> int:
        """Opens a port that leads to `target`. A round trip through it takes this many seconds."""
        port: int = await self.ask(do="route", target=target, round_trip=round_trip)
        return port

    @asynccontextmanager
    async def watch(self, port: int) -> AsyncIterator[Traffic]:
        """Counts the traffic of a route within the block."""
        traffic = Traffic()
        await self.ask(do="clear", port=port)
        yield traffic
        until = time.monotonic()
        log = await self.ask(do="log", port=port)
        traffic.fill([Exchange(*entry) for entry in log], until)


def main() -> None:
    precise_loop().run_until_complete(serve())


if __name__ == "__main__":
    main()
