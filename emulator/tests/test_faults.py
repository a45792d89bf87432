"""Faults on demand and the request log."""

import asyncio
import time

import pytest
from azure.core.exceptions import ServiceResponseError
from azure.cosmos import exceptions

from cosmos_emulator import Faults


async def create(container, item_id="a"):
    return await container.create_item({"id": item_id, "pk": "x"})


def statuses(emulator, operation="create"):
    return [r.status for r in emulator.requests if (r.operation, r.resource) == (operation, "docs")]


async def test_a_throttled_request_is_sent_again(container, emulator):
    rule = emulator.faults.throttle(retry_after_ms=1, operation="create", times=2)
    await create(container)
    assert statuses(emulator) == [429, 429, 201]
    assert rule.hits == 2


async def test_an_answer_lost_after_the_write_surfaces_as_a_conflict_with_itself(
    container, emulator
):
    emulator.faults.drop_after(operation="create")
    with pytest.raises(exceptions.CosmosResourceExistsError):
        await create(container)
    assert statuses(emulator) == [0, 409]
    assert await container.read_item("a", "x")


async def test_a_connection_lost_before_the_write_leaves_no_trace(container, emulator):
    emulator.faults.drop_before(operation="create")
    await create(container)
    assert statuses(emulator) == [0, 201]


@pytest.mark.parametrize("status", [408, 449, 500])
async def test_an_error_answer_is_raised_and_nothing_is_applied(container, emulator, status):
    emulator.faults.fail(status, operation="create", container="c")
    with pytest.raises(exceptions.CosmosHttpResponseError) as caught:
        await create(container)
    assert caught.value.status_code == status
    await create(container)


async def test_unavailable_is_sent_again(container, emulator):
    emulator.faults.fail(503, operation="create")
    await create(container)
    assert statuses(emulator) == [503, 201]


async def test_a_rule_waits_for_its_nth_request(container, emulator):
    emulator.faults.fail(408, resource="docs", nth=3)
    await create(container, "1")
    await create(container, "2")
    with pytest.raises(exceptions.CosmosHttpResponseError):
        await create(container, "3")
    await create(container, "4")


async def test_a_rule_matches_by_container_and_predicate(container, new_container, emulator):
    other = await new_container()
    emulator.faults.fail(408, container="c", where=lambda r: r.partition_key == '["x"]', times=None)
    await other.create_item({"id": "a", "pk": "x"})
    await container.create_item({"id": "a", "pk": "y"})
    with pytest.raises(exceptions.CosmosHttpResponseError):
        await create(container)
    emulator.faults.clear()
    await create(container)


async def test_rules_count_the_same_requests_and_the_first_that_is_due_wins(container, emulator):
    first = emulator.faults.fail(408, operation="create")
    second = emulator.faults.fail(449, operation="create", nth=2)
    seen = []
    for _ in range(3):
        try:
            await create(container)
            seen.append(201)
        except exceptions.CosmosHttpResponseError as error:
            seen.append(error.status_code)
    assert seen == [408, 449, 201]
    assert (first.hits, second.hits) == (1, 1)


def test_a_rule_refuses_what_it_cannot_match():
    with pytest.raises(TypeError, match="colour"):
        Faults().fail(503, colour="red")


async def test_latency_lets_parallel_requests_overlap(container, emulator, monkeypatch):
    """The latency of each request ends when all have begun. Sequential requests would never end."""
    await create(container)
    await container.read_item("a", "x")  # now the client knows the container
    emulator.clear_requests()
    emulator.faults.latency = 0.05
    sleep = asyncio.sleep

    def reads():
        return [r for r in emulator.requests if r.resource == "docs"]

    async def until_all_wait(seconds, *result):
        while seconds == emulator.faults.latency and len(reads()) < 3:
            await sleep(0.001)
        return await sleep(seconds, *result)

    monkeypatch.setattr(asyncio, "sleep", until_all_wait)
    async with asyncio.timeout(30):
        await asyncio.gather(*(container.read_item("a", "x") for _ in range(3)))
    assert len(reads()) == 3
    assert all(a.overlaps(b) for a in reads() for b in reads())
    assert all(r.ended - r.started >= 0.05 for r in reads())


async def test_a_delay_holds_up_one_request(container, emulator):
    emulator.faults.delay(0.05, operation="create")
    await create(container, "1")
    await create(container, "2")
    slow, fast = (r for r in emulator.requests if r.operation == "create" and r.resource == "docs")
    assert slow.ended - slow.started >= 0.05
    assert fast.fault is None


class Crash(BaseException):
    pass


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("way", ["in process"], indirect=True)
async def test_a_hook_stops_the_client_at_a_request(container, emulator, when):
    def crash(record):
        raise Crash

    emulator.faults.call(crash, when=when, operation="create", nth=2)
    await create(container, "1")
    with pytest.raises(Crash):
        await create(container, "2")
    stored = [item["id"] async for item in container.query_items("SELECT * FROM c")]
    assert stored == (["1"] if when == "before" else ["1", "2"])


async def test_a_hook_may_be_a_coroutine(container, emulator):
    seen = []

    async def look(record):
        await asyncio.sleep(0)
        seen.append(record.method)

    emulator.faults.call(look, resource="docs")
    await create(container)
    assert seen == ["POST"]


async def test_the_log_shows_what_was_asked_and_answered(container, emulator):
    emulator.clear_requests()
    before = time.monotonic()
    await create(container)
    with pytest.raises(exceptions.CosmosResourceNotFoundError):
        await container.read_item("b", "x")
    first, last = (r for r in emulator.requests if r.resource == "docs")
    assert (first.operation, first.container, first.id, first.status) == ("create", "c", "a", 201)
    assert (last.operation, last.id, last.partition_key) == ("read", "b", '["x"]')
    assert (last.status, last.charge) == (404, 1.0)
    assert before <= first.started <= first.ended <= last.started <= last.ended
    assert first.sequence < last.sequence


def test_the_synchronous_client_gets_the_same_faults(sync_container, emulator):
    emulator.faults.drop_after(operation="create")
    with pytest.raises((ServiceResponseError, exceptions.CosmosResourceExistsError)):
        sync_container.create_item({"id": "a", "pk": "x"})
    assert sync_container.read_item("a", "x")
