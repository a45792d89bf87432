"""Sessions with a ttl: one in use stays whole, an unused one goes with all its events.

Cosmos counts a document's TTL from its own last write, so use must renew it. The session
document is renewed by every write and, when only read, once a tenth of the ttl has passed. Its
events live three times as long and are renewed at half of the ttl, by writing them again as they
are. So nothing expires under a session in use, and nothing outlives an unused one for long.
"""

from __future__ import annotations

import contextlib
import time

from cosmosservice.account.container import Container, Document
from cosmosservice.account.failures import NotFound, PreconditionFailed
from cosmosservice.hosting.concurrency import together
from cosmosservice.sessions.store.keys import SessionKey, retention_of

_AT_ONCE = 8
_now = time.time
OLD = "SELECT * FROM c WHERE c.id >= @first AND c.id < @last AND c._ts < @before"


def must_renew(body: Document) -> bool:
    """Whether the session document should be written to stay, though nothing changed."""
    return _older(body, "renewed_at", 0.1)


def must_renew_events(body: Document) -> bool:
    return _older(body, "events_renewed_at", 0.5)


def renewed(body: Document, *, events: bool) -> Document:
    """The session document as it should be written now."""
    if retention_of(str(body.get("incarnation", ""))) is None:
        return body
    now = _now()
    return body | {"renewed_at": now} | ({"events_renewed_at": now} if events else {})


async def renew_events(container: Container, key: SessionKey, incarnation: str) -> None:
    """Writes every document of the session's log again that has lived half of the ttl."""
    retention = retention_of(incarnation)
    assert retention is not None
    parameters = {
        "first": key.first_chunk_id,
        "last": key.last_id,
        "before": int(_now() - retention / 2),
    }

    async def renew(document: Document) -> None:
        body = {name: value for name, value in document.items() if not name.startswith("_")}
        # Expired or purged in between, or renewed by somebody else: all the same.
        with contextlib.suppress(NotFound, PreconditionFailed):
            await container.replace(body, document["_etag"])

    async for page in container.pages(OLD, parameters, key.session_id):
        due = [document for document in page if document.get("incarnation") in (None, incarnation)]
        for start in range(0, len(due), _AT_ONCE):
            await together(*(renew(document) for document in due[start : start + _AT_ONCE]))


def _older(body: Document, name: str, part: float) -> bool:
    retention = retention_of(str(body.get("incarnation", "")))
    since = body.get(name)
    if retention is None or body.get("status") != "active":
        return False
    return not isinstance(since, int | float) or _now() - since > retention * part
