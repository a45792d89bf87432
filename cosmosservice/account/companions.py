"""The services on an account that keep data of sessions besides the session service."""

from __future__ import annotations

import weakref
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Protocol

from cosmosservice.hosting.deadline import answered


class Eraser(Protocol):
    """A service that keeps data of a session or a user."""

    async def erase(self, app_name: str, user_id: str, sessions: Collection[str] | None) -> int:
        """Erases what belongs to these sessions of a user or, with None, to the user. Returns the
        number of documents erased."""


@dataclass(frozen=True)
class Fork:
    """A session that is created as a copy of another one, up to a point."""

    app_name: str
    user_id: str
    session_id: str
    new_user_id: str
    new_session_id: str
    artifacts: Mapping[str, int]  # that its events name, and the last version of each
    until: float  # what was saved later is not part of it, unless its events name it


class Copier(Protocol):
    """A service that keeps data of a session which a fork copies."""

    async def has_copies(self, fork: Fork) -> bool:
        """Whether there is anything to copy. Raises if it cannot be copied."""

    async def copy(self, fork: Fork) -> None:
        """Copies what the fork still lacks."""

    async def discard(self, fork: Fork) -> None:
        """Erases what was copied, because the fork was given up."""


class Companions:
    """Holds weak references to these services."""

    def __init__(self, *, erase_together: bool = True) -> None:
        self._erasers: weakref.WeakSet[Eraser] = weakref.WeakSet()
        self._copiers: weakref.WeakSet[Copier] = weakref.WeakSet()
        self.erase_together = erase_together

    def add_eraser(self, service: Eraser) -> None:
        """From now on the service erases what it keeps of a session or a user that is purged."""
        self._erasers.add(service)

    def add_copier(self, service: Copier) -> None:
        """From now on the service copies what it keeps of a session that is forked."""
        self._copiers.add(service)

    @property
    def erasers(self) -> list[Eraser]:
        return list(self._erasers) if self.erase_together else []

    @property
    def can_copy(self) -> bool:
        return bool(self._copiers)

    async def have_copies(self, fork: Fork) -> bool:
        found = [await each.has_copies(fork) for each in list(self._copiers)]
        answered()
        return any(found)

    async def copy(self, fork: Fork) -> None:
        for each in list(self._copiers):
            await each.copy(fork)
            answered()  # that had a deadline of its own

    async def discard(self, fork: Fork) -> None:
        for each in list(self._copiers):
            await each.discard(fork)
            answered()
