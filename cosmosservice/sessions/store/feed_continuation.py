"""How far a reader of the feed is, and which sessions it reads, as text that can be stored."""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple, Self

from cosmosservice.account.change_feed import FeedRange, Start
from cosmosservice.account.container import Document
from cosmosservice.sessions.store.keys import SessionKey

__all__ = ["Continuation", "RangeContinuation", "Scope", "Start"]

_CHECK = 8  # bytes


class RangeContinuation(NamedTuple):
    """How far one range was read."""

    low: str
    high: str
    token: str | None  # None: nothing
    caught_up: int  # everything that was appended before this moment was reported (`_ts`)
    newest: int  # the latest `_ts` that was read
    # After the token, everything up to this document was reported.
    lsn: int = 0
    id: str = ""

    def moved(self, to: FeedRange) -> RangeContinuation:
        return self._replace(low=to.low, high=to.high, token=to.token)

    def at_end(self) -> RangeContinuation:
        """The range was read to its end: everything that was appended before the latest document
        read has been read too."""
        return self._replace(caught_up=max(self.caught_up, self.newest))


class Continuation(NamedTuple):
    """How far the feed of a container was read."""

    container: str  # its `_rid`
    ranges: tuple[RangeContinuation, ...]

    def text(self, scope: Scope) -> str:
        content = json.dumps([scope.digest, *self], separators=(",", ":")).encode()
        check = hashlib.sha256(content).digest()[:_CHECK]
        return base64.urlsafe_b64encode(check + content).decode()

    @classmethod
    def parse(cls, text: str, scope: Scope) -> Continuation:
        """Raises ValueError."""
        try:
            packed = base64.b64decode(text.encode(), altchars=b"-_", validate=True)
            content = packed[_CHECK:]
            if hashlib.sha256(content).digest()[:_CHECK] != packed[:_CHECK]:
                raise ValueError
            digest, container, ranges = json.loads(content)
            found = cls(container, tuple(RangeContinuation(*each) for each in ranges))
        except (binascii.Error, ValueError, TypeError):
            raise ValueError(
                "since must be 'now', 'beginning' or the unchanged continuation of a change."
            ) from None
        if digest != scope.digest:
            raise ValueError(
                "The continuation belongs to a watch of another app, user or session. Continue with"
                " the same app_name, user_id and session_id."
            )
        return found


@dataclass(frozen=True)
class Scope:
    """Which sessions are read: all, those of an app or of a user, or those with an id."""

    app_name: str | None
    user_id: str | None
    session_id: str | None

    @classmethod
    def named(cls, app_name: str | None, user_id: str | None, session_id: str | None) -> Self:
        """Raises InvalidIdError."""
        names = ("any" if name is None else name for name in (app_name, user_id, session_id))
        key = SessionKey.named(*names)
        return cls(app_name, user_id, None if session_id is None else key.session_id)

    def holds(self, body: Document) -> bool:
        return (
            self.app_name in (None, body.get("app_name"))
            and self.user_id in (None, body.get("user_id"))
            and self.session_id in (None, body.get("session_id"))
        )

    @cached_property
    def digest(self) -> str:
        names = json.dumps([self.app_name, self.user_id, self.session_id])
        return hashlib.sha256(names.encode()).hexdigest()[:16]
