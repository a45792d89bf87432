"""The test stand: servers, the proxy and the peers, each started when a workload first needs it."""

from __future__ import annotations

import itertools
from collections.abc import Awaitable, Callable, Iterator
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from typing import Any, Self

from benchmarks import peers, servers
from benchmarks.cosmos import Bare, InProcess, OverHttp, in_process, over_http
from benchmarks.material import history
from benchmarks.measure import Effort, Lane
from benchmarks.peers import Peer
from benchmarks.proxy import Proxy, Traffic

Drain = Callable[[], Awaitable[None]]

ROUND_TRIP = 0.005
COUNTED = 5
OURS = "cosmosservice"
UNSEEN = "cosmosservice, session not seen before"
UNSEEN_BLOCK = "cosmosservice, in a block, session not seen before"
LOOKED = ", every event looked at"
BLOCK = "cosmosservice, in a block"
IN_PROCESS = "cosmosservice, in process"
IN_PROCESS_BLOCK = "cosmosservice, in process, in a block"
BARE, BARE_TURN = "bare create", "five bare requests"
BARE_IN_PROCESS, BARE_TURN_IN_PROCESS = "bare create, in process", "five bare requests, in process"
BARE_AS_IT_COMES = "bare create, the SDK as it comes"
POSTGRES, POSTGRES_NO_PING = "DatabaseSessionService", "… without pool_pre_ping"
REDIS, SQLITE, IN_MEMORY = "RedisSessionService", "SqliteSessionService", "InMemorySessionService"
NETWORKED = (POSTGRES, POSTGRES_NO_PING, REDIS)
LOCAL = (SQLITE, IN_MEMORY)
SERVERS = {"postgres": servers.postgres, "redis": servers.redis, "emulator": servers.emulator}


@dataclass
class Stand:
    quick: bool = False
    proxy: Proxy = field(default_factory=Proxy)
    stack: AsyncExitStack = field(default_factory=AsyncExitStack)
    started: dict[str, servers.Server] = field(default_factory=dict)
    opened: dict[tuple[str, float], Peer] = field(default_factory=dict)
    bares: dict[tuple[str, float], Bare] = field(default_factory=dict)
    pasts: dict[tuple[str, int], str] = field(default_factory=dict)
    documents: list[dict[str, Any]] = field(default_factory=list)
    numbers: Iterator[int] = field(default_factory=itertools.count)

    async def __aenter__(self) -> Self:
        await self.proxy.start()
        self.stack.push_async_callback(self.proxy.stop)
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stack.aclose()

    @property
    def effort(self) -> Effort:
        return Effort(3, 3) if self.quick else Effort(3, 5)

    def fresh(self) -> str:
        """An unused session id."""
        return f"session-{next(self.numbers)}"

    def server(self, name: str) -> servers.Server:
        if name not in self.started:
            self.started[name] = self.stack.enter_context(SERVERS[name]())
        return self.started[name]

    async def peer(self, label: str, round_trip: float = ROUND_TRIP) -> Peer:
        """The peer with that name. If it is reached over the network, with this round trip."""
        key = (label, 0 if label in LOCAL else round_trip)
        if key not in self.opened:
            peer = await self.build(label, round_trip)
            await peer.open()
            self.stack.push_async_callback(peer.close)
            self.opened[key] = peer
        return self.opened[key]

    async def build(self, label: str, round_trip: float) -> Peer:
        if label == IN_MEMORY:
            return peers.InMemory(label)
        if label == SQLITE:
            return peers.Sqlite(label, self.stack.enter_context(servers.scratch()))
        if label in (IN_PROCESS, IN_PROCESS_BLOCK):
            return InProcess(label, round_trip, block=label == IN_PROCESS_BLOCK)
        if label in (OURS, BLOCK, UNSEEN, UNSEEN_BLOCK):
            port = await self.route("emulator", round_trip)
            options = {"cache_bytes": 0} if label in (UNSEEN, UNSEEN_BLOCK) else {}
            direct = self.server("emulator").port
            return OverHttp(label, port, direct, block=label in (BLOCK, UNSEEN_BLOCK), **options)
        if label == REDIS:
            return peers.Redis(label, await self.route("redis", round_trip))
        port = await self.route("postgres", round_trip)
        if label == POSTGRES:
            return peers.Postgres(label, port)
        return peers.Postgres(label, port, pool_pre_ping=False)

    async def route(self, server: str, round_trip: float) -> int:
        return await self.proxy.route(self.server(server).port, round_trip)

    async def bare(self, label: str, round_trip: float = ROUND_TRIP) -> Bare:
        """The bare SDK, with this round trip to the emulator."""
        key = (label, round_trip)
        if key not in self.bares:
            if label == BARE_IN_PROCESS:  # on the service's own emulator
                peer = await self.peer(IN_PROCESS, round_trip)
                assert isinstance(peer, InProcess)
                bare = Bare(in_process(peer.emulator))
            else:
                port = await self.route("emulator", round_trip)
                bare = Bare(over_http(port, as_it_comes=label == BARE_AS_IT_COMES), port)
            await bare.open()
            self.stack.push_async_callback(bare.close)
            self.bares[key] = bare
        return self.bares[key]

    async def session(self, peer: Peer, length: int) -> str:
        """A new session with this many events of 1 KB."""
        session_id = self.fresh()
        await peer.seed(session_id, history(length))
        return session_id

    async def past(self, peer: Peer, length: int) -> str:
        """A session of that length to read from. All callers share it."""
        key = (peer.store or f"{peer.label} {peer.port}", length)
        if key not in self.pasts:
            self.pasts[key] = await self.session(peer, length)
        return self.pasts[key]

    async def event_document(self) -> dict[str, Any]:
        """The document that the service stores for an event of 1 KB."""
        if not self.documents:
            peer = InProcess(IN_PROCESS)
            await peer.open()
            await peer.seed(self.fresh(), history(1))
            self.documents = await peer.stored("events")
            await peer.close()
        return dict(self.documents[0])

    async def count(self, port: int | None, work: Lane, drain: Drain | None = None) -> Traffic:
        """The traffic of one piece of work: the attempt with the fewest round trips.

        On a busy machine, parallel requests may be sent so far apart that they look sequential.
        """
        if port is None:
            await work()
            return Traffic()
        seen = []
        for _ in range(COUNTED):
            async with self.proxy.watch(port) as traffic:
                await work()
            if drain is not None:
                await drain()
            seen.append(traffic)
        return min(seen, key=lambda traffic: (traffic.round_trips, traffic.requests))
