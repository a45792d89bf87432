"""Lists of sessions: from session documents alone, in ADK's order, a page at a time."""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Callable
from typing import Any

from cosmosservice.account.container import Container, Document
from cosmosservice.data_converters.state_scopes import Scoped
from cosmosservice.hosting.concurrency import together
from cosmosservice.sessions.store.documents import ACTIVE
from cosmosservice.sessions.store.keys import APP_STATE, USER_STATE, SessionKey, StateKey
from cosmosservice.sessions.store.projector import Projector
from cosmosservice.sessions.store.session_documents import SessionDocument
from cosmosservice.sessions.store.snapshot import Snapshot
from cosmosservice.sessions.store.state_documents import StateDocument, StateDocuments, parse_state

_ORDER = "ORDER BY c.last_update_time, c.user_id, c.session_id"
_WANTED = "c.app_name = @app AND c.status = @status"
# The SDK, which merges the partitions, takes sort keys of one type only: a single document without
# its names or its time would end the list of an app. A comparison holds for one type, by the index.
_SOUND = "c.last_update_time >= -1.7976931348623157e308 AND c.user_id >= '' AND c.session_id >= ''"
_LATER = (
    "c.last_update_time >= @time AND (c.last_update_time > @time OR c.user_id > @user"
    " OR (c.user_id = @user AND c.session_id > @session))"
)
ALL = f"SELECT * FROM c WHERE {_WANTED} {_ORDER}"
FIRST_PAGE = f"SELECT TOP @limit * FROM c WHERE {_WANTED} {_ORDER}"
NEXT_PAGE = f"SELECT TOP @limit * FROM c WHERE {_WANTED} AND {_LATER} {_ORDER}"
ALL_OF_APP = f"SELECT * FROM c WHERE {_WANTED} AND {_SOUND} {_ORDER}"
FIRST_PAGE_OF_APP = f"SELECT TOP @limit * FROM c WHERE {_WANTED} AND {_SOUND} {_ORDER}"
NEXT_PAGE_OF_APP = f"SELECT TOP @limit * FROM c WHERE {_WANTED} AND {_SOUND} AND {_LATER} {_ORDER}"
USER_STATES = "SELECT * FROM c WHERE c.app_name = @app AND NOT IS_DEFINED(c.status)"

_AT_ONCE = 16

_Position = tuple[float, str, str]  # (last update, user, session): unique, and the sort order


class Listing:
    """Sessions of a user or of all users of an app."""

    def __init__(self, container: Container, states: StateDocuments, projector: Projector) -> None:
        self._container = container
        self._states = states
        self._projector = projector

    async def page(
        self,
        app_name: str,
        user_id: str | None,
        *,
        limit: int | None = None,
        continuation: str | None = None,
        status: str = ACTIVE,
    ) -> tuple[list[Snapshot], str | None]:
        """The sessions, and the continuation if there may be more."""
        if not app_name:
            return [], None
        app_key = StateKey.of_app(app_name)
        user_key = StateKey.of_user(app_name, user_id) if user_id is not None else None
        # What this process appended a moment ago is listed as it is; what others did follows.
        await self._projector.flush(_concerns(app_name, user_id))
        parameters: dict[str, Any] = {"app": app_name, "status": status}
        across = user_id is None
        if limit is None:
            text = ALL_OF_APP if across else ALL
        else:
            text = FIRST_PAGE_OF_APP if across else FIRST_PAGE
        if continuation is not None:
            text = NEXT_PAGE_OF_APP if across else NEXT_PAGE
            parameters |= zip(("time", "user", "session"), _position(continuation), strict=True)
        listed = self._listed(text, parameters, user_id, limit)
        app_state = self._states.read(app_key)
        if user_key is None and limit is not None:  # not the state of every user for some of them
            (found, more), app = await together(listed, app_state)
            users = await self._users_of(app_name, {key.user_id for key, _ in found})
        else:
            users_found = self._users(app_name, user_key)
            (found, more), app, users = await together(listed, app_state, users_found)
        snapshots = [_snapshot(key, body, app, users.get(key.user_id)) for key, body in found]
        return snapshots, _continuation(snapshots[-1]) if more else None

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
            count *= 2  # all are damaged, and only one that is not says where to go on

    async def _users_of(self, app_name: str, users_found: set[str]) -> dict[str, StateDocument]:
        ids = sorted(users_found)
        users: dict[str, StateDocument] = {}
        for start in range(0, len(ids), _AT_ONCE):
            some = [StateKey(USER_STATE, app_name, user) for user in ids[start : start + _AT_ONCE]]
            found = await together(*map(self._states.read, some))
            users |= {key.user_id: state for key, state in zip(some, found, strict=True)}
        return users

    async def _users(self, app_name: str, user: StateKey | None) -> dict[str, StateDocument]:
        if user is not None:
            return {user.user_id: await self._states.read(user)}
        found = await self._container.query(USER_STATES, {"app": app_name})
        return {
            user_id: parse_state(StateKey.of_user(app_name, user_id), body)
            for body in found
            if body.get("document_type") == USER_STATE
            and isinstance(user_id := body.get("user_id"), str)
        }


def _keyed(found: list[Document]) -> list[tuple[SessionKey, Document]]:
    return [(key, body) for body in found if (key := _key(body)) is not None]


def _key(body: Document) -> SessionKey | None:
    """Without the checks of names that come from outside: there may be thousands of documents."""
    app, user, session = body.get("app_name"), body.get("user_id"), body.get("session_id")
    if app and session and type(app) is type(user) is type(session) is str:
        return SessionKey(app, user, session)
    return SessionKey.in_document(body)


def _concerns(app_name: str, user_id: str | None) -> Callable[[SessionKey], bool]:
    return lambda key: key.app_name == app_name and user_id in (None, key.user_id)


def _snapshot(
    key: SessionKey, body: Document, app: StateDocument, user: StateDocument | None
) -> Snapshot:
    document = SessionDocument(key, body, "")
    user = user or StateDocument(key.user)
    return Snapshot(
        key,
        None,
        [],
        Scoped(
            document.state,
            user.overlaid(document.pending_changes(USER_STATE)),
            app.overlaid(document.pending_changes(APP_STATE)),
        ),
        document.last_update_time,
    )


def _continuation(last: Snapshot) -> str:
    position = [last.last_update_time, last.key.user_id, last.key.session_id]
    return base64.urlsafe_b64encode(json.dumps(position).encode()).decode("ascii")


def _position(continuation: str) -> _Position:
    try:
        last, user, session = json.loads(base64.urlsafe_b64decode(continuation.encode()))
        return float(last), str(user), str(session)
    except (ValueError, TypeError, binascii.Error):
        raise ValueError("continuation is not one that list_sessions_page returned.") from None
