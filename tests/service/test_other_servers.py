"""Servers that are not quite Cosmos DB: the service works, or ends with an error that says why."""

from __future__ import annotations

import asyncio

import pytest
from azure.cosmos import CosmosClient, PartitionKey

from cosmos_emulator import Emulator
from cosmosservice import (
    ContainerMismatchError,
    CosmosArtifactService,
    CosmosMemoryService,
    CosmosSessionService,
    StorageError,
)
from tests.artifacts.kinds import text
from tests.support.adk import event, reload, texts

WHO = {"app_name": "app", "user_id": "user"}
THIS = WHO | {"session_id": "s"}


@pytest.fixture
def like():
    """`like("+feed-500")`: an emulator as Microsoft's container, with one more deviation."""
    made = []

    def open_one(*changes):
        made.append(Emulator(like=",".join(("vnext", *changes))))
        return made[-1]

    yield open_one
    for each in made:
        each.close()


async def test_a_create_that_is_answered_with_500_because_of_a_race_is_sent_again(like):
    emulator = like("+race-500")
    services = [CosmosSessionService.embedded(emulator) for _ in range(3)]
    await asyncio.gather(*(each.create_session(**WHO) for each in services))
    assert len((await services[0].list_sessions(**WHO)).sessions) == 3
    for each in services:
        await each.close()


async def test_pages_that_never_end_are_an_error(like):
    async with CosmosSessionService.embedded(like("+last-page-token")) as service:
        session = await service.create_session(**THIS)
        await service.append_event(session, event("hello"))
        await service.flush()
        async with asyncio.timeout(60):
            with pytest.raises(StorageError, match="does not end"):
                await service.list_sessions(**WHO)
            with pytest.raises(StorageError, match="does not end"):
                await service.list_sessions(app_name="app")


@pytest.mark.parametrize("follow", [False, True])
async def test_a_change_feed_that_does_not_say_where_it_is_is_an_error(like, follow):
    async with CosmosSessionService.embedded(like("+feed-without-etag")) as service:
        await service.create_session(**THIS)
        async with asyncio.timeout(60):
            with pytest.raises(StorageError, match="no etag"):
                async for _ in service.watch(**WHO, since="beginning", follow=follow):
                    pass


async def test_a_count_that_comes_as_an_object_is_a_number(like):
    async with CosmosSessionService.embedded(like("+count-as-object")) as service:
        await service.create_session(**THIS)
        await service.flush()
        assert await service.count_sessions(**WHO) == 1
        assert await service.count_sessions(app_name="app") == 1


async def test_a_unique_key_that_is_not_shown_is_tried(like):
    emulator = like("+no-unique-keys", "+no-policy")
    async with CosmosArtifactService.embedded(emulator) as service:
        assert await service.save_artifact(**THIS, filename="f", artifact=text("x")) == 0
        assert (await service.load_artifact(**THIS, filename="f")).text == "x"


async def test_a_unique_key_that_is_missing_is_refused():
    with Emulator() as emulator:
        options = {"transport": emulator.transport(), "enable_endpoint_discovery": False}
        with CosmosClient(emulator.endpoint, emulator.key, **options) as client:
            database = client.create_database("adk")
            container = database.create_container("artifacts", PartitionKey("/scope"))
            async with CosmosArtifactService.embedded(emulator) as service:
                with pytest.raises(ContainerMismatchError, match="unique key /claim"):
                    await service.save_artifact(**THIS, filename="f", artifact=text("x"))
            assert list(container.read_all_items()) == []


async def test_no_query_asks_for_a_page_of_any_size(like, monkeypatch):
    """A page size of -1 is not known everywhere."""
    emulator, sizes = like(), set()
    exchange = emulator.exchange_async

    async def noting(request, endpoint=None):
        if request.operation == "query":  # the SDK itself asks so for the ranges of a container
            sizes.add(request.headers.get("x-ms-max-item-count"))
        return await exchange(request, endpoint)

    monkeypatch.setattr(emulator, "exchange_async", noting)
    async with CosmosSessionService.embedded(emulator) as service:
        session = await service.create_session(**THIS)
        await service.append_event(session, event("hello"))
        await service.flush()
        assert texts(await reload(service, session)) == ["hello"]
        await service.list_sessions(**WHO)
        await service.list_sessions(app_name="app")
    assert sizes
    assert "-1" not in sizes


async def test_all_three_services_work_as_usual_on_a_likeness(like):
    emulator = like()
    async with CosmosSessionService.embedded(emulator) as sessions:
        first = await sessions.create_session(**THIS, state={"user:a": 1})
        await sessions.append_event(first, event("hello", delta={"b": 2}))
        found = await sessions.get_session(**THIS)
        assert (texts(found), found.state) == (["hello"], {"user:a": 1, "b": 2})
        # A 304 that comes as 200 is a read of the same document.
        assert texts(await sessions.get_session(**THIS)) == ["hello"]
        async with CosmosMemoryService.embedded(emulator) as memory:
            await memory.add_session_to_memory(found)
            response = await memory.search_memory(**WHO, query="hello")
            assert len(response.memories) == 1
