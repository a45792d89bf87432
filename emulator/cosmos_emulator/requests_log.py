"""The request log: requests, their answers, and their times."""

from __future__ import annotations

import itertools
import time
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass

from cosmos_emulator import forks
from cosmos_emulator.documents import load_object
from cosmos_emulator.errors import CosmosError
from cosmos_emulator.messages import Request, Response

KEPT = 50_000


@dataclass(slots=True)
class RequestRecord:
    """One request. `status` is 0 while it runs, and stays 0 when the connection was dropped.

    `started` and `ended` are seconds of the monotonic clock. For a read from replicas,
    `served_lsn` is the LSN that it saw, and `stale` whether there was a newer one.
    """

    sequence: int
    method: str
    operation: str
    resource: str
    database: str | None
    container: str | None
    id: str | None
    partition_key: str | None
    started: float
    ended: float = 0.0
    status: int = 0
    substatus: int = 0
    charge: float = 0.0
    fault: str | None = None
    served_lsn: int | None = None
    stale: bool = False

    def overlaps(self, other: RequestRecord) -> bool:
        """Whether the two were under way at the same time."""
        return self.started < other.ended and other.started < self.ended


def _id(request: Request) -> str | None:
    """The id in the path, or in the body of an item to create."""
    if request.resource != "docs" or request.operation not in ("create", "upsert"):
        return request.id
    try:
        item_id = load_object(request).get("id")
    except CosmosError:
        return None
    return item_id if isinstance(item_id, str) else None


class RequestLog:
    """The latest requests in order of arrival; reads like a list."""

    def __init__(self) -> None:
        self._records: deque[RequestRecord] = deque(maxlen=KEPT)
        self._numbers = itertools.count(1)
        self._lock = forks.lock()

    def begin(self, request: Request) -> RequestRecord:
        record = RequestRecord(
            sequence=0,
            method=request.method,
            operation=request.operation,
            resource=request.resource,
            database=request.database,
            container=request.container,
            id=_id(request),
            partition_key=request.partition_key,
            started=time.monotonic(),
        )
        with self._lock:
            record.sequence = next(self._numbers)
            self._records.append(record)
        return record

    @staticmethod
    def end(record: RequestRecord, response: Response | None) -> None:
        record.ended = time.monotonic()
        if response is not None:
            record.status = response.status
            record.substatus = response.substatus
            record.charge = response.charge

    def clear(self) -> None:
        with self._lock:
            self._records.clear()

    def __len__(self) -> int:
        return len(self._records)

    def __iter__(self) -> Iterator[RequestRecord]:
        with self._lock:
            return iter(list(self._records))

    def __getitem__(self, index: int) -> RequestRecord:
        return self._records[index]

    def __repr__(self) -> str:
        return f"<RequestLog of {len(self)} requests>"
