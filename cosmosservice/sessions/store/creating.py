"""Creating sessions: a new document, or one instead of a deleted session."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable
from dataclasses import dataclass, field
from typing import TypeVar

from cosmosservice.account.container import Document
from cosmosservice.account.dependants import Superseded
from cosmosservice.account.failures import Conflict, NotFound, PreconditionFailed
from cosmosservice.account.retries import STEPS
from cosmosservice.data_converters.state_scopes import Scoped
from cosmosservice.errors import (
    AlreadyExistsError,
    StateUpdatePendingError,
    StorageError,
    UnavailableError,
)
from cosmosservice.scopes import SCOPES, Pair
from cosmosservice.sessions.store.documents import (
    ACTIVE,
    CLEARING,
    DELETED,
    PURGED,
    session_document,
)
from cosmosservice.sessions.store.erasure import Erasure
from cosmosservice.sessions.store.expiries import Expiries
from cosmosservice.sessions.store.keys import (
    Marker,
    SessionKey,
    new_incarnation,
    record_ttl,
    retention_of,
)
from cosmosservice.sessions.store.lifecycle import Lifecycle
from cosmosservice.sessions.store.log_view import LogView
from cosmosservice.sessions.store.parts import Part, Parts
from cosmosservice.sessions.store.session_documents import SessionDocument
from cosmosservice.sessions.store.snapshot import Snapshot
from cosmosservice.sessions.store.state import NO_STATE, State
from cosmosservice.sessions.store.state_documents import NO_CHANGES, StateDocument
from cosmosservice.sessions.store.titles import display_name

T = TypeVar("T")


@dataclass
class _Creation:
    """One call, however many attempts it takes."""

    key: SessionKey
    state: Scoped
    ttl: int | None
    named: bool
    mine: set[str] = field(default_factory=set)  # the incarnations of all attempts
    has_large_values: bool = False


class Creating(Part):
    """Creates sessions, and repeats what another writer interferes with."""

    def __init__(
        self, parts: Parts, lifecycle: Lifecycle, erasure: Erasure, expiries: Expiries
    ) -> None:
        super().__init__(parts)
        self._lifecycle = lifecycle
        self._erasure = erasure
        self._expiries = expiries
        self._sizes = parts.sizes

    async def create(
        self, key: SessionKey, state: Scoped, ttl: int | None, *, named: bool = True
    ) -> Snapshot:
        """Raises AlreadyExistsError if there is one. `named`: the id was given by the caller, so
        that there may have been a session of that name before."""
        self._sizes.check(key, state, "create_session")
        if state.has_shared:
            # Read first: the given state must get a later stamp than the stored one.
            shared = await self._states.read_shared(key)
            document = await self._create(_Creation(key, state, ttl, named))
        else:
            reading = asyncio.ensure_future(self._states.read_shared(key))
            try:
                document = await self._create(_Creation(key, state, ttl, named))
            except BaseException:
                reading.cancel()
                with contextlib.suppress(Exception, asyncio.CancelledError):
                    await reading
                raise
            shared = await self._after_creation(key, reading)
        return await self._after_creation(key, self._merged(document, shared, state))

    async def _merged(
        self, document: SessionDocument, shared: Pair[StateDocument], state: Scoped
    ) -> Snapshot:
        """The new session, once its user and app state is merged."""
        try:
            changes = await self._documents.initial_changes(document)
        except NotFound:  # another process has merged them, and removed the large values
            changes, shared = NO_CHANGES, await self._states.read_shared(document.key)
        await self._states.merge_shared(document.key, changes)
        return Snapshot(
            document.key,
            Marker(
                document.incarnation,
                document.revision,
                is_new=document.revision < document.first_seq,
            ),
            [],
            Scoped(state.session, await self._states.whole_shared(shared, changes)),
            document.last_update_time,
        )

    async def _after_creation(self, key: SessionKey, work: Awaitable[T]) -> T:
        """Awaits the rest of the work. Its errors say that the session exists."""
        try:
            return await work
        except StorageError as problem:
            raise StateUpdatePendingError(
                f"create_session: the session {key.session_id!r} IS created, but user: and app:"
                f" state could not be read or merged: {problem} Get the session to continue"
                " with it; the next read repairs the rest.",
                status=problem.status,
            ) from None

    async def _create(self, creation: _Creation) -> SessionDocument:
        key = creation.key
        current: SessionDocument | None = None
        noted = (creation.named or creation.ttl is not None) and await self._expiries.begin(
            key, creation.ttl
        )
        for attempt in STEPS:
            await STEPS.pause(attempt)
            try:
                if current is not None or noted:
                    await self._erasure.clear(key, current)
                document = await self._attempt(creation, current)
            except (Conflict, PreconditionFailed, NotFound, Superseded):
                self._documents.forget(key)
            else:
                if noted and creation.ttl is None:
                    await self._expiries.remove(key)
                return await self._created(creation, document)
            current = await self._former(creation)
            if current is not None and current.incarnation in creation.mine:
                return await self._created(creation, current)  # the response was lost
        await self._discard(creation, current)
        raise UnavailableError(
            f"create_session: session {key.session_id!r} is being created and deleted by too many"
            " other writers. Nothing was stored."
        )

    async def _former(self, creation: _Creation) -> SessionDocument | None:
        """The document of a former session that cannot come back; our own, if the response to our
        write was lost; None if there is none, or if it is to be read again."""
        current = await self._documents.read(creation.key)
        if current is None or current.incarnation in creation.mine:
            return current
        if await self._lifecycle.complete(current):
            return None
        if current.status in (CLEARING, PURGED):
            return current
        if current.status == ACTIVE and not self._lifecycle.has_expired(current):
            await self._discard(creation, current)
            raise AlreadyExistsError(f"Session with id {creation.key.session_id} already exists.")
        if not _outlives(creation.ttl, current):
            await self._lifecycle.announce_purge(current, spares=True)
            return None
        with contextlib.suppress(PreconditionFailed, NotFound):
            return await self._lifecycle.announce_clearing(current)
        return None

    async def _attempt(
        self, creation: _Creation, current: SessionDocument | None
    ) -> SessionDocument:
        """Each attempt has its own incarnation. If any of them is found in the store, it is ours.
        `current` is the document of a former session, if there was one."""
        key, state = creation.key, creation.state
        incarnation = new_incarnation(creation.ttl)
        creation.mine.add(incarnation)
        stored = await self._stored(creation, incarnation, state.session)
        body = session_document(
            key,
            incarnation=incarnation,
            first_seq=1 if current is None else current.revision + 1,
            state=stored,
            now=self._clock.now(),
            title=display_name(stored),
            initial=await self._initial(creation, incarnation),
            replaced=None if current is None else current.as_predecessor(),
        )
        if current is None:
            return await self._documents.create(key, body)
        document = await self._documents.replace(current, body)
        await self._values.discard(key, NO_STATE, current.named)
        return document

    async def _stored(self, creation: _Creation, incarnation: str, values: Document) -> State:
        state = await self._values.stored(
            creation.key, incarnation, State(values), ttl=record_ttl(incarnation)
        )
        creation.has_large_values |= bool(state.large)
        return state

    async def _initial(self, creation: _Creation, incarnation: str) -> Document | None:
        """User and app state stays in the session document until it is merged, so that a crash of
        the creator does not lose it."""
        if not creation.state.has_shared:
            return None
        initial: Document = {"stamp": self._clock.next()}
        for scope, values in zip(SCOPES, creation.state.shared, strict=True):
            if values:
                initial[scope] = (await self._stored(creation, incarnation, values)).fields
        return initial

    async def _created(self, creation: _Creation, document: SessionDocument) -> SessionDocument:
        await self._discard(creation, document)
        if document.revision == document.first_seq - 1:
            view = LogView(document.incarnation, document.first_seq, [])
            self._views.put(document.key, view)
        return document

    async def _discard(self, creation: _Creation, document: SessionDocument | None) -> None:
        """Removes the large values of failed attempts."""
        others = creation.mine - ({document.incarnation} if document is not None else set())
        if creation.has_large_values and others:
            with contextlib.suppress(StorageError):
                await self._values.erase(creation.key, others.__contains__)


def _outlives(ttl: int | None, predecessor: SessionDocument) -> bool:
    """Whether the new document lives as long as its predecessor's records, and so can say where
    they are. A document that expires does not, if those records never expire."""
    return (
        predecessor.status != DELETED
        or ttl is None
        or retention_of(predecessor.incarnation) is not None
    )
