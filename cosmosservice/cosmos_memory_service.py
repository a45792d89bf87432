"""CosmosMemoryService: ADK's long-term memory on Azure Cosmos DB."""

from __future__ import annotations

import datetime
import os
from collections.abc import AsyncIterator, Callable, Collection, Coroutine, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from google.adk.events.event import Event
from google.adk.memory.base_memory_service import BaseMemoryService, SearchMemoryResponse
from google.adk.memory.memory_entry import MemoryEntry
from google.adk.sessions.session import Session
from typing_extensions import Unpack, override

from cosmosservice.account.account import CosmosAccount
from cosmosservice.account.options import (
    AccountOptions,
    EmbeddedOptions,
    documented,
    embedded_store,
)
from cosmosservice.account.service import AccountService
from cosmosservice.errors import ConfigurationError, ContainerMismatchError
from cosmosservice.hosting.operation import Background, Bounded, Unbounded
from cosmosservice.memory.backfill import EmbedReport, Progress
from cosmosservice.memory.documents import Owner, text_of
from cosmosservice.memory.entries import check_ttl, event_entries, memory_entries
from cosmosservice.memory.forgetting import MemoryPurgeReport
from cosmosservice.memory.searching import Filter, Start
from cosmosservice.memory.sources import MemoriesOf, Source
from cosmosservice.memory.stores import MemoryStores
from cosmosservice.sessions.incarnations import Incarnations
from cosmosservice.sessions.session_objects import incarnation_of
from cosmosservice.sessions.store.keys import SessionKey

if TYPE_CHECKING:
    from cosmos_emulator import Emulator
    from cosmosservice.memory.embedding import Embedder
    from cosmosservice.memory.store import MemoryStore

Moment = datetime.datetime | float

DEFAULT_RESULTS = 20  # docs/memory.md: ten results or twenty
MOST_CONTEXT = 10
REPEAT_SECONDS = 30.0


class MemoryOptions(EmbeddedOptions, total=False):
    """Options of a memory service on the embedded emulator."""

    memory_container: str | None
    embedder: Embedder | None
    results: int
    ttl: int | None
    repeat_seconds: float


