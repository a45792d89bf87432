"""Services and emulators that nobody closes: nothing is lost, and no warning is printed.

ADK never closes a session service, and few scripts close an emulator.
"""

from __future__ import annotations

import asyncio
import subprocess
import sys

from cosmosservice import CosmosSessionService

WHO = {"app_name": "app", "user_id": "user"}


SCRIPT = """
import asyncio, gc, sys
from azure.cosmos import CosmosClient
from cosmos_emulator import Emulator
from cosmosservice import CosmosSessionService
from google.adk.events import Event, EventActions

async def use(service, block=False):
    if block:
        await service.__aenter__()
    session = await service.create_session(app_name="app", user_id="user")
    for n in range(3):
        changes = EventActions(state_delta={"n": n, "user:n": n})
        await service.append_event(session, Event(author="user", actions=changes))
    return service

def make():
    yield CosmosSessionService.embedded()
    yield CosmosSessionService.embedded(sys.argv[1])
    yield CosmosSessionService.embedded(Emulator())
    yield CosmosSessionService.embedded(Emulator(sys.argv[1]))

for service in make():
    asyncio.run(use(service))
del service
gc.collect()
kept = [asyncio.run(use(service)) for service in make()]
kept.append(asyncio.run(use(CosmosSessionService.embedded(sys.argv[1]), block=True)))
emulator = Emulator()
client = CosmosClient(emulator.endpoint, emulator.key, transport=emulator.transport())
alone = Emulator()
"""


async def test_a_program_that_closes_nothing_sees_no_warning_and_loses_nothing(tmp_path):
    path = str(tmp_path / "data.db")
    ended = await asyncio.to_thread(
        subprocess.run,
        [sys.executable, "-W", "always::ResourceWarning", "-c", SCRIPT, path],
        capture_output=True,
        text=True,
        timeout=100,
    )
    assert (ended.returncode, ended.stderr) == (0, "")
    async with CosmosSessionService.embedded(path) as service:
        listed = (await service.list_sessions(**WHO)).sessions
        assert len(listed) == 5
        for each in listed:
            session = await service.get_session(**WHO, session_id=each.id)
            assert (len(session.events), session.state) == (3, {"n": 2, "user:n": 2})
