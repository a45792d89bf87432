"""The frames of this package before the SDK, as CONTRIBUTING.md shows them: each costs time and a
reader."""

from __future__ import annotations

import asyncio
import re
import sys
from pathlib import Path

import pytest
from azure.cosmos.aio import ContainerProxy

import cosmosservice
from cosmosservice import CosmosSessionService
from tests.support.adk import event

WHO = {"app_name": "app", "user_id": "ada"}
PACKAGE = str(Path(cosmosservice.__file__).parent)

PAGE = Path(PACKAGE).parent / "CONTRIBUTING.md"
WALKS = [
    re.findall(r"^\d+\. `([\w.]+)`", walk.partition("\n## ")[0], re.MULTILINE)
    for walk in PAGE.read_text("utf-8").split(", frame by frame\n")[1:]
]


def running() -> list[str]:
    """Those of the current task, from the SDK outwards; a lambda that only makes a coroutine is
    gone before the request is sent."""
    frame, names = sys._getframe(1), []
    while frame is not None and frame.f_globals["__name__"] != "asyncio.events":
        code = frame.f_code
        if code.co_filename.startswith(PACKAGE) and code.co_name != "<lambda>":
            names.append(code.co_qualname)
        frame = frame.f_back
    return names


def waiting(task: asyncio.Task) -> list[str]:
    awaited, names = task.get_coro(), []
    while awaited is not None and hasattr(awaited, "cr_code"):
        if awaited.cr_code.co_filename.startswith(PACKAGE):
            names.append(awaited.cr_code.co_qualname)
        awaited = awaited.cr_await
    return names


@pytest.mark.parametrize("in_a_block", [True, False])
async def test_an_append_passes_few_frames_before_the_sdk(emulator, monkeypatch, in_a_block):
    service = CosmosSessionService.embedded(emulator)
    if in_a_block:
        await service.__aenter__()
    session = await service.create_session(**WHO)
    await service.append_event(session, event("first"))
    there: list[str] = []
    reached, loop = asyncio.Event(), asyncio.get_running_loop()
    create_item = ContainerProxy.create_item

    def create(self, *args, **options):
        there.extend(running())
        loop.call_soon_threadsafe(reached.set)
        return create_item(self, *args, **options)

    monkeypatch.setattr(ContainerProxy, "create_item", create)
    emulator.faults.latency = 0.2
    append = asyncio.create_task(service.append_event(session, event("second")))
    await reached.wait()
    here = waiting(append)
    await append
    emulator.faults.latency = 0
    assert here + there[::-1] == WALKS[0]
    assert len(WALKS[0]) <= 8
    await service.close()


async def test_a_get_passes_the_frames_that_contributing_names(emulator):
    async with CosmosSessionService.embedded(emulator) as service:
        await service.append_event(await service.create_session(**WHO, session_id="s"), event("a"))
    async with CosmosSessionService.embedded(emulator) as service:
        await service.list_sessions(app_name="none")  # connects
        emulator.faults.latency = 0.2
        get = asyncio.create_task(service.get_session(**WHO, session_id="s"))
        passed: set[str] = set()
        while not get.done():
            passed |= {name for task in asyncio.all_tasks() for name in waiting(task)}
            await asyncio.sleep(0.01)
        emulator.faults.latency = 0
        assert await get is not None
    assert {each for each in passed if "<locals>" not in each} - {"together"} == set(WALKS[1])