class CosmosMemoryService(AccountService["MemoryStore"], BaseMemoryService):
    """Durable, searchable ADK memory on Azure Cosmos DB.

        memories container, partition /owner: one user of one app
        ┌────────────────────────────────────────────────────────────┐
        │ memory     id, author, time, at, words, content            │
        │ forgotten  the same id, and nothing of what was said       │
        │ part       what is too large for the memory itself         │
        │ vector     the embedding, if there is an embedder          │
        └────────────────────────────────────────────────────────────┘

    Adding creates a document with the event's id: a memory that is already stored is not written
    again, and a deleted one does not come back. A search ranks the user's own memories by the words
    of the query, without a model. Any number of event loops and threads may use one service.
    """

    @documented
    def __init__(
        self,
        *,
        account: CosmosAccount | None = None,
        memory_container: str | None = None,
        embedder: Embedder | None = None,
        results: int = DEFAULT_RESULTS,
        ttl: int | None = None,
        repeat_seconds: float = REPEAT_SECONDS,
        **options: Unpack[AccountOptions],
    ) -> None:
        """Without arguments: `COSMOSDB_*` from the environment or `.env`.

        Args:
          account: the CosmosAccount to use, which other services may share. Without one the
            service makes its own from the options below.
          embedder: `async (texts) -> vectors`, to search by meaning as well as by words.
          results: how many memories a search returns at most.
          ttl: seconds after which a memory disappears, counted from when it was added.
          repeat_seconds: for how long a repeated search is answered from a cache, as long as this
            service adds and deletes nothing for the user. 0: never.
        """
        if isinstance(results, bool) or not isinstance(results, int) or results < 1:
            raise ConfigurationError("results must be a number of memories, at least 1.")
        self._results = results
        self._ttl = check_ttl(ttl)
        settings = self._take_account(
            account,
            {"memory_container": memory_container},
            **options,
        )
        self._stores = MemoryStores(
            settings,
            embedder=embedder,
            repeat_seconds=repeat_seconds,
            incarnations=lambda connection: Incarnations.open(connection, settings),
        )
        self._account.dependants[settings.memory_container] = self._stores

    @classmethod
    def embedded(
        cls,
        store: str | os.PathLike[str] | Emulator = ":memory:",
        **options: Unpack[MemoryOptions],
    ) -> CosmosMemoryService:
        """On the embedded emulator: a file, `:memory:`, or a given `cosmos_emulator.Emulator`."""
        return cls(**embedded_store(store), **options)

    # --- BaseMemoryService

    @override
    async def add_session_to_memory(self, session: Session) -> None:
        """Adds what was said in the session. Stored memories are not sent again."""
        owner = Owner.of(session.app_name, session.user_id)
        source = Source(text_of("The session id", session.id), incarnation_of(session))
        entries = event_entries(session.events, None, self._ttl)
        if entries:
            await self.in_store(
                Unbounded("add_session_to_memory"),
                lambda store: store.add_session(owner, source, entries),
                outlasts=True,
            )

    async def add_events_to_memory(
        self,
        *,
        app_name: str,
        user_id: str,
        events: Sequence[Event],
        session_id: str | None = None,
        custom_metadata: Mapping[str, object] | None = None,
    ) -> None:
        """Adds these events to the stored memories. `ttl` in the custom metadata is the number of
        seconds after which they disappear; the other metadata is returned with them."""
        owner = Owner.of(app_name, user_id)
        session = None if session_id is None else text_of("The session id", session_id)
        entries = event_entries(events, custom_metadata, self._ttl)
        if entries:
            await self.in_store(
                Unbounded("add_events_to_memory"),
                lambda store: store.add_events(owner, session, entries),
                outlasts=True,
            )

    async def add_memory(
        self,
        *,
        app_name: str,
        user_id: str,
        memories: Sequence[MemoryEntry],
        custom_metadata: Mapping[str, object] | None = None,
    ) -> None:
        """Adds entries as given. One without an id gets a new one."""
        owner = Owner.of(app_name, user_id)
        entries = memory_entries(memories, custom_metadata, self._ttl)
        if entries:
            await self.in_store(
                Unbounded("add_memory"),
                lambda store: store.add_alone(owner, entries),
                outlasts=True,
            )

    @override
    async def search_memory(
        self,
        *,
        app_name: str,
        user_id: str,
        query: str,
        limit: int | None = None,
        session_id: str | None = None,
        author: str | None = None,
        since: Moment | None = None,
        until: Moment | None = None,
        context: int = 0,
    ) -> SearchMemoryResponse:
        """The memories that match the query best, the best first. `match` in their custom metadata
        says why: the words found, the score, and of an answer the id of its question.

        Args:
          limit: how many at most; default: the service's `results`.
          session_id: only memories of this session, and not of an earlier one that had its id.
          author: only memories of this author.
          since, until: only memories of this time: a datetime, or seconds as in an event's
            timestamp.
          context: how many turns before and after each memory are added to it, as `context` in its
            custom metadata.
        """
        if not 0 <= context <= MOST_CONTEXT:
            raise ValueError(f"context must be a number of turns, at most {MOST_CONTEXT}.")
        if limit is not None and limit < 1:
            raise ValueError("limit must be at least 1.")
        owner = Owner.of(app_name, user_id)
        chosen = Filter(session_id, author, _seconds(since), _seconds(until))
        count = limit or self._results
        found = await self.in_store(
            Bounded("search_memory"),
            lambda store: store.search(owner, query, count, chosen, context=context),
        )
        return SearchMemoryResponse(memories=found)

    async def delete_memory(
        self, *, app_name: str, user_id: str, memory_id: str | None = None
    ) -> None:
        """Deletes one memory. It does not come back when its session is added again."""
        if not memory_id:
            return
        owner = Owner.of(app_name, user_id)
        text_of("The memory id", memory_id)
        await self.in_store(
            Bounded("delete_memory"), lambda store: store.forget(owner, memory_id), outlasts=True
        )

    # --- further

    async def iter_memories(
        self, *, app_name: str, user_id: str, session_id: str | None = None
    ) -> AsyncIterator[MemoryEntry]:
        """All memories of a user or of one session, the oldest first, loaded page by page."""
        owner = Owner.of(app_name, user_id)
        start: Start | None = Start()
        while start is not None:
            page, start = await self.in_store(
                Bounded("iter_memories"), _page(owner, session_id, start)
            )
            for entry in page:
                yield entry

    async def purge_memories(
        self, *, app_name: str, user_id: str, session_id: str | None = None
    ) -> MemoryPurgeReport:
        """Erases all memories of a user or of one session, and what remains of deleted ones."""
        owner = Owner.of(app_name, user_id)
        wanted = None if session_id is None else MemoriesOf(session_id)
        return await self.in_store(
            Background("purge_memories"), lambda store: store.purge(owner, wanted)
        )

    async def remember(
        self,
        session: SessionKey,
        events: Sequence[Event],
        *,
        incarnation: str | None,
        beginning: bool,
        others: bool,
    ) -> int:
        """Called by a session service with `memory=` and by `cosmosservice memory follow`. Adds the
        events of a session that follow those of the previous call, and returns the number of
        memories added.

        Args:
          incarnation: which incarnation of the session has the events.
          beginning: the events begin with the first one of the session.
          others: another process may have added some of them.
        """
        owner = Owner.of(session.app_name, session.user_id)
        entries = event_entries(events, None, self._ttl)
        if not entries:
            return 0
        return await self.in_store(
            Background("remember"),
            lambda store: store.remember(
                owner,
                Source(session.session_id, incarnation),
                entries,
                continues=not beginning,
                others=others,
            ),
            outlasts=True,
        )

    async def erase_session_memories(
        self, session: SessionKey, incarnation: str, events: Collection[str] = ()
    ) -> int:
        """Erases the memories of one incarnation of a session, and returns the number of documents.
        The ids of its events decide about memories that do not know their incarnation."""
        owner = Owner.of(session.app_name, session.user_id)
        wanted = MemoriesOf(session.session_id, incarnation, frozenset(events))
        try:
            report = await self.in_store(
                Background("purge_memories"), lambda store: store.purge(owner, wanted)
            )
        except ContainerMismatchError:  # nothing was ever stored
            return 0
        return report.documents

    async def embed_missing(
        self,
        *,
        app_name: str | None = None,
        user_id: str | None = None,
        progress: Progress = lambda done, total: None,
    ) -> EmbedReport:
        """Makes the missing vectors of one user or of all. The embedder may have failed when their
        memories were added."""
        if (app_name is None) != (user_id is None):
            raise ValueError("Give both app_name and user_id, or neither.")
        owner = None if app_name is None or user_id is None else Owner.of(app_name, user_id)
        return await self.in_store(
            Background("embed_missing"), lambda store: store.embed_missing(owner, progress)
        )


def _page(
    owner: Owner, session_id: str | None, start: Start
) -> Callable[[MemoryStore], Coroutine[Any, Any, tuple[list[MemoryEntry], Start | None]]]:
    return lambda store: store.page(owner, session_id, start)


def _seconds(moment: Moment | None) -> float | None:
    if isinstance(moment, datetime.datetime):
        return moment.timestamp()
    return None if moment is None else float(moment)
