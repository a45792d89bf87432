"""Sessions of all apps and users: found, newest first, a page at a time."""

from __future__ import annotations

import sys
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from cosmosservice.account.container import Document
from cosmosservice.explore.queries import ACTIVITY
from cosmosservice.hosting.operation import Bounded, Unbounded
from cosmosservice.sessions.store.keys import SessionKey
from cosmosservice.sessions.store.pages import Latest
from cosmosservice.sessions.store.records import number

if TYPE_CHECKING:
    from cosmosservice.cosmos_session_service import CosmosSessionService

PAGE: Final = 50
_MOST_APPS: Final = 200  # that the search form offers
EVER: Final = sys.float_info.max

# A search for a text checks sessions one by one, this many at a time, until half a page is found.
# A common text is found at once, and a rare one costs no more than all of these.
_LOOKS: Final = (50, 150, 300, 500, 500, 500)


@dataclass(frozen=True)
class Search(Latest):
    """The most recently used sessions that match."""

    text: str = ""  # in the title, the session id or the user id

    def may_hold(self, key: SessionKey) -> bool:
        """Whether a session may match, judging by its names."""
        return self.app_name in (None, key.app_name) and self.user_id in (None, key.user_id)

    def fits(self, row: Row) -> bool:
        text = self.text.casefold()
        names = (row.title, row.key.session_id, row.key.user_id)
        return any(text in name.casefold() for name in names)


@dataclass(frozen=True)
class Row:
    """A session in the list."""

    key: SessionKey
    title: str
    last_update_time: float
    revision: int
    records: int


@dataclass(frozen=True)
class Found:
    rows: list[Row]
    continuation: str | None
    version: str  # changes when a session is used
    looked: int = 0  # how many sessions were checked for a text
    back_to: float = 0.0  # the oldest of them


class Catalogue:
    """The only part of the page that queries several sessions."""

    def __init__(self, service: CosmosSessionService) -> None:
        self._service = service
        self._apps: set[str] = set()

    @property
    def apps(self) -> list[str]:
        """The apps seen so far. A query for all of them would read every session."""
        return sorted(self._apps)

    async def find(
        self, search: Search, limit: int = PAGE, continuation: str | None = None
    ) -> Found:
        if search.text:
            return await self._find_text(search, limit, continuation)
        rows, following = await self._look(search, limit, continuation)
        return Found(rows, following, _version(rows))

    async def _find_text(self, search: Search, limit: int, continuation: str | None) -> Found:
        rows: list[Row] = []
        looked: list[Row] = []
        if continuation is None:  # sessions with exactly this id, however old
            rows, _ = await self._look(replace(search, with_id=search.text), limit, None)
        # A search for an id ends with it, but may be continued.
        for count in _LOOKS[:1] if rows else _LOOKS:
            some, continuation = await self._look(search, count, continuation)
            looked += some
            rows += [row for row in some if search.fits(row) and row not in rows]
            if len(rows) >= limit // 2 or continuation is None:
                break
        back_to = looked[-1].last_update_time if looked else 0.0
        return Found(rows, continuation, _version(looked), len(looked), back_to)

    async def _look(
        self, search: Search, limit: int, continuation: str | None
    ) -> tuple[list[Row], str | None]:
        found, following = await self._service.in_store(
            Bounded("list_sessions"),
            lambda store: store.listing.latest(search, limit, continuation),
        )
        rows = [row for body in found if (row := _row(body)) is not None]
        if len(self._apps) < _MOST_APPS:
            self._apps.update(row.key.app_name for row in rows)
        return rows, following

    async def version(self, search: Search) -> str:
        """The version of the current search result, in one small request."""
        return (await self.find(replace(search, text=""), 1)).version

    async def activity(self, since: float, limit: int) -> list[Document]:
        """App, time, author and token usage of the events since then, the newest first."""
        parameters = {"limit": limit, "since": int(since)}
        return await self._service.in_store(
            Unbounded("activity"), lambda store: store.events.query(ACTIVITY, parameters)
        )


def _version(rows: list[Row]) -> str:
    return str(rows[0].last_update_time if rows else 0.0)


def _row(body: Document) -> Row | None:
    key = SessionKey.in_document(body)
    if key is None:
        return None
    title = body.get("title")
    revision = int(number(body.get("revision")))
    return Row(
        key,
        title if isinstance(title, str) else "",
        number(body.get("last_update_time")),
        revision,
        max(0, revision - int(number(body.get("first_seq"))) + 1),
    )
