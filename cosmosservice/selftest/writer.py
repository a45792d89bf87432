"""A process that appends events to a session: python -m cosmosservice.selftest.writer

Reads one line of JSON (app_name, user_id, session_id, author, count), loads the session, and prints
"ready". After another line it begins, and prints the id of every event that was acknowledged. The
last line on stderr says why it failed. Another process may kill it at any moment.
"""

from __future__ import annotations

import asyncio
import json
import sys
from typing import Any

from google.adk.events import Event, EventActions

from cosmosservice.cosmos_session_service import CosmosSessionService
from cosmosservice.errors import StaleSessionError, StorageError


async def write(work: dict[str, Any]) -> None:
    author, count = work.pop("author"), work.pop("count")
    service = CosmosSessionService()
    session = await service.get_session(**work)
    print("ready", flush=True)
    sys.stdin.readline()
    for number in range(count):
        actions = EventActions(state_delta={author: number, f"user:{author}": number})
        event = Event(author=author, actions=actions)
        while True:
            assert session is not None
            try:
                await service.append_event(session, event)
                break
            except StaleSessionError:  # another process was faster: read, and try again
                session = await service.get_session(**work)
        print(event.id, flush=True)
    await service.close()


if __name__ == "__main__":
    try:
        asyncio.run(write(json.loads(sys.stdin.readline())))
    except StorageError as error:
        sys.exit(f"{type(error).__name__}: {error}")
