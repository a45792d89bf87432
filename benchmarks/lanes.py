"""What is timed. Each lane does its work once and returns how long it took.

Work that a service does after it has answered (`drain`) is not timed, and does not overlap the
next sample. The workloads for throughput and CPU do count it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from google.adk.events.event import Event
from google.adk.sessions.session import Session

from benchmarks.cosmos import Bare, Cosmos
from benchmarks.material import APP, event
from benchmarks.measure import Lane, clock
from benchmarks.peers import Peer

EVENTS_OF_A_TURN = 4


def look_at(session: Session) -> None:
    """Reads every event, as an agent does before it calls its model.

    Our service decodes an event when it is first read. The others have decoded it by then.
    """
    for each in session.events:
        assert each.content is not None


class Append:
    """Appends to one session repeatedly."""

    def __init__(self, peer: Peer, session_id: str, scopes: tuple[str, ...] = ()) -> None:
        self.peer = peer
        self.session_id = session_id
        self.scopes = scopes
        self.session: Any = None
        self.count = 0

    def next_event(self) -> Event:
        self.count += 1
        return event(state={f"{scope}step": self.count for scope in self.scopes})

    async def append(self) -> float:
        if self.session is None:
            self.session = await self.peer.get(self.session_id)
        new = self.next_event()
        start = clock()
        await self.peer.service.append_event(self.session, new)
        return clock() - start

    async def __call__(self) -> float:
        spent = await self.append()
        await self.peer.drain()
        return spent


class Turn:
    """A get, then an append for each event of a turn. Each call uses the next session."""

    def __init__(self, peer: Peer, sessions: Iterator[str], look: bool = False) -> None:
        self.peer = peer
        self.sessions = sessions
        self.look = look

    async def turn(self) -> float:
        session_id = next(self.sessions)
        events = [event() for _ in range(EVENTS_OF_A_TURN)]
        start = clock()
        session = await self.peer.get(session_id)
        if self.look:
            look_at(session)
        for each in events:
            await self.peer.service.append_event(session, each)
        return clock() - start

    async def __call__(self) -> float:
        spent = await self.turn()
        await self.peer.drain()
        return spent


def gets(peer: Peer, session_id: str, recent: int | None = None, look: bool = False) -> Lane:
    async def lane() -> float:
        start = clock()
        session = await peer.get(session_id, recent)
        if look:
            look_at(session)
        return clock() - start

    return lane


def lists(peer: Peer, user_id: str, count: int) -> Lane:
    async def lane() -> float:
        start = clock()
        listed = await peer.service.list_sessions(app_name=APP, user_id=user_id)
        spent = clock() - start
        assert len(listed.sessions) == count
        return spent

    return lane


def pages(peer: Cosmos, user_id: str, limit: int) -> Lane:
    async def lane() -> float:
        start = clock()
        page = await peer.service.list_sessions_page(app_name=APP, user_id=user_id, limit=limit)
        spent = clock() - start
        assert len(page.sessions) == limit
        return spent

    return lane


def creates(bare: Bare, document: dict[str, Any], times: int = 1) -> Lane:
    """Bare creates, one after the other."""

    async def lane() -> float:
        start = clock()
        for _ in range(times):
            await bare.create(document)
        return clock() - start

    return lane
