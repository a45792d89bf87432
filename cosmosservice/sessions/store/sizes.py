"""The limit of state for a session, a user and an app: as many keys as one document can name."""

from __future__ import annotations

from cosmosservice.account.container import Document
from cosmosservice.data_converters.state_scopes import Scoped
from cosmosservice.errors import TooLargeError
from cosmosservice.sessions.store.documents import ITEM_LIMIT
from cosmosservice.sessions.store.keys import SessionKey
from cosmosservice.sessions.store.large_values import least_size
from cosmosservice.sessions.store.log_view import LogViews
from cosmosservice.sessions.store.records import Record
from cosmosservice.sessions.store.session_documents import SessionDocuments, fold
from cosmosservice.sessions.store.state_documents import StateDocuments

_DOCUMENT_BYTES = 4_000  # size of a session document without its state


class Sizes:
    """Values may have any size. The keys of one state must fit into one document."""

    def __init__(
        self, documents: SessionDocuments, states: StateDocuments, views: LogViews
    ) -> None:
        self._documents = documents
        self._states = states
        self._views = views

    def check(self, key: SessionKey, deltas: Scoped, operation: str) -> None:
        """Refuses state that would not fit into a document, before anything is stored."""
        for state_key, delta in zip(key.shared, deltas.shared, strict=True):
            self._states.check_size(state_key, delta, operation)
        if not deltas.session:
            return
        known, view = self._documents.known(key), self._views.of(key)
        new = view.after(known.revision) if known is not None and view is not None else None
        size = least_size(deltas.session) + _DOCUMENT_BYTES
        size += sum(map(_delta_size, new or ()))
        if known is not None and size + known.wire_bytes > ITEM_LIMIT:
            state = fold(known.state, new or ()).updated(deltas.session)
            size = least_size(state.inline) + least_size(state.large) + _DOCUMENT_BYTES
        if size > ITEM_LIMIT:
            raise TooLargeError(
                f"{operation}: the state of session {key.session_id!r} would have too many keys:"
                f" one Cosmos DB document, with {ITEM_LIMIT:,} bytes, names them all. Nothing was"
                " stored."
            )


def _delta_size(record: Record) -> int:
    """The size of its changes to the session's state. Cached, because every later append needs it
    until the record is projected."""
    if record.delta_size is None:
        record.delta_size = _size(record.deltas.session)
    return record.delta_size


def _size(state: Document) -> int:
    return least_size(state) if state else 0
