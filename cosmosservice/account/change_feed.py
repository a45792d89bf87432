"""Where to continue in a container's change feed.

The SDK reads all ranges in turn, with one continuation that names them all. This package reads each
range separately, because the numbers of changes (`_lsn`) can be compared only within a range. The
SDK's continuation is JSON text in Base64. Only this module knows its form.
"""

from __future__ import annotations

import base64
import json
from dataclasses import dataclass
from typing import Any, Literal

Start = Literal["Now", "Beginning"]


@dataclass(frozen=True, slots=True)
class FeedRange:
    """Some of the partition keys, and how far their change feed has been read."""

    low: str
    high: str
    token: str | None  # None: from the beginning


@dataclass(frozen=True, slots=True)
class FeedStart:
    """Where to start: in one partition, or in all."""

    at: Start
    partition: str | None

    def options(self) -> dict[str, Any]:
        """The arguments for the SDK. Without a range it reads the whole container, but logs that,
        and configures the application's logging to do so."""
        if self.partition is not None:
            return {"start_time": self.at, "partition_key": self.partition}
        return {"start_time": self.at, "feed_range": {"Range": _bounds("", "FF")}}


@dataclass(frozen=True, slots=True)
class FeedContinuation:
    """Where to continue: in one range of the container with this `_rid`."""

    container: str
    range: FeedRange

    def options(self) -> dict[str, Any]:
        bounds = _bounds(self.range.low, self.range.high)
        if self.range.token is None:
            return {"start_time": "Beginning", "feed_range": {"Range": bounds}}
        continuation = {
            "v": "v2",
            "containerRid": self.container,
            "mode": "LatestVersion",
            "startFrom": {"Type": "Beginning"},
            "continuation": {
                "v": "v2",
                "rid": self.container,
                "continuation": [{"token": self.range.token, "range": bounds}],
                "Range": bounds,
            },
        }
        return {"continuation": base64.b64encode(json.dumps(continuation).encode()).decode()}


def _bounds(low: str, high: str) -> dict[str, Any]:
    return {"min": low, "max": high, "isMinInclusive": True, "isMaxInclusive": False}


def continuations(continuation: str) -> list[FeedContinuation]:
    """The ranges of a continuation of the SDK. A page belongs to the last one. There are several at
    the beginning and after a split."""
    found = json.loads(base64.b64decode(continuation))
    return [
        FeedContinuation(
            found["containerRid"],
            FeedRange(each["range"]["min"], each["range"]["max"], each["token"]),
        )
        for each in found["continuation"]["continuation"]
    ]
