"""Silent servers, answers that never end, half a body: faults like the others."""

import asyncio
import contextlib
import threading

import pytest
from azure.core.exceptions import (
    AzureError,
    ServiceRequestTimeoutError,
    ServiceResponseError,
    ServiceResponseTimeoutError,
)
from azure.cosmos import exceptions
from azure.cosmos.aio import CosmosClient

from cosmos_emulator.serving import serving

ITEM = {"id": "a", "pk": "x", "n": 1}
SHORT = 0.2


def tries(emulator, operation="create"):
    return [
        (r.status, r.fault)
        for r in emulator.requests
        if (r.operation, r.resource) == (operation, "docs")
    ]


async def stored(container):
    return [row["id"] async for row in container.query_items("SELECT * FROM c")]


@pytest.mark.parametrize("when", ["before", "after"])
async def test_a_silent_server_is_left_after_the_read_timeout(container, emulator, when):
    rule = emulator.faults.silent(when=when, operation="create")
    with pytest.raises(ServiceResponseTimeoutError):
        await container.create_item(ITEM, read_timeout=SHORT, retry_total=0)
    assert rule.hits == 1
    assert await stored(container) == (["a"] if when == "after" else [])


async def test_a_silent_server_leaves_the_loop_to_others_and_can_be_cancelled(container, emulator):
    emulator.faults.silent(operation="create")
    task = asyncio.create_task(container.create_item(ITEM))
    await asyncio.sleep(SHORT)
    assert tries(emulator) == [(0, "silent before")]
    assert await stored(container) == []
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_a_silent_server_is_left_when_the_deadline_of_the_caller_passes(container, emulator):
    emulator.faults.silent(operation="read", times=None)
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(SHORT):
            await container.read_item("a", "x")


async def test_a_silent_create_is_sent_again_by_the_asynchronous_client(container, emulator):
    emulator.faults.silent(when="after", operation="create")
    with pytest.raises(exceptions.CosmosResourceExistsError):
        await container.create_item(ITEM, read_timeout=SHORT)
    assert tries(emulator) == [(0, "silent after"), (409, None)]


async def test_a_silent_read_is_sent_again(container, emulator):
    await container.create_item(ITEM)
    emulator.faults.silent(operation="read", resource="docs")
    assert (await container.read_item("a", "x", read_timeout=SHORT))["n"] == 1


@pytest.mark.parametrize("way", ["in process"], indirect=True)
async def test_a_connection_that_does_not_come_about_ends_with_its_timeout(container, emulator):
    emulator.faults.silent(when="connect", operation="create", times=None)
    with pytest.raises(ServiceRequestTimeoutError):
        await container.create_item(ITEM, connection_timeout=0.01, retry_total=0)
    emulator.faults.clear()
    assert await stored(container) == []


@pytest.mark.parametrize("operation", ["create", "read", "query", "delete"])
async def test_an_answer_that_begins_and_stops_ends_with_the_read_timeout(
    container, emulator, operation
):
    await container.create_item({**ITEM, "id": "b"})
    emulator.faults.endless(drip=None, operation=operation, resource="docs", times=None)
    with pytest.raises(ServiceResponseError):
        await perform(container, operation, read_timeout=SHORT, retry_total=0)


async def perform(container, operation, **options):
    if operation == "create":
        return await container.create_item(ITEM, **options)
    if operation == "read":
        return await container.read_item("b", "x", **options)
    if operation == "delete":
        return await container.delete_item("b", "x", **options)
    return [row async for row in container.query_items("SELECT * FROM c", **options)]


async def test_an_answer_that_drips_for_ever_ends_only_with_the_patience_of_the_caller(
    container, emulator
):
    emulator.faults.endless(drip=SHORT / 10, operation="create")
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(SHORT * 3):
            await container.create_item(ITEM, read_timeout=SHORT, retry_total=0)
    assert tries(emulator) == [(0, "endless")]
    assert await stored(container) == ["a"]


async def test_half_an_answer_is_an_error_and_the_write_is_applied(container, emulator):
    rule = emulator.faults.truncate(operation="create")
    with pytest.raises(AzureError) as caught:
        await container.create_item(ITEM)
    assert type(caught.value).__name__ == "IncompleteReadError"
    assert rule.hits == 1
    assert await stored(container) == ["a"]


async def test_half_of_an_answer_without_a_body_is_a_lost_connection(container, emulator):
    await container.create_item(ITEM)
    emulator.faults.truncate(operation="delete")
    with contextlib.suppress(exceptions.CosmosResourceNotFoundError):
        await container.delete_item("a", "x")
    assert [status for status, _ in tries(emulator, "delete")] == [0, 404]


@pytest.mark.parametrize("when", ["before", "after"])
def test_the_synchronous_client_leaves_a_silent_server_too(sync_container, emulator, when):
    emulator.faults.silent(when=when, operation="create")
    with pytest.raises(ServiceResponseTimeoutError):
        sync_container.create_item(ITEM, read_timeout=SHORT, retry_total=0)
    rows = list(sync_container.query_items("SELECT * FROM c", enable_cross_partition_query=True))
    assert len(rows) == (when == "after")


def test_the_synchronous_client_leaves_an_answer_that_stops(sync_container, emulator):
    emulator.faults.endless(drip=None, operation="create")
    with pytest.raises(AzureError):
        sync_container.create_item(ITEM, read_timeout=SHORT, retry_total=0)
    assert sync_container.read_item("a", "x")


def test_the_synchronous_client_gets_half_an_answer(sync_container, emulator):
    emulator.faults.truncate(operation="create")
    with pytest.raises(AzureError) as caught:
        sync_container.create_item(ITEM)
    assert type(caught.value).__name__ == "IncompleteReadError"
    assert sync_container.read_item("a", "x")


@pytest.mark.parametrize("sync_client", ["in process"], indirect=True)
def test_a_closed_emulator_lets_waiting_threads_go(sync_container, emulator):
    emulator.faults.silent(operation="create")
    timer = threading.Timer(SHORT, emulator.close)
    timer.start()
    with pytest.raises(AzureError):
        sync_container.create_item(ITEM, read_timeout=60)
    timer.join()


async def test_a_server_can_be_stopped_while_somebody_waits_for_an_answer(emulator):
    rule = emulator.faults.silent(operation="create", times=None)
    with serving(emulator, patience=10) as endpoint:
        client = await CosmosClient(endpoint, emulator.key).__aenter__()
        task = asyncio.create_task(client.create_database("db", retry_total=0))
        await asyncio.sleep(SHORT)
        assert rule.hits == 1
    with pytest.raises(AzureError):
        await task
    await client.close()
