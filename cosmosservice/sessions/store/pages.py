"""A list of sessions, page by page: the filters, and where the next page begins."""

from __future__ import annotations

import base64
import hashlib
import json
import math
import sys
from dataclasses import dataclass, fields
from typing import Any, NamedTuple

from cosmosservice.account.container import Document
from cosmosservice.sessions.store.documents import ACTIVE
from cosmosservice.sessions.store.keys import SessionKey
from cosmosservice.sessions.store.queries import (
    ALL_OF_APP,
    ALL_OF_USER,
    BY_NAME,
    CHOSEN_BY_NAME,
    FIRST_PAGE_OF_APP,
    FIRST_PAGE_OF_USER,
    NEWEST_CHOSEN,
    NEXT_PAGE_OF_APP,
    NEXT_PAGE_OF_USER,
    OLDEST_CHOSEN,
    latest,
)

_OTHER_LIST = (
    "continuation belongs to another list: of another app or user, in another order or with other"
    " filters."
)
_ALL = sys.float_info.max  # later than any time


class SortKey(NamedTuple):
    """Where a session is in a list: the sort key, which is unique within an app."""

    last_update_time: float
    user_id: str
    session_id: str

    @classmethod
    def of(cls, key: SessionKey, body: Document) -> SortKey:
        last = body.get("last_update_time")
        time = float(last) if isinstance(last, int | float) else 0.0
        return cls(time, key.user_id, key.session_id)

    @classmethod
    def of_names(cls, body: Document) -> SortKey:
        return cls(float(body["last_update_time"]), body["user_id"], body["session_id"])


@dataclass(frozen=True)
class Wanted:
    """Which sessions, in which order."""

    app_name: str
    user_id: str | None = None  # None: of all users
    status: str = ACTIVE
    newest_first: bool = False
    by_id: bool = False  # in an order that use does not change
    updated_after: float | None = None  # inclusive
    updated_before: float | None = None  # exclusive
    title: str | None = None  # a part of the title, in any case

    def query(
        self, now: float, after: SortKey | None, limit: int | None
    ) -> tuple[str, dict[str, Any]]:
        """The text of the query for a page, or for all of them, and its parameters."""
        parameters: dict[str, Any] = {"app": self.app_name, "status": self.status, "now": now}
        across = self.user_id is None
        if self.by_id and not self._filtered:
            return BY_NAME, parameters | _named(after or SortKey(0.0, "", ""))
        if not self._filtered and not self.newest_first:
            if after is not None:
                text = NEXT_PAGE_OF_APP if across else NEXT_PAGE_OF_USER
                return text, parameters | _named(after)
            if limit is not None:
                return FIRST_PAGE_OF_APP if across else FIRST_PAGE_OF_USER, parameters
            return ALL_OF_APP if across else ALL_OF_USER, parameters
        parameters |= {
            "updated_after": -_ALL if self.updated_after is None else self.updated_after,
            "updated_before": _ALL if self.updated_before is None else self.updated_before,
            "title": self.title or "",
        }
        if self.by_id:
            return CHOSEN_BY_NAME, parameters | _named(after or SortKey(0.0, "", ""))
        if self.newest_first:
            return NEWEST_CHOSEN, parameters | _named(after or SortKey(_ALL, "", ""))
        return OLDEST_CHOSEN, parameters | _named(after or SortKey(-_ALL, "", ""))

    @property
    def _filtered(self) -> bool:
        bounds = self.updated_after, self.updated_before
        return self.title is not None or bounds != (None, None)

    def continuation(self, after: SortKey) -> str:
        return _encoded(_digest(self), after)

    def after(self, continuation: str) -> SortKey:
        """Where the next page begins. Raises ValueError if this is not a continuation of this
        list."""
        after, _ = _decoded(continuation, _digest(self))
        if self.user_id not in (None, after.user_id):
            raise ValueError(_OTHER_LIST)
        return after


@dataclass(frozen=True)
class Start:
    """Where a page of sessions of several apps begins. Sessions that differ only in their app have
    the same sort key: those of the `seen` apps were on the previous page."""

    after: SortKey
    seen: tuple[str, ...] = ()


@dataclass(frozen=True)
class Latest:
    """The most recently used sessions, of one app or of all."""

    app_name: str | None = None
    user_id: str | None = None
    status: str = ACTIVE
    updated_after: float = -_ALL  # inclusive
    updated_before: float = _ALL  # exclusive
    with_id: str | None = None  # the session id or the user id

    def start(self, continuation: str | None) -> Start:
        """Raises ValueError if this is not a continuation of this list."""
        if continuation is None:
            return Start(SortKey(self.updated_before, "", ""))
        return Start(*_decoded(continuation, _digest(self)))

    def query(self, now: float, start: Start, limit: int) -> tuple[str, dict[str, Any]]:
        parameters: dict[str, Any] = {"status": self.status, "now": now}
        parameters |= {"limit": limit + len(start.seen), "updated_after": self.updated_after}
        parameters |= _named(start.after)
        if self.app_name is not None:
            parameters["app"] = self.app_name
        if self.with_id is not None:
            parameters["id"] = self.with_id
        text = latest(of_app=self.app_name is not None, with_id=self.with_id is not None)
        return text, parameters

    def continuation(self, shown: list[Document], start: Start) -> str:
        """The continuation after these sessions."""
        last = SortKey.of_names(shown[-1])
        seen = [str(each["app_name"]) for each in shown if SortKey.of_names(each) == last]
        if last == start.after:
            seen += start.seen
        return _encoded(_digest(self), last, *seen)


def _named(after: SortKey) -> dict[str, Any]:
    return dict(zip(("time", "user", "session"), after, strict=True))


def _digest(wanted: Wanted | Latest) -> str:
    """Tells lists apart. A continuation is not a secret: it only says where to continue in a list
    that whoever has it may read anyway."""
    values = [getattr(wanted, each.name) for each in fields(wanted)]
    return hashlib.sha256(json.dumps(values).encode()).hexdigest()[:16]


def _encoded(digest: str, after: SortKey, *apps: str) -> str:
    text = json.dumps([digest, *after, *apps])
    return base64.urlsafe_b64encode(text.encode()).decode("ascii")


def _decoded(continuation: str, digest: str) -> tuple[SortKey, tuple[str, ...]]:
    try:
        decoded = base64.urlsafe_b64decode(continuation.encode())
        found, time, user, session, *apps = json.loads(decoded)
        for each in (found, user, session, *apps):
            each.encode()
        if not isinstance(time, int | float) or not math.isfinite(time):
            raise ValueError
        after = SortKey(float(time), user, session)
    except (ValueError, TypeError, AttributeError, RecursionError, OverflowError):
        raise ValueError("continuation is not one that list_sessions_page returned.") from None
    if found != digest:
        raise ValueError(_OTHER_LIST)
    return after, tuple(apps)
