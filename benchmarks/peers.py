"""The session services that are compared, each with a quick way to write a past.

Where the service's own append would take minutes, a past is written without it (Redis rewrites the
whole session at each append). The stored data is what the service would have stored.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from google.adk.events.event import Event
from google.adk.sessions.base_session_service import BaseSessionService, GetSessionConfig
from google.adk.sessions.in_memory_session_service import InMemorySessionService
from google.adk.sessions.session import Session

from benchmarks.material import APP, USER


class Peer:
    """A session service, and the port of its proxy, if any."""

    label: str
    store = ""  # where sessions are kept, if several peers share it
    service: BaseSessionService

    def __init__(self, label: str, port: int | None = None) -> None:
        self.label = label
        self.port = port

    async def open(self) -> None:
        """Builds the service and makes the first request, which costs more than later ones."""

    async def close(self) -> None:
        """Closes connections."""

    async def drain(self) -> None:
        """Waits for work that the service does after it has answered."""

    async def create(self, session_id: str) -> Session:
        return await self.service.create_session(app_name=APP, user_id=USER, session_id=session_id)

    async def get(self, session_id: str, recent: int | None = None) -> Session:
        config = None if recent is None else GetSessionConfig(num_recent_events=recent)
        session = await self.service.get_session(
            app_name=APP, user_id=USER, session_id=session_id, config=config
        )
        assert session is not None
        return session

    async def seed(self, session_id: str, events: Sequence[Event]) -> None:
        """Writes a session with a past."""
        raise NotImplementedError

    async def seed_sessions(self, user_id: str, session_ids: Sequence[str]) -> None:
        """Writes many sessions without events."""
        for session_id in session_ids:
            await self.service.create_session(app_name=APP, user_id=user_id, session_id=session_id)


class InMemory(Peer):
    service: InMemorySessionService

    async def open(self) -> None:
        self.service = InMemorySessionService()

    async def seed(self, session_id: str, events: Sequence[Event]) -> None:
        await self.create(session_id)
        stored = self.service.sessions[APP][USER][session_id]
        stored.events.extend(events)
        stored.last_update_time = events[-1].timestamp


class Sqlite(Peer):
    def __init__(self, label: str, folder: Path) -> None:
        super().__init__(label)
        self.path = folder / "sessions.db"

    async def open(self) -> None:
        from google.adk.sessions.sqlite_session_service import SqliteSessionService

        self.service = SqliteSessionService(str(self.path))
        await self.create("first")

    async def seed(self, session_id: str, events: Sequence[Event]) -> None:
        import aiosqlite

        await self.create(session_id)
        rows = [
            (
                event.id,
                APP,
                USER,
                session_id,
                event.invocation_id,
                event.timestamp,
                event.model_dump_json(exclude_none=True),
            )
            for event in events
        ]
        async with aiosqlite.connect(self.path) as database:
            await database.executemany(
                "INSERT INTO events (id, app_name, user_id, session_id, invocation_id, timestamp,"
                " event_data) VALUES (?, ?, ?, ?, ?, ?, ?)",
                rows,
            )
            await database.commit()


class Postgres(Peer):
    """DatabaseSessionService with the given engine options."""

    store = "postgres"

    def __init__(self, label: str, port: int, **engine: Any) -> None:
        super().__init__(label, port)
        self.engine = engine

    async def open(self) -> None:
        from google.adk.sessions.database_session_service import DatabaseSessionService

        url = f"postgresql+asyncpg://bench@127.0.0.1:{self.port}/postgres"
        self.service: DatabaseSessionService = DatabaseSessionService(url, **self.engine)
        await self.service.prepare_tables()

    async def close(self) -> None:
        await self.service.close()

    async def seed(self, session_id: str, events: Sequence[Event]) -> None:
        from google.adk.sessions.schemas.v1 import StorageEvent

        session = await self.create(session_id)
        async with self.service.database_session_factory() as database:
            database.add_all([StorageEvent.from_event(session, event) for event in events])
            await database.commit()

    async def seed_sessions(self, user_id: str, session_ids: Sequence[str]) -> None:
        from google.adk.sessions.schemas.v1 import StorageSession

        first, *others = session_ids
        await super().seed_sessions(user_id, [first])
        now = datetime.now(UTC).replace(tzinfo=None)
        async with self.service.database_session_factory() as database:
            database.add_all(
                StorageSession(
                    app_name=APP, user_id=user_id, id=other, create_time=now, update_time=now
                )
                for other in others
            )
            await database.commit()


class Redis(Peer):
    store = "redis"

    async def open(self) -> None:
        from google.adk.integrations.redis import RedisSessionService, RedisSessionServiceConfig

        config = RedisSessionServiceConfig(host="127.0.0.1", port=self.port)
        self.service: RedisSessionService = RedisSessionService(config)
        await self.service.get_session(app_name=APP, user_id=USER, session_id="first")

    async def close(self) -> None:
        await self.service._get_redis().aclose()

    async def seed(self, session_id: str, events: Sequence[Event]) -> None:
        session = Session(
            id=session_id,
            app_name=APP,
            user_id=USER,
            events=list(events),
            last_update_time=events[-1].timestamp,
        )
        key = self.service._session_key(APP, USER, session_id)
        await self.service._get_redis().set(key, session.model_dump_json())
