"""Keys: they identify a session or a state, and give the ids of its documents."""

from __future__ import annotations

import hashlib
import logging
import secrets
from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Final, NamedTuple

from cosmosservice.account.container import Document
from cosmosservice.account.dependants import SessionName
from cosmosservice.errors import InvalidIdError
from cosmosservice.ids import escape
from cosmosservice.scopes import SCOPES, Pair

logger = logging.getLogger("cosmosservice")

MAX_ID_BYTES: Final = 1_023
MAX_PARTITION_KEY_BYTES: Final = 2_048
LAST_SEQ: Final = 9_999_999_999  # the ids of records have ten digits for it

SESSION: Final = "session"
EXPIRY: Final = "expiry"


def _check(name: str, value: str, limit: int = MAX_PARTITION_KEY_BYTES) -> None:
    if not isinstance(value, str):
        raise InvalidIdError(f"{name} must be a string, not {type(value).__name__}.")
    try:
        size = len(value.encode())
    except UnicodeEncodeError:
        raise InvalidIdError(
            f"{name} contains half of a surrogate pair, which is not text. Nothing was stored."
        ) from None
    if size > limit:
        raise InvalidIdError(
            f"{name} has {size} bytes; Cosmos DB takes {limit} there. Nothing was stored."
        )


def _document_id(kind: str, *parts: str) -> str:
    made = ".".join((kind, *map(escape, parts)))
    if len(made) > MAX_ID_BYTES:
        raise InvalidIdError(
            f"The {kind} document's id would have {len(made)} bytes; Cosmos DB takes"
            f" {MAX_ID_BYTES}. Use a shorter app name or session id (characters other than"
            " letters, digits, - and _ count three times). Nothing was stored."
        )
    return made


_VALUE = "value-"  # the ids of all large values begin with it


class ValuesKey(ABC):
    """A document that may name large values, which are kept beside it."""

    user_id: str  # partition key

    @property
    @abstractmethod
    def document_id(self) -> str: ...

    @cached_property
    def _values(self) -> str:
        return f"{_VALUE}{hashlib.sha256(self.document_id.encode()).hexdigest()[:32]}"

    def value_id(self, generation: str, value: str, number: int) -> str:
        """A generation is the set of values that are erased together: those of a session's
        incarnation, or of a state up to its next erasure."""
        return f"{self._values}-{generation}-{value}-{number:04d}"

    def generation_of(self, value_id: str) -> str:
        return value_id.removeprefix(f"{self._values}-").partition("-")[0]

    @property
    def value_range(self) -> tuple[str, str]:
        """The first id of the values' documents, and one after the last."""
        return f"{self._values}-", f"{self._values}."


@dataclass(frozen=True)
class StateKey(ValuesKey):
    """Where a user's or an app's state is kept."""

    scope: str  # "user" or "app"
    app_name: str
    user_id: str  # partition key

    @classmethod
    def of_user(cls, app_name: str, user_id: str) -> StateKey:
        if not app_name:
            raise InvalidIdError("The app name is empty. Nothing was stored.")
        _check("The app name", app_name)
        _check("The user id", user_id)
        return cls(SCOPES.user, app_name, user_id)

    @classmethod
    def of_app(cls, app_name: str) -> StateKey:
        _check("The app name", app_name)
        # A partition of its own. A user whose id happens to name it shares the partition,
        # never a document: the ids differ.
        return cls(SCOPES.app, app_name, f"app:{app_name}")

    @property
    def document_type(self) -> str:
        return f"{self.scope}_state"

    @cached_property
    def document_id(self) -> str:
        return _document_id(self.document_type, self.app_name)

    @property
    def values_of_sessions(self) -> tuple[str, str, str]:
        """The range of ids that holds all large values in the partition, and the prefix of the ids
        of those owners that are sessions of the app."""
        return _VALUE, _VALUE[:-1] + ".", f"{SESSION}.{escape(self.app_name)}."


