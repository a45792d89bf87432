"""What the operations of the protocol work with: documents, log, states, and their clock."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from cosmosservice.account.cache import Cache
from cosmosservice.account.container import Container
from cosmosservice.account.dependants import Declaration, Dependants
from cosmosservice.sessions.store.clock import HybridClock
from cosmosservice.sessions.store.event_log import EventLog
from cosmosservice.sessions.store.held import Incarnations
from cosmosservice.sessions.store.large_values import LargeValues
from cosmosservice.sessions.store.log_view import LogViews
from cosmosservice.sessions.store.session_documents import SessionDocuments
from cosmosservice.sessions.store.sink import Sink
from cosmosservice.sessions.store.sizes import Sizes
from cosmosservice.sessions.store.state_documents import StateDocuments

if TYPE_CHECKING:
    from cosmosservice.account.connection import Connection


@dataclass(frozen=True)
class StoreOptions:
    """What a session service says about its stores."""

    timeout: float
    cache_bytes: int
    dependants: Callable[[], Iterable[Declaration]]
    rebase: bool = False
    sink: Sink | None = None
    incarnations: Incarnations = field(default_factory=Incarnations)


class Parts:
    """They are made once for each connection, and live on its event loop."""

    def __init__(
        self, sessions: Container, events: Container, connection: Connection, options: StoreOptions
    ) -> None:
        from cosmosservice.account import telemetry  # not before the first use of a service

        self.sessions, self.events, self.options = sessions, events, options
        self.erase_remnants = connection.erase_remnants
        self.leaves_remnants = connection.leaves_remnants
        self.dependants = Dependants(options.dependants, connection)
        self.cache = Cache(options.cache_bytes, telemetry.looked_up)
        self.clock = HybridClock(connection.clock)
        self.values = LargeValues(sessions, self.cache)
        self.views = LogViews(self.cache)
        self.log = EventLog(events, self.clock)
        self.documents = SessionDocuments(self.values, self.clock)
        self.states = StateDocuments(self.values, self.clock, options.timeout)
        self.sizes = Sizes(self.documents, self.states, self.views)


class Part:
    """An operation of the protocol, on the event loop of what it works with."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._documents = parts.documents
        self._states = parts.states
        self._values = parts.values
        self._log = parts.log
        self._views = parts.views
        self._clock = parts.clock
