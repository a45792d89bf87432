"""Azure hands a sorted query across partitions back to the SDK: it asks for a plan and merges."""

from __future__ import annotations

import pytest
from azure.cosmos.aio._cosmos_client_connection_async import CosmosClientConnection

from cosmosservice import cosmos_client


@pytest.fixture
def as_on_azure(emulator, monkeypatch):
    """The answers of a container with several ranges: the emulator has one, and needs no plan."""
    ranges = [{"min": "", "max": "FF", "isMinInclusive": True, "isMaxInclusive": False}]

    async def plan(self, query, *_, **__):
        _, filtered = query["query"].split("FROM c WHERE")
        items = "c._rid, [{'item': c.last_update_time}] AS orderByItems, c AS payload"
        info = {
            "distinctType": "None",
            "top": next((p["value"] for p in query["parameters"] if p["name"] == "@limit"), None),
            "orderBy": ["Ascending"] * 3,
            "orderByExpressions": ["c.last_update_time", "c.user_id", "c.session_id"],
            "rewrittenQuery": f"SELECT {items.replace(chr(39), chr(34))} FROM c WHERE{filtered}",
        }
        return {"queryInfo": info, "queryRanges": ranges}

    monkeypatch.setattr(CosmosClientConnection, "_GetQueryPlanThroughGateway", plan)
    return emulator.faults.fail(
        400, substatus=1004, operation="query", container="sessions", partition_key=None
    )


async def create(service, count):
    users = [f"user {number}" for number in range(count)]
    for user in users:
        await service.create_session(app_name="app", user_id=user)
    return users


async def test_the_sessions_of_all_users_are_listed(service, as_on_azure):
    users = await create(service, 3)
    listed = await service.list_sessions(app_name="app")
    assert as_on_azure.hits == 1
    assert [each.user_id for each in listed.sessions] == users


async def test_a_page_of_the_sessions_of_all_users_is_listed(service, as_on_azure):
    users = await create(service, 3)
    page = await service.list_sessions_page(app_name="app", limit=2)
    assert as_on_azure.hits == 1
    assert [each.user_id for each in page.sessions] == users[:2]


@pytest.mark.parametrize("request_number", [2, 3, 4, 5])
async def test_a_request_that_fails_in_between_loses_nothing_of_a_list(
    service, emulator, as_on_azure, monkeypatch, request_number
):
    monkeypatch.setattr(cosmos_client, "_PAGE", 2)
    users = await create(service, 6)
    failure = emulator.faults.fail(408, operation="query", container="sessions", nth=request_number)
    listed = await service.list_sessions(app_name="app")
    assert (as_on_azure.hits, failure.hits) == (1, 1)
    assert [each.user_id for each in listed.sessions] == users
