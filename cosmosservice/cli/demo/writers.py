"""The processes that write to the session of the demo."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Mapping
from typing import Any

from google.adk.events import Event

from cosmosservice.cli.console import Problem
from cosmosservice.data_converters import fields_to_event, from_json, to_json


class Refused(Exception):
    """Another writer was faster."""


class Writer:
    """One process."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process

    @classmethod
    async def start(cls, settings: Mapping[str, str]) -> Writer:
        return cls(
            await asyncio.create_subprocess_exec(
                *(sys.executable, "-W", "ignore", "-m", "cosmosservice.cli.demo.writer"),
                env={**os.environ, **settings},
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.DEVNULL,
                limit=1_000_000,
                start_new_session=True,  # Ctrl-C is for the demo, which ends its writers
            )
        )

    @property
    def name(self) -> str:
        return f"writer {self._process.pid}"

    async def open(self, session_id: str) -> int:
        """Reads the session. Returns the number of its events."""
        await self.send({"open": session_id})
        return int((await self.answer())["events"])

    async def step(self) -> Event:
        await self.send({"step": True})
        return await self.appended()

    async def appended(self) -> Event:
        """The event that the store has acknowledged."""
        answer = await self.answer()
        if "refused" in answer:
            raise Refused(str(answer["refused"]))
        return fields_to_event(answer["event"])

    async def send(self, wanted: dict[str, Any]) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(to_json(wanted) + b"\n")
        await self._process.stdin.drain()

    async def answer(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        line = await self._process.stdout.readline()
        if not line:
            raise Problem(f"The {self.name} has ended by itself.")
        found: dict[str, Any] = from_json(line)
        return found

    async def kill(self) -> None:
        """As a crash does: without a word."""
        if self._process.returncode is None:
            self._process.kill()
        await self._process.wait()
