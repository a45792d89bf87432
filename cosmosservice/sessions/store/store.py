"""The session store: the parts of the protocol, put together. Independent of ADK."""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING

from cosmosservice.account.container import Container
from cosmosservice.hosting.resources import CLOSE_TIMEOUT
from cosmosservice.sessions.store.accounting import Accounting
from cosmosservice.sessions.store.appending import Appending
from cosmosservice.sessions.store.creating import Creating
from cosmosservice.sessions.store.erasure import Erasure
from cosmosservice.sessions.store.expiries import Expiries
from cosmosservice.sessions.store.feed import Feed
from cosmosservice.sessions.store.forking import Forking
from cosmosservice.sessions.store.history import History
from cosmosservice.sessions.store.iterating import Iterating
from cosmosservice.sessions.store.lifecycle import Lifecycle
from cosmosservice.sessions.store.listing import Listing
from cosmosservice.sessions.store.looking import Looking
from cosmosservice.sessions.store.parts import Parts, StoreOptions
from cosmosservice.sessions.store.projection import Projection
from cosmosservice.sessions.store.projector import Projector
from cosmosservice.sessions.store.reading import SessionReader
from cosmosservice.sessions.store.remembering import Remembering

if TYPE_CHECKING:
    from cosmosservice.account.connection import Connection


class SessionStore(Parts):
    """Everything that a session service does on one connection, on its event loop."""

    def __init__(
        self, sessions: Container, events: Container, connection: Connection, options: StoreOptions
    ) -> None:
        super().__init__(sessions, events, connection, options)
        self.projection = Projection(self)
        self.projector = Projector(self.projection, options.timeout)
        self.expiries = Expiries(sessions, self.clock)
        self.erasure = Erasure(self, self.expiries)
        self.forking = Forking(self, self.erasure, self.expiries)
        self.lifecycle = Lifecycle(self, self.projection, self.erasure, self.forking)
        self.reader = SessionReader(self, self.lifecycle, self.projector)
        self.feed = Feed(self.log, self.clock)
        self.iterating = Iterating(self, self.reader)
        self.history = History(self, self.reader)
        self.looking = Looking(self)
        self.remembering = None if options.sink is None else Remembering(self, options.sink)
        self.creating = Creating(self, self.lifecycle, self.erasure, self.expiries)
        self.appending = Appending(self, self.reader, self.projector, self.remembering)
        self.listing = Listing(self, self.projector)
        self.accounting = Accounting(sessions, self.log, self.projector, self.clock)

    async def drain(self) -> None:
        """Hands over the remaining events to the memory service. Those that it does not accept in
        time are handed over with the next append to their session."""
        if self.remembering is not None:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self.remembering.flush(), CLOSE_TIMEOUT)

    async def close(self) -> None:
        await self.drain()
        await self.projector.close()
        await self.states.drain()
        await self.dependants.close()

    async def flush(self) -> None:
        if self.remembering is not None:
            await self.remembering.flush()
        await self.projector.flush()
        await self.states.drain()
