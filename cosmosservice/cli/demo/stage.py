"""Where the demo takes place: an emulator that this process serves, an account on it, and two
writers, one of which stands by."""

from __future__ import annotations

import asyncio
import contextlib
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path

from cosmosservice import CosmosAccount, CosmosMemoryService, CosmosSessionService
from cosmosservice.account.settings import EMBEDDED_DATABASE, PREFIX
from cosmosservice.cli.demo.script import APP, USER
from cosmosservice.cli.demo.writers import Writer
from cosmosservice.explore.meter import Meter


class Stage:
    def __init__(self, account: CosmosAccount, meter: Meter, settings: dict[str, str]) -> None:
        self.account = account
        self.meter = meter
        self.memory = CosmosMemoryService(account=account)
        self.sessions = CosmosSessionService(account=account, memory=self.memory)
        self._settings = settings
        self.writer: Writer
        self._spare: asyncio.Task[Writer]

    @classmethod
    @contextlib.asynccontextmanager
    async def built(cls) -> AsyncIterator[Stage]:
        from cosmos_emulator import Emulator
        from cosmos_emulator.server import Server

        with (
            tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder,
            Emulator(Path(folder, "demo.db")) as emulator,
        ):
            server = Server(emulator)
            endpoint = await server.start()
            settings = {
                f"{PREFIX}ENDPOINT": endpoint,
                f"{PREFIX}KEY": emulator.key,
                f"{PREFIX}DATABASE": EMBEDDED_DATABASE,
            }
            meter = Meter()
            try:
                async with CosmosAccount(
                    endpoint=endpoint,
                    credential=emulator.key,
                    database=EMBEDDED_DATABASE,
                    on_request_charge=meter.charged,
                ) as account:
                    stage = cls(account, meter, settings)
                    async with stage._writers():
                        yield stage
            finally:
                await server.stop()

    @contextlib.asynccontextmanager
    async def _writers(self) -> AsyncIterator[None]:
        self._spare = asyncio.create_task(Writer.start(self._settings))
        try:
            self.writer = await Writer.start(self._settings)
            yield
        finally:
            if hasattr(self, "writer"):
                await self.writer.kill()
            await (await self._spare).kill()

    async def begin(self, session_id: str) -> None:
        """A new session, which the writer has read."""
        await self.sessions.create_session(app_name=APP, user_id=USER, session_id=session_id)
        await self.writer.open(session_id)

    async def other(self) -> Writer:
        """The writer that stands by. The next one is started."""
        found, self._spare = await self._spare, asyncio.create_task(Writer.start(self._settings))
        return found