@dataclass(frozen=True)
class SessionKey(ValuesKey):
    """One session: its hash, its partitions and its document ids."""

    app_name: str
    user_id: str
    session_id: str

    @staticmethod
    @lru_cache(maxsize=4096)  # every append needs it, and its hash and ids are costly
    def of(app_name: str, user_id: str, session_id: str) -> SessionKey:
        """The key for ids that come from outside. Checks them."""
        if not app_name:
            raise InvalidIdError("The app name is empty. Nothing was stored.")
        if not session_id:
            raise InvalidIdError("The session id is empty. Nothing was stored.")
        _check("The app name", app_name)
        _check("The user id", user_id)
        _check("The session id", session_id)
        key = SessionKey(app_name, user_id, session_id)
        _ = key.document_id, key.shared.app.document_id
        return key

    @staticmethod
    def named(app_name: str, user_id: str, session_id: str) -> SessionKey:
        """The key for ids given by a caller. As in ADK, white space around a session id is
        ignored."""
        _check("The session id", session_id)
        return SessionKey.of(app_name, user_id, session_id.strip())

    @staticmethod
    def in_document(body: Document) -> SessionKey | None:
        """The key that a stored session document names. If the document is damaged, logs an error
        and returns None: one document must not make the list of all others fail."""
        names = [body.get(name) for name in ("app_name", "user_id", "session_id")]
        try:
            return SessionKey.of(*names)
        except (InvalidIdError, TypeError):
            logger.error("The session document %r is damaged, and is skipped.", body.get("_rid"))
            return None

    @cached_property
    def document_id(self) -> str:
        return _document_id(SESSION, self.app_name, self.session_id)

    @property
    def name(self) -> SessionName:
        return SessionName(self.app_name, self.user_id, self.session_id)

    @property
    def expiry_id(self) -> str:
        return _document_id(EXPIRY, self.app_name, self.session_id)

    def __hash__(self) -> int:
        return self._hash

    @cached_property
    def _hash(self) -> int:
        return hash((self.app_name, self.user_id, self.session_id))

    @cached_property
    def session_hash(self) -> str:
        """Of app, user and session id: the ids of its log begin with it. Sessions of several users
        may have the same id and share a partition."""
        parts = (self.app_name, self.user_id, self.session_id)
        digest = hashlib.sha256("\0".join(map(escape, parts)).encode()).digest()
        return digest[:16].hex()

    @cached_property
    def shared(self) -> Pair[StateKey]:
        """The state that this session shares with others."""
        return Pair(
            StateKey(SCOPES.user, self.app_name, self.user_id), StateKey.of_app(self.app_name)
        )

    def event_id(self, seq: int, incarnation: str) -> str:
        return f"{self.session_hash}.{seq:010d}.{incarnation}"

    def first_id(self, seq: int) -> str:
        """Not greater than the id of any log document from `seq` on."""
        return f"{self.session_hash}.{seq:010d}"

    @property
    def last_id(self) -> str:
        """Greater than the id of every log document ('/' follows '.')."""
        return f"{self.session_hash}/"

    def chunk_id(self, incarnation: str, upload: str, number: int) -> str:
        """Chunks sort before the log ('-' precedes '.'), so no read of the log returns them."""
        return f"{self.session_hash}-{incarnation}-{upload}-{number:04d}"

    @staticmethod
    def upload_of(chunk_id: str) -> str:
        """The name of the upload to which a chunk belongs."""
        return [*chunk_id.split("-"), "", "", ""][2]

    @property
    def first_chunk_id(self) -> str:
        return f"{self.session_hash}-"


LISTED: Final = "listed"
PAST: Final = "past"


class Marker(NamedTuple):
    """The expected version of an append: the incarnation, and the last sequence number that a
    session object has seen."""

    incarnation: str
    seq: int
    is_new: bool = False  # the session has no records yet
    use: str = ""  # LISTED: it is not known whether the session is new; PAST: to look at only

    def text(self, key: SessionKey) -> str:
        """Names its session, so that the marker of a copied object with another id is invalid."""
        use = "new" if self.is_new else self.use
        return f"{key.session_hash[:8]}:{self.incarnation}:{self.seq}:{use}"

    @classmethod
    def parse(cls, text: str | None, key: SessionKey) -> Marker | None:
        session_hash, incarnation, seq, use, *_ = [*(text or "").split(":"), "", "", ""]
        if session_hash != key.session_hash[:8] or not incarnation or not seq.isdecimal():
            return None
        return cls(incarnation, int(seq), use == "new", "" if use == "new" else use)


def new_incarnation(retention: int | None = None) -> str:
    """A random name. It includes the session's retention, so that every marker includes it too."""
    return secrets.token_hex(6) + (f"t{retention}" if retention is not None else "")


def retention_of(incarnation: str) -> int | None:
    """Seconds without use after which the session expires; None: never."""
    _, _, seconds = incarnation.partition("t")
    return int(seconds) if seconds.isdecimal() else None


def lifetime(incarnation: str) -> int | None:
    """Seconds between the last write of its document and the expiry of a session. Use renews the
    document, at most once per tenth of the retention."""
    retention = retention_of(incarnation)
    return None if retention is None else retention + -(-retention // 10)


def record_ttl(incarnation: str) -> int | None:
    """TTL of records, chunks and large values. It counts from the last write of each document. Use
    of the session renews them at half of the retention, so that a session in use stays whole."""
    retention = retention_of(incarnation)
    return None if retention is None else 3 * retention


def document_ttl(incarnation: str) -> int | None:
    """TTL of the session document. It stays until all its records have expired, so that they can
    be found and erased."""
    retention = retention_of(incarnation)
    return None if retention is None else 5 * retention
