"""What the address of a page names: a session, a user, a search."""

from __future__ import annotations

import datetime

from aiohttp import web

from cosmosservice.explore.catalogue import EVER, Search
from cosmosservice.sessions.store.documents import ACTIVE, DELETED
from cosmosservice.sessions.store.keys import SessionKey


def session_of(request: web.Request) -> SessionKey:
    query = request.query
    return SessionKey.named(query.get("app", ""), query.get("user", ""), query.get("session", ""))


def user_of(request: web.Request) -> SessionKey:
    """A user of an app, with the session if the address names one."""
    query = request.query
    if not query.get("app"):
        raise ValueError("The address names no app.")
    return SessionKey(query["app"], query.get("user", ""), query.get("session", ""))


def number_of(request: web.Request, name: str) -> int | None:
    return number(name, request.query.get(name, ""))


def number(name: str, given: str) -> int | None:
    if not given:
        return None
    if not given.isdecimal() or len(given) > 10:
        raise ValueError(f"In the address, {name} is a number.")
    return int(given)


def search_of(request: web.Request) -> Search:
    query = request.query
    return Search(
        query.get("app") or None,
        query.get("user") or None,
        DELETED if query.get("deleted") == "yes" else ACTIVE,
        _day(query.get("from", ""), -EVER),
        _day(query.get("to", ""), EVER, 1),
        text=query.get("q", "").strip(),
    )


def _day(given: str, default: float, later: int = 0) -> float:
    """The beginning of a day in local time, or of the day `later` days after it."""
    if not given:
        return default
    try:
        day = datetime.datetime.fromisoformat(given) + datetime.timedelta(days=later)
        return day.astimezone().timestamp()
    except (ValueError, OverflowError, OSError):
        raise ValueError("A day is written as 2026-01-31.") from None
