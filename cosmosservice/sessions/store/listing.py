"""Lists of sessions: from session documents alone, in ADK's order, a page at a time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from cosmosservice.account.container import Document
from cosmosservice.account.failures import NotFound
from cosmosservice.data_converters.collector import collector_held_off
from cosmosservice.data_converters.state_scopes import Scoped
from cosmosservice.hosting.concurrency import together
from cosmosservice.scopes import SCOPES, Pair
from cosmosservice.sessions.store.keys import LISTED, Marker, SessionKey, StateKey
from cosmosservice.sessions.store.large_values import DamagedValueError
from cosmosservice.sessions.store.pages import Latest, SortKey, Wanted
from cosmosservice.sessions.store.parts import Part, Parts
from cosmosservice.sessions.store.projector import Projector
from cosmosservice.sessions.store.queries import COUNTED, USER_STATES
from cosmosservice.sessions.store.session_documents import SessionDocument
from cosmosservice.sessions.store.snapshot import Snapshot
from cosmosservice.sessions.store.state_documents import (
    NO_CHANGES,
    StateDocument,
    parse_state,
)

_AT_ONCE = 16


class Listing(Part):
    """Sessions of a user or of all users of an app."""

    def __init__(self, parts: Parts, projector: Projector) -> None:
        super().__init__(parts)
        self._container = parts.sessions
        self._projector = projector

    async def page(
        self, wanted: Wanted, *, limit: int | None = None, continuation: str | None = None
    ) -> tuple[list[Snapshot], str | None]:
        """The sessions, and the continuation if there may be more."""
        app_name, user_id = wanted.app_name, wanted.user_id
        if not app_name:
            return [], None
        app_key = StateKey.of_app(app_name)
        user_key = StateKey.of_user(app_name, user_id) if user_id is not None else None
        after = None if continuation is None else wanted.after(continuation)
        # This process's latest appends are listed at once; those of others may follow later.
        await self._projector.flush(concerns(app_name, user_id))
        text, parameters = wanted.query(self._clock.now(), after, limit)
        listed = self._listed(text, parameters, user_id, limit)
        app_state = self._states.read(app_key)
        if user_key is None and limit is not None:  # a page does not need the state of every user
            (found, more), app = await together(listed, app_state)
            users = await self._users_of(app_name, {key.user_id for key, _ in found})
        else:
            users_found = self._users(app_name, user_key)
            (found, more), app, users = await together(listed, app_state, users_found)
        snapshots = await self._snapshots(found, users, app)
        return snapshots, wanted.continuation(SortKey.of(*found[-1])) if more else None

    async def count(self, app_name: str, user_id: str | None, status: str) -> int:
        """How many sessions there are, without reading any."""
        if not app_name:
            return 0
        StateKey.of_user(app_name, user_id or "")  # checks the names
        parameters = {"app": app_name, "status": status, "now": self._clock.now()}
        return await self._container.count(COUNTED, parameters, user_id)

    async def latest(
        self, wanted: Latest, limit: int, continuation: str | None
    ) -> tuple[list[Document], str | None]:
        """Selected fields of the most recently used sessions, the newest first."""
        start = wanted.start(continuation)
        text, parameters = wanted.query(self._clock.now(), start, limit)
        found = await self._container.query(text, parameters, wanted.user_id)
        shown = [
            body
            for body in found
            if SortKey.of_names(body) != start.after or body["app_name"] not in start.seen
        ][:limit]
        more = len(found) == parameters["limit"] and shown
        return shown, wanted.continuation(shown, start) if more else None

    async def _listed(
        self, text: str, parameters: dict[str, Any], user_id: str | None, limit: int | None
    ) -> tuple[list[tuple[SessionKey, Document]], bool]:
        """Up to `limit` session documents with their keys, and whether there may be more."""
        if limit is None:
            return _keyed(await self._container.query(text, parameters, user_id)), False
        count = limit
        while True:
            found = await self._container.query(text, parameters | {"limit": count}, user_id)
            keyed = _keyed(found)
            if keyed or len(found) < count:
                return keyed[:limit], bool(keyed) and (len(found) == count or len(keyed) > limit)
            count *= 2  # all are damaged, and only an intact one says where to continue

    async def _users_of(self, app_name: str, users_found: set[str]) -> dict[str, StateDocument]:
        ids = sorted(users_found)
        users: dict[str, StateDocument] = {}
        for start in range(0, len(ids), _AT_ONCE):
            some = [StateKey(SCOPES.user, app_name, user) for user in ids[start : start + _AT_ONCE]]
            found = await together(*map(self._states.read, some))
            users |= {key.user_id: state for key, state in zip(some, found, strict=True)}
        return users

    async def _users(self, app_name: str, user: StateKey | None) -> dict[str, StateDocument]:
        if user is not None:
            return {user.user_id: await self._states.read(user)}
        found = await self._container.query(USER_STATES, {"app": app_name})
        wanted = StateKey.of_user(app_name, "").document_type
        return {
            user_id: parse_state(StateKey.of_user(app_name, user_id), body)
            for body in found
            if body.get("document_type") == wanted
            and isinstance(user_id := body.get("user_id"), str)
        }

    async def _snapshots(
        self,
        found: list[tuple[SessionKey, Document]],
        users: dict[str, StateDocument],
        app: StateDocument,
    ) -> list[Snapshot]:
        shared: dict[str, Pair[StateDocument]] = {}
        whole: dict[str, Pair[Document]] = {}  # their values: nearly all sessions need no others
        for key, _ in found:
            if key.user_id not in whole:
                both = Pair(users.get(key.user_id) or StateDocument(key.shared.user), app)
                shared[key.user_id] = both
                whole[key.user_id] = await self._states.whole_shared(both, NO_CHANGES)
        with collector_held_off():
            documents = [SessionDocument(key, body, "") for key, body in found]
            snapshots = [
                _snapshot(each, Scoped(each.state.inline, whole[each.key.user_id]))
                for each in documents
            ]
        for at, document in enumerate(documents):
            if document.state.large or document.initial:
                snapshots[at] = await self._whole(document, shared[document.key.user_id])
        return snapshots

    async def _whole(self, document: SessionDocument, shared: Pair[StateDocument]) -> Snapshot:
        """With the values that are stored elsewhere."""
        key = document.key
        state, changes = document.state.inline, NO_CHANGES
        for last in (False, True):
            try:
                state = await self._values.whole(key, document.state, without_lost=last)
                changes = await self._documents.initial_changes(document)
                break
            except (NotFound, DamagedValueError):  # replaced since the list was read, or lost
                document = await self._documents.read_confirmed(key) or document
                state = document.state.inline
        return _snapshot(document, Scoped(state, await self._states.whole_shared(shared, changes)))


def _snapshot(document: SessionDocument, state: Scoped) -> Snapshot:
    return Snapshot(
        document.key,
        Marker(str(document.body.get("incarnation", "")), document.revision, use=LISTED),
        [],
        state,
        document.last_update_time,
        document.title,
    )


def _keyed(found: list[Document]) -> list[tuple[SessionKey, Document]]:
    return [(key, body) for body in found if (key := _key(body)) is not None]


def _key(body: Document) -> SessionKey | None:
    """Skips the checks of names that come from outside: there may be thousands of documents."""
    app, user, session = body.get("app_name"), body.get("user_id"), body.get("session_id")
    if app and session and type(app) is type(user) is type(session) is str:
        return SessionKey(app, user, session)
    return SessionKey.in_document(body)


def concerns(app_name: str, user_id: str | None) -> Callable[[SessionKey], bool]:
    """Whether a session belongs to a list."""
    return lambda key: key.app_name == app_name and user_id in (None, key.user_id)
