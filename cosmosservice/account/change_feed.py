"""Places in a container's change feed.

The SDK reads all ranges in turn, by one continuation that names them all. Here every range is read
by itself: the numbers of changes (`_lsn`) can be compared within a range only. What the SDK gives
and takes as a continuation is the Base64 of a JSON text; nothing else here knows its form.
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
    """Where to begin: in one partition, or in all."""

    at: Start
    partition: str | None

    def options(self) -> dict[str, Any]:
        """What the SDK needs to know. Without a range it takes the whole, but says so in the log,
        and sets up the application's log to do it."""
        if self.partition is not None:
            return {"start_time": self.at, "partition_key": self.partition}
        return {"start_time": self.at, "feed_range": {"Range": _bounds("", "FF")}}


@dataclass(frozen=True, slots=True)
class FeedPoint:
    """Where to go on: in one range of the container with this `_rid`."""

    container: str
    range: FeedRange

    def options(self) -> dict[str, Any]:
        bounds = _bounds(self.range.low, self.range.high)
        if self.range.token is None:
            return {"start_time": "Beginning", "feed_range": {"Range": bounds}}
        place = {
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
        return {"continuation": base64.b64encode(json.dumps(place).encode()).decode()}


def _bounds(low: str, high: str) -> dict[str, Any]:
    return {"min": low, "max": high, "isMinInclusive": True, "isMaxInclusive": False}


def points(continuation: str) -> list[FeedPoint]:
    """The ranges of an SDK's continuation. A page belongs to the last one; there are several at a
    beginning and after a split."""
    place = json.loads(base64.b64decode(continuation))
    return [
        FeedPoint(
            place["containerRid"],
            FeedRange(each["range"]["min"], each["range"]["max"], each["token"]),
        )
        for each in place["continuation"]["continuation"]
    ]
