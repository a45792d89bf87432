"""Sessions with a ttl: one in use stays whole, an unused one expires with all its records.

Cosmos DB counts a document's TTL from its own last write, so use must renew it. The session
document says when the session expires, and every write of it extends that time. Use renews the
document once a tenth of the ttl has passed. The records live three times as long and are renewed at
half of the ttl, by writing them again unchanged. All times are the server's. So no part of a
session in use expires, and the document of an expired one stays until its records are gone.

The server's clock may be set back. A time that is too far ahead is from before that, and does not
say how old the documents are that were written since. It is then due at once.
"""

from __future__ import annotations

import contextlib

from cosmosservice.account.container import Container, Document
from cosmosservice.account.failures import NotFound, PreconditionFailed
from cosmosservice.hosting.concurrency import together
from cosmosservice.sessions.store.documents import ACTIVE, APPENDED_AT, CLEARING, PURGED, PURGING
from cosmosservice.sessions.store.keys import SessionKey, document_ttl, lifetime, retention_of
from cosmosservice.sessions.store.queries import NOT_RENEWED

_AT_ONCE = 8
_ERASED = (CLEARING, PURGING, PURGED)  # stays until the erasure is complete


def timed(body: Document, now: float) -> Document:
    """The session document as it is written now: the write renews it."""
    incarnation = str(body.get("incarnation", ""))
    seconds = lifetime(incarnation)
    if seconds is None or body.get("status") in _ERASED:
        return body
    return body | {"ttl": document_ttl(incarnation), "expires_at": now + seconds}


def expired(body: Document, now: float) -> bool:
    at = body.get("expires_at")
    return isinstance(at, int | float) and at <= now and body.get("status") not in _ERASED


def must_renew(body: Document, now: float) -> bool:
    """Whether the session document should be written only to renew it."""
    retention = _retention_in_use(body)
    if retention is None:
        return False
    at = body.get("expires_at")
    return not isinstance(at, int | float) or not retention <= at - now <= 2 * retention


def must_renew_records(body: Document, now: float) -> bool:
    retention = _retention_in_use(body)
    since = body.get("events_renewed_at")
    if retention is None:
        return False
    return not isinstance(since, int | float) or abs(now - since) > retention / 2


async def renew_records(
    events: Container, sessions: Container, key: SessionKey, incarnation: str, now: float
) -> None:
    """Rewrites every record, chunk and large value of the session that is older than half of the
    ttl."""
    retention = retention_of(incarnation)
    assert retention is not None
    before = int(now - retention / 2)
    await _renew(
        events, key.session_id, (key.first_chunk_id, key.last_id), before, {None, incarnation}
    )
    await _renew(sessions, key.user_id, key.value_range, before, {None})


async def _renew(
    container: Container,
    partition: str,
    ids: tuple[str, str],
    before: int,
    incarnations: set[str | None],
) -> None:
    async def renew(document: Document) -> None:
        body = {name: value for name, value in document.items() if not name.startswith("_")}
        if "seq" in body:  # a record: watchers of the log have already seen it
            body.setdefault(APPENDED_AT, document["_ts"])
        # It has expired, or was purged or renewed by another process: nothing to do.
        with contextlib.suppress(NotFound, PreconditionFailed):
            await container.replace(body, document["_etag"])

    parameters = {"first": ids[0], "last": ids[1], "before": before}
    async for page in container.pages(NOT_RENEWED, parameters, partition):
        due = [document for document in page if document.get("incarnation") in incarnations]
        for start in range(0, len(due), _AT_ONCE):
            await together(*(renew(document) for document in due[start : start + _AT_ONCE]))


def _retention_in_use(body: Document) -> int | None:
    """The retention of a session in use; None if none of its documents has to be renewed."""
    return retention_of(str(body.get("incarnation", ""))) if body.get("status") == ACTIVE else None
