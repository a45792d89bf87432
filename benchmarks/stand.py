"""The test stand: servers, the proxy and the peers, started when a workload first asks."""

from __future__ import annotations

import itertools
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from typing import Self

from benchmarks import peers, servers
from benchmarks.measure import Effort
from benchmarks.peers import Peer
from benchmarks.proxy import Proxy, Traffic

ROUND_TRIP = 0.005
OURS = "cosmosservice"
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
    numbers: Iterator[int] = field(default_factory=itertools.count)

    async def __aenter__(self) -> Self:
        await self.proxy.start()
        self.stack.push_async_callback(self.proxy.stop)
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stack.aclose()

    @property
    def effort(self) -> Effort:
        return Effort(3, 3) if self.quick else Effort(5, 9)

    def fresh(self) -> str:
        """A session id that nobody has used."""
        return f"session-{next(self.numbers)}"

    def server(self, name: str) -> servers.Server:
        if name not in self.started:
            self.started[name] = self.stack.enter_context(SERVERS[name]())
        return self.started[name]

    async def peer(self, label: str, round_trip: float = ROUND_TRIP) -> Peer:
        """The peer of that name; those behind a network, at that distance."""
        place = (label, round_trip if label in NETWORKED else 0)
        if place not in self.opened:
            peer = await self.build(label, round_trip)
            await peer.open()
            self.stack.push_async_callback(peer.close)
            self.opened[place] = peer
        return self.opened[place]

    async def build(self, label: str, round_trip: float) -> Peer:
        if label == IN_MEMORY:
            return peers.InMemory(label)
        if label == SQLITE:
            return peers.Sqlite(label, self.stack.enter_context(servers.scratch()))
        if label == REDIS:
            return peers.Redis(label, await self.route("redis", round_trip))
        port = await self.route("postgres", round_trip)
        if label == POSTGRES:
            return peers.Postgres(label, port)
        return peers.Postgres(label, port, pool_pre_ping=False)

    async def route(self, server: str, round_trip: float) -> int:
        return await self.proxy.route(self.server(server).port, round_trip)

    @asynccontextmanager
    async def watch(self, peer: Peer) -> AsyncIterator[Traffic]:
        """Counts a peer's traffic within the block; nothing for a peer without a network."""
        if peer.port is None:
            yield Traffic()
        else:
            async with self.proxy.watch(peer.port) as traffic:
                yield traffic
