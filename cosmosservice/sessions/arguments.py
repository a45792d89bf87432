"""What callers pass in, checked before anything is sent."""

from __future__ import annotations

import datetime
import math

from cosmosservice.errors import ConfigurationError
from cosmosservice.sessions.store.keys import SessionKey


def key_or_none(app_name: str, user_id: str, session_id: str) -> SessionKey | None:
    """None if this names no session."""
    if not app_name or is_blank(session_id):
        return None
    return SessionKey.named(app_name, user_id, session_id)


def is_blank(session_id: str) -> bool:
    """Whether it is empty or white space, so that it names no session."""
    return not session_id or (isinstance(session_id, str) and session_id.isspace())


def seconds_of(name: str, value: datetime.datetime | float | None) -> float | None:
    if isinstance(value, datetime.datetime):
        if value.tzinfo is None:
            raise ValueError(f"{name} has no time zone: add one, such as datetime.UTC.")
        return value.timestamp()
    if value is None:
        return None
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if not number or not math.isfinite(value):
        raise ValueError(f"{name} must be a datetime, or a number of seconds since 1970.")
    return float(value)


def age_in_seconds(name: str, age: datetime.timedelta) -> float:
    if not isinstance(age, datetime.timedelta) or age < datetime.timedelta(0):
        raise ValueError(f"{name} must be a datetime.timedelta, such as timedelta(days=30).")
    return age.total_seconds()


def part_of_title(title: str | None) -> str | None:
    if title is None or title == "":
        return None
    if not isinstance(title, str):
        raise ValueError("title must be the text to search for in the titles.")
    # Titles end with % sometimes, as in "50%". Who searches for %50% means a wildcard.
    if "*" in (title[0], title[-1]) or (len(title) > 1 and title[0] == title[-1] == "%"):
        raise ValueError(
            "title is searched for literally, anywhere in the titles. There are no wildcards: leave"
            " out the * at its beginning or end, or the % at both."
        )
    return title


def check_ttl(ttl: int | None) -> None:
    if ttl is not None and (isinstance(ttl, bool) or not isinstance(ttl, int) or ttl < 1):
        raise ConfigurationError("ttl must be a number of seconds, at least 1, or None.")
