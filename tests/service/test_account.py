"""One account for any number of services: one client, one event loop, one close."""

from __future__ import annotations

import asyncio
import gc
import threading
import warnings

import pytest
from azure.cosmos.aio import CosmosClient

from cosmos_emulator.serving import serving
from cosmosservice import (
    CosmosAccount,
    CosmosArtifactService,
    CosmosMemoryService,
    CosmosSessionService,
)
from cosmosservice.adk import session_service
from cosmosservice.containers import CONTAINERS
from cosmosservice.errors import ConfigurationError
from cosmosservice.hosting.resources import Phase
from tests.support.adk import event, reload
from tests.support.raw import raw_client

WHO = {"app_name": "app", "user_id": "user"}


def io_threads():
    return [each for each in threading.enumerate() if each.name == "cosmosservice-io"]


def connections(emulator):
    """How often the account's document was requested: once per client."""
    return sum(each.resource == "" and each.method == "GET" for each in emulator.requests)


async def test_services_of_one_account_share_a_client_and_a_thread(emulator):
    before = len(io_threads())
    account = CosmosAccount.embedded(emulator)
    one, other = CosmosSessionService(account=account), CosmosSessionService(account=account)
    session = await one.create_session(**WHO)
    await other.append_event(await reload(other, session), event("x"))
    assert len(io_threads()) == before + 1
    asked = connections(emulator)
    third = CosmosSessionService(account=account)
    assert len((await reload(third, session)).events) == 1
    assert connections(emulator) == asked
    await account.close()
    assert len(io_threads()) == before


SERVICES = [CosmosAccount, CosmosSessionService, CosmosMemoryService, CosmosArtifactService]


@pytest.mark.parametrize("name", ["sessions.db", "a b?c#d%41.db"])
async def test_a_path_names_the_file_of_an_embedded_store(tmp_path, name):
    path = tmp_path / name
    async with CosmosSessionService.embedded(path) as service:
        session = await service.create_session(**WHO)
    async with CosmosSessionService.embedded(str(path)) as service:
        assert await reload(service, session) is not None


@pytest.mark.parametrize("store", [5, None, b"sessions.db", ["sessions.db"]], ids=repr)
@pytest.mark.parametrize("service", SERVICES)
def test_what_names_no_embedded_store_is_refused(service, store):
    with pytest.raises(TypeError, match="the path of a file or an Emulator, not"):
        service.embedded(store)


async def test_in_a_block_all_services_live_on_its_loop_and_are_closed_with_it(emulator):
    before = len(io_threads())
    async with CosmosAccount.embedded(emulator) as account:
        services = [CosmosSessionService(account=account) for _ in range(3)]
        session = await services[0].create_session(**WHO)
        for service in services:
            await service.append_event(await reload(service, session), event("x", delta={"k": 1}))
        assert len(io_threads()) == before
    written = [each for each in emulator.requests if each.operation == "replace"]
    assert written  # outstanding work was written at the end
    async with CosmosAccount.embedded(emulator) as again:
        found = await reload(CosmosSessionService(account=again), session)
        assert (len(found.events), found.state) == (3, {"k": 1})


async def test_closing_a_service_leaves_the_account_to_the_others(emulator):
    account = CosmosAccount.embedded(emulator)
    one, other = CosmosSessionService(account=account), CosmosSessionService(account=account)
    session = await one.create_session(**WHO)
    await other.list_sessions(**WHO)
    asked = connections(emulator)
    await one.close()
    assert (await reload(other, session)).id == session.id
    assert (await reload(one, session)).id == session.id  # it opens again
    assert connections(emulator) == asked
    await account.close()


async def test_an_account_that_was_closed_opens_again(emulator):
    account = CosmosAccount.embedded(emulator)
    service = CosmosSessionService(account=account)
    session = await service.create_session(**WHO)
    await account.close()
    await account.close()
    assert (await reload(service, session)).id == session.id
    await account.close()


