"""Sessions of all apps and users: found, newest first, a page at a time."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from cosmosservice.account.container import Document
from cosmosservice.explore.queries import ACTIVITY, FOUND
from cosmosservice.sessions.store.documents import ACTIVE
from cosmosservice.sessions.store.keys import SessionKey
from cosmosservice.sessions.store.pages import Latest, Position, Start
from cosmosservice.sessions.store.records import number

if TYPE_CHECKING:
    from cosmosservice.cosmos_session_service import CosmosSessionService

PAGE: Final = 50
EVER: Final = sys.float_info.max


@dataclass(frozen=True)
class Search(Latest):
    """The sessions that were used last, of those that fit."""

    app_name: str | None = None
    user_id: str | None = None
    status: str = ACTIVE
    text: str = ""  # in the title, the session id or the user id
    after: float = -EVER  # inclusive
    before: float = EVER  # exclusive

    def start(self, continuation: str | None) -> Start:
        if continuation is None:
            return Start(Position(self.before, "", ""))
        return super().start(continuation)

    def query(self, now: float, start: Start, limit: int) -> tuple[str, dict[str, Any]]:
        _, parameters = super().query(now, start, limit)
        chosen = {"app": self.app_name or "", "text": self.text, "after": self.after}
        return FOUND, parameters | chosen


@dataclass(frozen=True)
class Row:
    """A session in the list."""

    key: SessionKey
    title: str
    last_update_time: float
    records: int


@dataclass(frozen=True)
class Found:
    rows: list[Row]
    continuation: str | None


class Catalogue:
    """The only part of the page that asks for several sessions."""

    def __init__(self, service: CosmosSessionService) -> None:
        self._service = service
        self._apps: set[str] = set()

    @property
    def apps(self) -> list[str]:
        """Those that were met so far. A query for all of them would look at every session."""
        return sorted(self._apps)

    async def find(
        self, search: Search, limit: int = PAGE, continuation: str | None = None
    ) -> Found:
        found, following = await self._service._run(
            "list_sessions", lambda store: store.listing.latest(search, limit, continuation)
        )
        rows = [row for body in found if (row := _row(body)) is not None]
        self._apps.update(row.key.app_name for row in rows)
        return Found(rows, following)

    async def newest(self, search: Search) -> float:
        """When the newest of them was updated; 0 if there is none."""
        found = await self.find(search, 1)
        return found.rows[0].last_update_time if found.rows else 0.0

    async def activity(self, app_name: str, since: float, limit: int) -> list[Document]:
        """Time, author and use of tokens of the events since then, the newest first."""
        parameters = {"limit": limit, "since": int(since), "app": app_name}
        return await self._service._run(
            "activity", lambda store: store.events.query(ACTIVITY, parameters)
        )


def _row(body: Document) -> Row | None:
    key = SessionKey.in_document(body)
    if key is None:
        return None
    title = body.get("title")
    records = number(body.get("revision")) - number(body.get("first_seq")) + 1
    return Row(
        key,
        title if isinstance(title, str) else "",
        number(body.get("last_update_time")),
        max(0, int(records)),
    )
