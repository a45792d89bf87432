"""Time to live in real seconds."""

from __future__ import annotations

import asyncio

from tests.support.adk import event, texts

THIS = {"app_name": "app", "user_id": "user", "session_id": "s"}
PATIENCE = 60


async def gone(read):
    """Waits until there is nothing to read."""
    for _ in range(PATIENCE):
        if not await read():
            return
        await asyncio.sleep(1)
    raise AssertionError("it did not expire")


async def test_an_unused_session_expires_with_its_documents(open_service, raw):
    service = open_service()
    session = await service.create_session(**THIS, ttl=2)
    await service.append_event(session, event("hello"))
    kept = await service.create_session(**THIS | {"session_id": "kept"}, ttl=3600)
    await service.append_event(kept, event("stays"))
    await service.flush()

    async def documents():  # not `get_session`, which is a use
        return [body for body in raw.events.all() if "hello" in str(body)]

    await gone(documents)
    assert await open_service().get_session(**THIS) is None
    assert texts(await open_service().get_session(**THIS | {"session_id": "kept"})) == ["stays"]


async def test_a_session_in_use_stays(open_service):
    service = open_service()
    session = await service.create_session(**THIS, ttl=6)
    for number in range(5):
        await asyncio.sleep(2)
        await service.append_event(session, event(str(number)))
    await service.flush()
    assert texts(await open_service().get_session(**THIS)) == ["0", "1", "2", "3", "4"]


async def test_memories_and_artifacts_expire(cosmos):
    from google.adk.sessions import Session

    from tests.artifacts.kinds import text

    memory = cosmos.memory(ttl=2)
    said = Session(app_name="app", user_id="user", id="s", events=[event("green tea")])
    await memory.add_session_to_memory(said)

    async def remembered():
        response = await cosmos.memory().search_memory(
            app_name="app", user_id="user", query="green tea"
        )
        return response.memories

    assert await remembered()
    await gone(remembered)
    artifacts = cosmos.artifacts()
    await artifacts.save_artifact(**THIS, filename="f", artifact=text("x"))
    assert (await cosmos.artifacts().load_artifact(**THIS, filename="f")).text == "x"
    await cosmos.close()