async def test_two_services_of_one_uri_share_an_account(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    before = len(io_threads())
    one = session_service("cosmosdb://embedded/agent.db")
    other = session_service("cosmosdb://embedded/agent.db")
    different = session_service("cosmosdb://embedded/other.db")
    session = await one.create_session(**WHO)
    assert await reload(other, session) == session
    assert await different.get_session(**WHO, session_id=session.id) is None
    assert len(io_threads()) == before + 2
    await one.close()
    assert await reload(other, session) == session
    for service in (other, different):
        await service.close()
    assert len(io_threads()) == before


def test_services_of_one_uri_with_different_options_share_no_account(tmp_path):
    uri = f"cosmosdb://embedded/{tmp_path}/agent.db"
    patient = CosmosSessionService(uri=uri, timeout=60)
    assert CosmosMemoryService(uri=uri, timeout=60).account is patient.account
    hurried = CosmosMemoryService(uri=uri, timeout=5)
    assert hurried.account is not patient.account
    assert hurried.account.settings.timeout == 5


async def test_options_reach_the_client(emulator):
    seen = []
    account = CosmosAccount.embedded(
        emulator, client_options={"user_agent_suffix": "my-agent", "raw_response_hook": seen.append}
    )
    await CosmosSessionService(account=account).list_sessions(**WHO)
    await account.close()
    assert any("my-agent" in each.http_request.headers["User-Agent"] for each in seen)


def test_preferred_regions_are_given_to_the_client(emulator, monkeypatch):
    made = []
    original = CosmosClient.__init__

    def note(self, *arguments, **options):
        made.append(options)
        original(self, *arguments, **options)

    monkeypatch.setattr(CosmosClient, "__init__", note)

    async def use():
        with serving(emulator) as endpoint:
            account = CosmosAccount(
                endpoint=endpoint,
                credential=emulator.key,
                database="tests",
                preferred_regions=["West Europe", "North Europe"],
            )
            await CosmosSessionService(account=account).list_sessions(**WHO)
            await account.close()

    asyncio.run(use())
    assert made[0]["preferred_locations"] == ["West Europe", "North Europe"]


async def test_a_client_of_the_application_is_used_and_left_open(emulator):
    transport = emulator.async_transport()
    options = {"transport": transport, "enable_endpoint_discovery": False}
    async with CosmosClient(emulator.endpoint, emulator.key, **options) as client:
        account = CosmosAccount(client=client, database="tests", ensure="create")
        service = CosmosSessionService(account=account)
        session = await service.create_session(**WHO)
        await service.append_event(session, event("x"))
        await account.close()
        database = client.get_database_client("tests")
        items = database.get_container_client("events").read_all_items()
        assert [each["document_type"] async for each in items] == ["adk_event"]


async def test_a_client_of_the_application_stays_on_its_loop(emulator):
    options = {"transport": emulator.async_transport(), "enable_endpoint_discovery": False}
    async with CosmosClient(emulator.endpoint, emulator.key, **options) as client:
        account = CosmosAccount(client=client, database="tests", ensure="create")
        service = CosmosSessionService(account=account)
        await service.list_sessions(**WHO)

        def elsewhere():
            return asyncio.run(service.list_sessions(**WHO))

        with pytest.raises(ConfigurationError, match="belongs to one event loop"):
            await asyncio.to_thread(elsewhere)
        await account.close()


def test_contradictory_options_are_refused(emulator):
    account = CosmosAccount.embedded(emulator)
    with pytest.raises(ConfigurationError, match="pass them to the account"):
        CosmosSessionService(account=account, endpoint="embedded::memory:")
    with pytest.raises(ConfigurationError, match="client cannot be combined"):
        CosmosAccount(client=object(), endpoint="embedded::memory:")
    with pytest.raises(ConfigurationError, match="ensure must be"):
        CosmosAccount(endpoint="embedded::memory:", ensure="maybe")
    with pytest.raises(ConfigurationError, match="timeout"):
        CosmosAccount(endpoint="embedded::memory:", timeout=0)


async def test_an_account_makes_the_containers_of_any_definitions(emulator):
    account = CosmosAccount.embedded(emulator)
    await account.open_containers(CONTAINERS)
    assert account.executor.phase is Phase.OPEN  # a forked child must leave the connection alone
    await account.close()
    with raw_client(emulator) as client:
        names = {each["id"] for each in client.get_database_client("adk").list_containers()}
    assert names >= {each.default_name for each in CONTAINERS}


async def test_a_forgotten_account_ends_its_thread(emulator):
    before = len(io_threads())
    account = CosmosAccount.embedded(emulator)
    service = CosmosSessionService(account=account)
    await service.create_session(**WHO)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        del account, service
        gc.collect()
    await asyncio.to_thread(_wait_for, before)
    assert len(io_threads()) <= before


def _wait_for(count):
    done = threading.Event()
    for _ in range(1_000):
        if len(io_threads()) <= count:
            return
        done.wait(0.01)


def test_no_repr_shows_a_secret():
    secret = "c2VjcmV0IHNlY3JldCBzZWNyZXQgc2VjcmV0"
    account = CosmosAccount(
        endpoint="https://a.documents.azure.com/", credential=secret, database="adk"
    )
    assert secret not in repr(account) + str(vars(account))
    assert secret not in repr(CosmosSessionService(account=account))
