"""Dependants of a session: documents of other services that belong to it.

A service declares its dependants once, on the account: the container, and how to erase and copy
those of a session or a user. The session service does the rest, with or without the program having
made such a service: it opens the dependants that exist itself.

Erasing never takes what belongs to a newer session of the same name. Whoever erases scans first,
then asks whether the reason for erasing still stands, and then erases what the scan has found and
nobody has changed since.
"""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, Protocol

from cosmosservice.hosting.deadline import answered

if TYPE_CHECKING:
    from cosmosservice.account.connection import Connection

Stands = Callable[[], Awaitable[bool]]


class Superseded(Exception):
    """What was to be erased may belong to a newer session. Nothing of that session was erased."""


class SessionName(NamedTuple):
    app_name: str
    user_id: str
    session_id: str


@dataclass(frozen=True)
class Successor:
    """A session that was created again: what it has stays, what its predecessors left goes."""

    name: SessionName
    incarnation: str
    created: float  # the server's time
    events: Collection[str]  # the ids of its predecessors' events


@dataclass(frozen=True)
class Fork:
    """A session that is created as a copy of another one, up to a point."""

    source: SessionName
    target: SessionName
    artifacts: Mapping[str, int]  # that its events name, and the last version of each
    until: float  # what was saved later is not part of it, unless its events name it


class Dependant(ABC):
    """The dependants in one container, opened on one event loop."""

    @abstractmethod
    async def erase_session(self, name: SessionName, stands: Stands) -> int:
        """Erases everything that is stored under this name, until a scan finds nothing. Returns
        the number of documents. Raises Superseded."""

    @abstractmethod
    async def erase_predecessors(self, successor: Successor) -> int:
        """Erases what the predecessors of a session left."""

    @abstractmethod
    async def erase_user(
        self, app_name: str, user_id: str, living: Callable[[], Awaitable[Collection[str]]]
    ) -> int:
        """Erases everything of a user except for these sessions, which were created since."""

    async def has_copies(self, fork: Fork) -> bool:
        """Whether a fork has anything to copy. Raises if it cannot be copied."""
        return False

    async def copy(self, fork: Fork) -> None:  # noqa: B027
        """Copies what the fork still lacks."""

    async def close(self) -> None:  # noqa: B027
        """Closes what was opened."""


class Declaration(Protocol):
    """How to open the dependants in one container."""

    @property
    def outlives_session(self) -> bool:
        """Whether they stay when their session expires or is created again."""

    async def open_dependant(self, connection: Connection) -> Dependant | None:
        """None if the container does not exist."""


class Dependants:
    """The dependants that exist, opened on one event loop."""

    def __init__(
        self, declared: Callable[[], Iterable[Declaration]], connection: Connection
    ) -> None:
        self._declared = declared
        self._connection = connection
        self._opened: dict[Declaration, Dependant] = {}
        self._opening = asyncio.Lock()

    async def all(self, *, outliving: bool = True) -> list[Dependant]:
        """Those whose containers exist now. Without `outliving`, those that go when their session
        expires or is created again."""
        wanted = [each for each in self._declared() if outliving or not each.outlives_session]
        async with self._opening:
            for each in wanted:
                if each not in self._opened:
                    found = await each.open_dependant(self._connection)
                    if found is not None:
                        self._opened[each] = found
            return [self._opened[each] for each in wanted if each in self._opened]

    async def have_copies(self, fork: Fork) -> bool:
        found = [await each.has_copies(fork) for each in await self.all()]
        answered()
        return any(found)

    async def copy(self, fork: Fork) -> None:
        for each in await self.all():
            await each.copy(fork)
            answered()

    async def close(self) -> None:
        opened, self._opened = self._opened, {}
        for each in opened.values():
            await each.close()
