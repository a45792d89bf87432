"""What sessions have used: turns, tokens and request units. The session document keeps the sums of
its records, so that they can be computed again from the log."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Iterable
from dataclasses import dataclass, fields
from typing import Any, Final, Self

from cosmosservice.account.container import Document
from cosmosservice.data_converters import from_json
from cosmosservice.sessions.store.records import Record

# Size in KB, and what Microsoft publishes for a create of that size without an index.
_PUBLISHED: Final = [
    (1, 104 / 21), (2, 6.29), (4, 6.67), (8, 7.04), (16, 9.52), (32, 11.23), (64, 22.67),
    (128, 48.19), (256, 98.29), (512, 184.57), (1024, 625.00), (2048, 1250.00),
]  # fmt: skip
_INDEX: Final = 12 / 21  # the three terms of `id` and `_ts`, at the charge that was recorded
_ENVELOPE: Final = 400  # bytes that the log adds to an event, approximately
_FRACTIONS: Final = ("request_units", "since")
_INPUT: Final = ("prompt_token_count", "tool_use_prompt_token_count")
_MOST: Final = 1e12  # tokens of one event: more is nonsense


@dataclass(frozen=True)
class Usage:
    """Sums. What a fork has copied counts in its source, except for the request units of the
    copies."""

    turns: int = 0  # messages of the user
    events: int = 0
    input_tokens: int = 0  # including cached ones
    cached_tokens: int = 0
    output_tokens: int = 0  # without thoughts
    thought_tokens: int = 0
    request_units: float = 0.0  # to store the events, estimated from their sizes
    since: float = math.inf  # the earliest time of these events

    @property
    def tokens(self) -> int:
        """In and out, thoughts included."""
        return self.input_tokens + self.output_tokens + self.thought_tokens

    def __add__(self, other: Usage) -> Usage:
        values = {
            each.name: getattr(self, each.name) + getattr(other, each.name)
            for each in fields(self)
            if each.name != "since"
        }
        return Usage(**values, since=min(self.since, other.since))

    @property
    def stored(self) -> Document:
        """The field of a session document: what is not zero."""
        found: Document = {
            each.name: value for each in fields(self) if (value := getattr(self, each.name))
        }
        if math.isinf(self.since):
            found.pop("since")
        if self.request_units:
            found["request_units"] = round(self.request_units, 2)
        return found

    @classmethod
    def of(cls, body: Any) -> Self:
        """What a session document says, without what is damaged."""
        found = body if isinstance(body, dict) else {}
        values: dict[str, Any] = {
            each.name: value if each.name in _FRACTIONS else int(value)
            for each in fields(cls)
            if (value := _number(found.get(each.name), math.inf)) is not None
        }
        return cls(**values)

    @classmethod
    def of_records(cls, records: Iterable[Record], since: float = -math.inf) -> Usage:
        """The sums of the events at that time or later."""
        return sum((_of_record(each) for each in records if _counts(each, since)), Usage())


def _counts(record: Record, since: float) -> bool:
    return record.is_event and (since == -math.inf or record.timestamp >= since)


def _of_record(record: Record) -> Usage:
    units = stored_units(len(record.raw) + _ENVELOPE)
    if record.copied or record.lost:
        return Usage(request_units=units)
    body = from_json(record.raw) if record.fields is None else record.fields
    used = body.get("usage_metadata")
    found = used if isinstance(used, dict) else {}

    def count(*names: str) -> int:
        return sum(int(_number(found.get(name), _MOST) or 0) for name in names)

    return Usage(
        turns=int(body.get("author") == "user" and bool(body.get("content"))),
        events=1,
        input_tokens=count(*_INPUT),
        cached_tokens=count("cached_content_token_count"),
        output_tokens=count("candidates_token_count"),
        thought_tokens=count("thoughts_token_count"),
        request_units=units,
        since=record.timestamp if math.isfinite(record.timestamp) else math.inf,
    )


def stored_units(size: int) -> float:
    """The approximate charge for creating a log document of this size in bytes."""
    kilobytes = max(size / 1024, 1.0)
    after = min(max(bisect_left(_PUBLISHED, (kilobytes,)), 1), len(_PUBLISHED) - 1)
    (low, cheap), (high, dear) = _PUBLISHED[after - 1 : after + 1]
    return cheap + (kilobytes - low) / (high - low) * (dear - cheap) + _INDEX


def _number(value: Any, most: float) -> float | None:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return value if is_number and 0 < value < most else None


@dataclass(frozen=True)
class SessionUsage:
    """What one session has used."""

    user_id: str
    session_id: str
    title: str
    last_update_time: float
    deleted: bool
    usage: Usage


@dataclass(frozen=True)
class UsageReport:
    """What the sessions of an app or of a user have used."""

    app_name: str
    sessions: list[SessionUsage]  # by user and id

    @property
    def total(self) -> Usage:
        """The sums of all sessions."""
        return sum((each.usage for each in self.sessions), Usage())

    @property
    def by_user(self) -> dict[str, Usage]:
        """The sums of each user's sessions."""
        found: dict[str, Usage] = {}
        for each in self.sessions:
            found[each.user_id] = found.get(each.user_id, Usage()) + each.usage
        return found
