"""`same_as_in_memory(scene)` plays a scene on ADK's service and on ours, and compares them."""

from __future__ import annotations

import uuid

import pytest
from google.adk.sessions import InMemorySessionService

from tests.adk.stage import Key, Scene, Stage
from tests.support.adk import ADK

# Workflows came with ADK 2.
collect_ignore = [] if ADK >= (2, 0) else ["test_workflows.py"]


@pytest.fixture
def app_name() -> str:
    return f"scene_{uuid.uuid4().hex[:12]}"


@pytest.fixture(params=["one_process", "a_process_per_turn"])
async def same_as_in_memory(request: pytest.FixtureRequest, open_service, app_name: str):
    """Plays a scene on both services, compares the records, and returns one.

    With a process per turn, no turn may depend on what a service kept in memory.
    """

    async def play(scene: Scene, *, by: Key | None = None) -> dict:
        reference = InMemorySessionService()
        expected = Stage(lambda: reference, app_name)
        await scene(expected)
        if request.param == "one_process":
            only = open_service()
            ours = Stage(lambda: only, app_name)
        else:
            ours = Stage(open_service, app_name)
        await scene(ours)
        wanted = await expected.record(reference, by=by)
        assert await ours.record(open_service(), by=by) == wanted
        return wanted

    return play
