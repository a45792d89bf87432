"""The session store: the parts of the protocol, put together. Independent of ADK."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Coroutine
from typing import Any

from cosmosservice.account import telemetry
from cosmosservice.account.cache import Cache
from cosmosservice.account.companions import Companions
from cosmosservice.account.container import Container
from cosmosservice.account.server_clock import ServerClock
from cosmosservice.hosting.host import CLOSE_TIMEOUT
from cosmosservice.sessions.store.appending import Appending
from cosmosservice.sessions.store.clock import HybridClock
from cosmosservice.sessions.store.creating import Creating
from cosmosservice.sessions.store.erasure import Erasure
from cosmosservice.sessions.store.event_log import EventLog
from cosmosservice.sessions.store.expiries import Expiries
from cosmosservice.sessions.store.feed import Feed
from cosmosservice.sessions.store.forking import Forking
from cosmosservice.sessions.store.held import Incarnations
from cosmosservice.sessions.store.history import History
from cosmosservice.sessions.store.iterating import Iterating
from cosmosservice.sessions.store.keys import SessionKey
from cosmosservice.sessions.store.large_values import LargeValues
from cosmosservice.sessions.store.lifecycle import Lifecycle
from cosmosservice.sessions.store.listing import Listing
from cosmosservice.sessions.store.log_view import LogViews
from cosmosservice.sessions.store.projection import Projection
from cosmosservice.sessions.store.projector import Projector
from cosmosservice.sessions.store.provenance import Provenance
from cosmosservice.sessions.store.reading import SessionReader
from cosmosservice.sessions.store.remembering import Keeper, Remembering
from cosmosservice.sessions.store.retention import renew_records
from cosmosservice.sessions.store.session_documents import SessionDocuments
from cosmosservice.sessions.store.sizes import Sizes
from cosmosservice.sessions.store.state_documents import StateDocuments


class SessionStore:
    """Lives on one event loop, with one connection."""

    def __init__(
        self,
        *,
        sessions: Container,
        events: Container,
        clock: ServerClock,
        erase_remnants: Callable[[], Coroutine[Any, Any, None]],
        leaves_remnants: bool,
        timeout: float,
        cache_bytes: int,
        rebase: bool,
        incarnations: Incarnations,
        companions: Companions,
        keeper: Keeper | None = None,
    ) -> None:
        self.sessions, self.events = sessions, events
        self.erase_remnants, self.leaves_remnants = erase_remnants, leaves_remnants
        self.cache = cache = Cache(cache_bytes, telemetry.looked_up)
        self.clock = stamps = HybridClock(clock)
        self.values = values = LargeValues(sessions, cache)
        self.views = views = LogViews(cache)
        self.log = log = EventLog(events, stamps)
        self.states = states = StateDocuments(sessions, cache, stamps, values, timeout)
        self.documents = documents = SessionDocuments(sessions, cache, stamps, values)

        async def renew(key: SessionKey, incarnation: str) -> None:
            await log.probe(key, 0, "probe")  # all records, or some would expire
            await renew_records(events, sessions, key, incarnation, stamps.now())

        self.projection = Projection(documents, states, values, log, views, stamps, renew)
        self.projector = Projector(self.projection, timeout)
        self.companions = companions
        self.expiries = Expiries(sessions, stamps)
        self.erasure = Erasure(
            documents, values, log, views, stamps, self.expiries, companions, erase_remnants
        )
        self.forking = Forking(documents, values, log, views, self.erasure, stamps, companions)
        self.lifecycle = Lifecycle(
            documents, log, self.projection, self.erasure, self.forking, views, stamps
        )
        self.reader = SessionReader(
            documents,
            states,
            values,
            log,
            views,
            self.projection,
            self.projector,
            self.lifecycle,
            stamps,
        )
        self.feed = Feed(log, stamps)
        self.iterating = Iterating(self.reader, log)
        self.history = History(self.reader)
        self.sizes = Sizes(documents, states, views)
        self.remembering = None if keeper is None else Remembering(keeper, log, views, timeout)
        self.creating = Creating(
            documents,
            states,
            values,
            views,
            self.lifecycle,
            self.erasure,
            self.expiries,
            self.sizes,
            stamps,
        )
        self.appending = Appending(
            documents,
            values,
            log,
            states,
            views,
            self.projector,
            Provenance(documents, self.reader, incarnations),
            self.sizes,
            stamps,
            self.remembering,
            rebase=rebase,
        )
        self.listing = Listing(sessions, documents, states, values, self.projector, stamps)

    async def settle(self) -> None:
        """Hands over the remaining events to the memory service. Those that it does not accept in
        time are handed over with the next append to their session."""
        if self.remembering is not None:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self.remembering.flush(), CLOSE_TIMEOUT)

    async def close(self) -> None:
        await self.settle()
        await self.projector.close()
        await self.states.settle()
        await self.companions.close()

    async def flush(self) -> None:
        if self.remembering is not None:
            await self.remembering.flush()
        await self.projector.flush()
        await self.states.settle()
