"""A process that writes to a session: python -m cosmosservice.cli.demo.writer

It reads one JSON value per line: {"open": "the id of a session"} reads the session, {"step": true}
appends what comes next. It answers with one line each: {"events": 3}, then {"event": …} when the
store has acknowledged the event, or {"refused": …}.
"""

from __future__ import annotations

import asyncio
import sys
from typing import Any

from google.adk.sessions import Session

from cosmosservice import CosmosSessionService, StaleSessionError
from cosmosservice.cli.demo.script import APP, USER, next_event
from cosmosservice.data_converters import event_to_fields, from_json, to_json


async def write() -> None:
    async with CosmosSessionService() as service:
        session: Session | None = None
        while line := await asyncio.to_thread(sys.stdin.readline):
            wanted = from_json(line.encode())
            if "open" in wanted:
                session = await service.get_session(
                    app_name=APP, user_id=USER, session_id=wanted["open"]
                )
                _answer({"events": len(session.events) if session is not None else 0})
            elif session is not None:
                _answer(await _step(service, session))


async def _step(service: CosmosSessionService, session: Session) -> dict[str, Any]:
    try:
        event = await service.append_event(session, next_event(session.events))
    except StaleSessionError as problem:
        return {"refused": str(problem)}
    return {"event": event_to_fields(event)}


def _answer(value: dict[str, Any]) -> None:
    print(to_json(value).decode(), flush=True)


if __name__ == "__main__":
    asyncio.run(write())
