"""A stage for playing the same scene twice: on ADK's in-memory service, and on ours.

A scene builds agents with scripted models and talks to them. Everything that a caller can see is
recorded: the events, what the models were shown, what was stored. Ids and times are replaced by
their order of appearance. Everything else must be equal.
"""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

from google.adk.apps import App
from google.adk.artifacts import InMemoryArtifactService
from google.adk.events import Event
from google.adk.runners import Runner
from google.adk.sessions import BaseSessionService, Session
from google.genai import types
from pydantic_core import to_jsonable_python

from tests.support.adk import reload
from tests.support.scripted import ScriptedModel, user

_UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")

USER = "ann"


Key = Callable[[Event], str]


class Stage:
    """One performance of a scene. Every turn asks for a service, which may be the same or a new
    one."""

    def __init__(self, open_service: Callable[[], BaseSessionService], app_name: str) -> None:
        self._open_service = open_service
        self.service = open_service()
        self.app_name = app_name
        self.shown: list[Event] = []
        self._models: list[ScriptedModel] = []
        self._artifacts = InMemoryArtifactService()
        self._app: App | None = None

    def model(self, *replies: Any) -> ScriptedModel:
        """A model with these replies, whose prompts become part of the record."""
        made = ScriptedModel(replies=list(replies))
        self._models.append(made)
        return made

    def enact(self, root: Any, **options: Any) -> None:
        """Sets the app that the next turns talk to."""
        self._app = App(name=self.app_name, root_agent=root, **options)

    @asynccontextmanager
    async def turn(self) -> AsyncIterator[Runner]:
        """A runner for one turn."""
        self.service = self._open_service()
        runner = Runner(
            app=self._app, session_service=self.service, artifact_service=self._artifacts
        )
        try:
            yield runner
        finally:
            await runner.close()

    async def session(self, session_id: str = "scene") -> Session:
        """The session, created if necessary."""
        found = await self.service.get_session(
            app_name=self.app_name, user_id=USER, session_id=session_id
        )
        return found or await self.service.create_session(
            app_name=self.app_name, user_id=USER, session_id=session_id
        )

    async def say(self, message: str | types.Content | None, **options: Any) -> list[Event]:
        """One turn: what the user says, and the events that come back."""
        session = await self.session()
        if isinstance(message, str):
            message = user(message)
        async with self.turn() as runner:
            came = [
                event.model_copy(deep=True)
                async for event in runner.run_async(
                    user_id=USER, session_id=session.id, new_message=message, **options
                )
            ]
        self.shown.extend(came)
        return came

    async def rewind(self, invocation_id: str) -> None:
        """Rewinds the turn and everything after it."""
        session = await self.session()
        async with self.turn() as runner:
            await runner.rewind_async(
                user_id=USER, session_id=session.id, rewind_before_invocation_id=invocation_id
            )

    async def record(self, reader: BaseSessionService, *, by: Key | None) -> dict[str, Any]:
        """Everything that was visible, without random values.

        `by` sorts the events where parallel agents make their order random.
        """
        stored = await reload(reader, await self.session())
        times = [event.timestamp for event in stored.events]
        if by is not None:
            for events in (self.shown, stored.events):
                events.sort(key=by)
        seen = {
            "shown": [_plain(event, times) for event in self.shown],
            "stored": [_plain(event, times) for event in stored.events],
            "state": stored.state,
            "prompts": [[_jsonable(prompt) for prompt in model.prompts] for model in self._models],
        }
        return _anonymous(seen)


Scene = Callable[[Stage], Awaitable[None]]


def _jsonable(value: Any) -> Any:
    return to_jsonable_python(value, exclude_none=True, by_alias=False, bytes_mode="base64")


def _plain(event: Event, times: list[float]) -> dict[str, Any]:
    """An event without its time. Times that it refers to become indexes of the history."""
    plain = _jsonable(event.model_dump(exclude_none=True))
    del plain["timestamp"]
    compaction = plain["actions"].get("compaction")
    if compaction:
        for end in ("start_timestamp", "end_timestamp"):
            compaction[end] = times.index(compaction[end])
    if "long_running_tool_ids" in plain:
        plain["long_running_tool_ids"].sort()
    return plain


def _anonymous(seen: dict[str, Any]) -> dict[str, Any]:
    """The record with every random id replaced by its order of appearance."""
    order: dict[str, str] = {}

    def name(match: re.Match[str]) -> str:
        return order.setdefault(match.group(), f"id-{len(order)}")

    return json.loads(_UUID.sub(name, json.dumps(seen)))
