"""Identifies an artifact: its scope, which is its partition, and the ids of its documents."""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Final
from urllib.parse import quote

from google.adk.errors.input_validation_error import InputValidationError

from cosmosservice.errors import InvalidIdError

USER_PREFIX: Final = "user:"
MAX_NAME_BYTES: Final = 4_096
SEQ_DIGITS: Final = 10

_RESERVED = frozenset({"apps", "users", "sessions", "artifacts", "versions"})
_DRIVE = re.compile(r"[A-Za-z]:")


@dataclass(frozen=True)
class Scope:
    """One session of a user or, without a session, the files that all the user's sessions share."""

    app_name: str
    user_id: str
    session_id: str | None

    @classmethod
    def named(cls, app_name: str, user_id: str, session_id: str | None) -> Scope:
        """The scope for names given by a caller. Checks them."""
        _check_type(app_name, "app_name")
        _check_type(user_id, "user_id")
        if session_id is not None:
            _check_type(session_id, "session_id")
        return _scope(app_name, user_id, session_id)

    @classmethod
    def of_partition(cls, partition: str) -> Scope:
        """The scope of a partition about which nothing else is known."""
        scope = cls("", "", None)
        scope.__dict__["partition"] = partition
        return scope

    @cached_property
    def partition(self) -> str:
        """A digest: names may have any length and alphabet, and it reveals none of them once the
        documents are erased."""
        parts = [self.app_name, self.user_id]
        if self.session_id is not None:
            parts.append(self.session_id)
        return _digest(json.dumps(parts))

    @property
    def owner(self) -> dict[str, str]:
        """The names as fields of a document, for people and for erasing by user."""
        found = {"app_name": self.app_name, "user_id": self.user_id}
        return found if self.session_id is None else found | {"session_id": self.session_id}


@lru_cache(maxsize=1_000)  # the calls of one session come in a row
def _scope(app_name: str, user_id: str, session_id: str | None) -> Scope:
    _check_segment(app_name, "app_name")
    _check_segment(user_id, "user_id")
    if session_id is not None:
        _check_segment(session_id, "session_id")
    return Scope(app_name, user_id, session_id)


@dataclass(frozen=True)
class ArtifactKey:
    """One artifact: a name in a scope."""

    scope: Scope
    filename: str

    @classmethod
    def named(
        cls, app_name: str, user_id: str, filename: str, session_id: str | None
    ) -> ArtifactKey:
        """The key for a name given by a caller: `user:` names belong to the user, all others to a
        session."""
        _check_text(filename, "filename")
        if filename.startswith(USER_PREFIX):
            return cls(Scope.named(app_name, user_id, None), filename)
        if session_id is None:
            raise InputValidationError("Session ID must be provided for session-scoped artifacts.")
        return cls(Scope.named(app_name, user_id, session_id), filename)

    @property
    def partition(self) -> str:
        return self.scope.partition

    @cached_property
    def name_digest(self) -> str:
        return _digest(self.filename)

    def entry_id(self, seq: int) -> str:
        return entry_id(self.name_digest, seq)

    @property
    def id_range(self) -> dict[str, str]:
        """Parameters of queries for the versions, tombstones and stubs of this name."""
        return {"first": f"v{self.name_digest}.", "last": f"v{self.name_digest}/"}

    @property
    def entries(self) -> dict[str, str]:
        """Parameters of queries for the descriptions of all entries of this name."""
        return entries_of(self.name_digest)

    def canonical_uri(self, version: int) -> str:
        """Uses its own scheme: ADK passes http, https and gs URIs to models, which have no access
        here."""
        scope = self.scope
        where = f"apps/{quote(scope.app_name, safe='')}/users/{quote(scope.user_id, safe='')}"
        if scope.session_id is not None:
            where += f"/sessions/{quote(scope.session_id, safe='')}"
        return f"cosmosdb://{where}/artifacts/{quote(self.filename, safe='/:')}/versions/{version}"


def entry_id(name_digest: str, seq: int) -> str:
    return f"v{name_digest}.{seq:0{SEQ_DIGITS}d}"


def entry_name(document_id: str) -> str:
    """The `entry` of a document: the name's digest and the sequence number."""
    return document_id[1:]


def entries_of(name_digest: str) -> dict[str, str]:
    """The range of the `entry` of a name ('/' follows '.')."""
    return {"first": f"{name_digest}.", "last": f"{name_digest}/"}


def header_id(version_id: str) -> str:
    return f"h{entry_name(version_id)}"


def version_id(document_id: str) -> str:
    """The id of a version, from its own or that of its header."""
    return f"v{entry_name(document_id)}"


def name_digest_of(document_id: str) -> str:
    """The name's digest in the id of an entry."""
    return document_id[1:].partition(".")[0]


def seq_of(document_id: str) -> int:
    return int(document_id.rpartition(".")[2])


def upload_id(upload: str) -> str:
    return f"u{upload}"


def piece_id(upload: str, number: int) -> str:
    return f"c{upload}.{number:06d}"


def piece_range(upload: str) -> dict[str, str]:
    return {"first": f"c{upload}.", "last": f"c{upload}/"}


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).digest()[:16].hex()


def _check_type(value: str, name: str) -> None:
    if not isinstance(value, str):
        raise InputValidationError(f"{name} must be a string, not {type(value).__name__}.")


def _check_text(value: str, name: str) -> None:
    _check_type(value, name)
    try:
        size = len(value.encode())
    except UnicodeEncodeError:
        raise InvalidIdError(
            f"The {name} contains half of a surrogate pair, which is not text. Nothing was stored."
        ) from None
    if size > MAX_NAME_BYTES:
        raise InvalidIdError(
            f"The {name} has {size:,} bytes; at most {MAX_NAME_BYTES:,} can be kept. Nothing was"
            " stored."
        )


def _check_segment(value: str, name: str) -> None:
    """The rules of ADK 2.13, applied on every version. ADK's other services use these names in
    paths."""
    _check_text(value, name)
    if not value.strip():
        raise InputValidationError(f"{name} must not be empty.")
    if "\x00" in value:
        raise InputValidationError(f"{name} must not contain null bytes.")
    if value.startswith(("/", "\\")):
        raise InputValidationError(f"{name} must not be an absolute path or start with a slash.")
    if _DRIVE.match(value):
        raise InputValidationError(f"{name} must not be drive-qualified.")
    segments = value.replace("\\", "/").split("/")
    if value == "." or ".." in segments:
        raise InputValidationError(f"{name} must not contain traversal segments.")
    if len(segments) > 1 and not _RESERVED.isdisjoint(each.casefold() for each in segments):
        raise InputValidationError(f"{name} must not contain reserved path segments.")
