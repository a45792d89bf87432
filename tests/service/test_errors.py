"""What a user sees when something goes wrong: one of our exceptions, which says what was stored."""

from __future__ import annotations

import asyncio
import dataclasses
import logging
import traceback

import pytest

from cosmosservice import CosmosSessionService
from cosmosservice.account.connection import Connection
from cosmosservice.account.retries import Retry
from cosmosservice.errors import (
    AuthenticationError,
    ConfigurationError,
    ContainerMismatchError,
    CosmosServiceError,
    InvalidIdError,
    InvalidStateError,
    MultipleWriteRegionsError,
    StateUpdatePendingError,
    ThrottledError,
    UnavailableError,
)
from tests.support.adk import event, reload
from tests.support.raw import raw_client

WHO = {"app_name": "app", "user_id": "user"}
WRONG_KEY = "d3Jvbmcga2V5IHdyb25nIGtleSB3cm9uZyBrZXkgd3Jvbmcga2V5IQ=="


@pytest.mark.parametrize(
    ("ids", "said"),
    [
        ({"app_name": ""}, "app name is empty"),
        ({"session_id": "x" * 1025}, "1023"),
        ({"session_id": "ü" * 400}, "1023"),
        ({"user_id": "x" * 2049}, "2048"),
        ({"session_id": "\ud800"}, "surrogate"),
        ({"user_id": "\udfff"}, "surrogate"),
    ],
)
async def test_an_impossible_id_is_refused(service, emulator, ids, said):
    with pytest.raises(InvalidIdError, match=said) as refused:
        await service.create_session(**(WHO | ids))
    assert "Nothing was stored" in str(refused.value)
    assert not [each for each in emulator.requests if each.resource == "docs"]


async def test_an_account_that_is_down_says_that_sending_again_is_safe(service, emulator):
    session = await service.create_session(**WHO)
    rule = emulator.faults.fail(408, operation="create", container="events", times=None)
    sent = event("x")
    with pytest.raises(UnavailableError, match=r"append_event.*sending it again is safe"):
        await service.append_event(session, sent)
    assert session.events == []
    assert rule.hits > 1
    emulator.faults.clear()
    await service.append_event(session, sent)
    assert (await reload(service, session)).events == [sent]


async def test_a_number_that_is_taken_but_cannot_be_seen_may_have_been_taken_by_oneself(
    service, emulator, monkeypatch
):
    monkeypatch.setattr("cosmosservice.sessions.store.event_log.VISIBILITY", Retry(3, 0.01, 0.01))
    session = await service.create_session(**WHO)
    # Stale replicas: the write is sent twice and conflicts with itself, and no read shows it yet.
    emulator.faults.fail(409, operation="create", container="events")
    sent = event("x")
    with pytest.raises(UnavailableError, match="not known; sending it again is safe") as unknown:
        await service.append_event(session, sent)
    assert "Nothing was stored" not in str(unknown.value)
    await service.append_event(session, sent)
    assert (await reload(service, session)).events == [sent]


async def test_a_refusal_speaks_for_its_request_alone(service, emulator):
    session = await service.create_session(**WHO)
    emulator.faults.fail(403, operation="replace", container="sessions")
    with pytest.raises(AuthenticationError, match="Nothing was stored by this request") as refused:
        await service.delete_session(**WHO, session_id=session.id)
    assert "delete_session" in str(refused.value)
    # Its first step is stored: the tombstone.
    assert await service.get_session(**WHO, session_id=session.id) is None


async def test_throttling_that_does_not_end_has_an_error_of_its_own(service, emulator):
    session = await service.create_session(**WHO)
    emulator.faults.throttle(retry_after_ms=1, operation="create", container="events", times=None)
    with pytest.raises(ThrottledError, match="429"):
        await service.append_event(session, event("x"))
    assert session.events == []


async def test_shared_state_that_cannot_follow_is_reported_as_what_it_is(
    service, open_service, emulator
):
    session = await service.create_session(**WHO, state={"user:a": 0})
    emulator.faults.fail(408, operation="replace", container="sessions", times=None)
    sent = event("x", delta={"user:a": 1, "k": 1})
    with pytest.raises(StateUpdatePendingError, match="IS stored"):
        await service.append_event(session, sent)
    assert session.events == [sent]
    assert session.state["user:a"] == 1
    emulator.faults.clear()
    await service.flush()
    assert await open_service().get_user_state(**WHO) == {"a": 1}
    await service.append_event(session, event("goes on"))


async def test_a_missing_container_is_named(emulator):
    service = CosmosSessionService.embedded(emulator, ensure="verify")
    with pytest.raises(ContainerMismatchError, match=r"'sessions'.*cosmosservice init"):
        await service.create_session(**WHO)
    await service.close()


async def test_a_container_that_vanishes_is_named(service, emulator):
    session = await service.create_session(**WHO)
    with raw_client(emulator) as client:
        client.get_database_client("adk").delete_container("events")
    with pytest.raises(ContainerMismatchError, match="events"):
        await service.append_event(session, event("x"))


async def test_a_container_with_another_partition_key_is_refused(emulator):
    from azure.cosmos import PartitionKey

    with raw_client(emulator) as client:
        database = client.create_database("adk")
        database.create_container("events", PartitionKey("/user_id"))
    service = CosmosSessionService.embedded(emulator)
    with pytest.raises(ContainerMismatchError, match=r"/user_id.*needs /session_id"):
        await service.create_session(**WHO)
    await service.close()


async def test_a_costly_container_is_used_with_a_word_of_advice(emulator, caplog):
    from azure.cosmos import PartitionKey

    with raw_client(emulator) as client:
        database = client.create_database("adk")
        database.create_container("events", PartitionKey("/session_id"))
    async with CosmosSessionService.embedded(emulator) as service:
        await service.create_session(**WHO)
    said = [each.getMessage() for each in caplog.records if each.name == "cosmosservice"]
    assert any("indexes every path" in each for each in said)
    assert any("time to live is switched off" in each for each in said)


async def test_never_looks_at_containers(service, emulator):
    await service.create_session(**WHO)
    emulator.clear_requests()
    other = CosmosSessionService.embedded(emulator, ensure="never")
    await other.list_sessions(**WHO)
    await other.close()
    assert not [
        each for each in emulator.requests if each.method != "GET" and each.resource != "docs"
    ]


async def test_an_account_with_several_write_regions_is_refused(service, monkeypatch, emulator):
    properties = Connection.properties

    async def several(self):
        return dataclasses.replace(await properties(self), multiple_write_regions=True)

    monkeypatch.setattr(Connection, "properties", several)
    with pytest.raises(MultipleWriteRegionsError, match="one write region"):
        await service.create_session(**WHO)
    insisting = CosmosSessionService.embedded(emulator, allow_multiple_write_regions=True)
    await insisting.create_session(**WHO)
    await insisting.close()


async def test_a_wrong_key_is_refused_and_never_shown(emulator, caplog):
    from cosmos_emulator.server import Server

    caplog.set_level(logging.DEBUG)
    server = Server(emulator)
    endpoint = await server.start()
    service = CosmosSessionService(endpoint=endpoint, credential=WRONG_KEY, database="adk")
    with pytest.raises(AuthenticationError, match="401") as refused:
        await service.create_session(**WHO)
    await service.close()
    await server.stop()
    assert WRONG_KEY not in repr(service)
    shown = "".join(traceback.format_exception(refused.value))
    assert WRONG_KEY not in shown
    assert "sig%3d" not in shown.lower()
    assert WRONG_KEY not in caplog.text
    assert refused.value.__context__ is None


async def test_an_account_that_cannot_be_reached_is_unavailable(unused_tcp_port):
    service = CosmosSessionService(
        endpoint=f"http://127.0.0.1:{unused_tcp_port}", credential=WRONG_KEY, database="adk"
    )
    with pytest.raises(UnavailableError):
        await service.create_session(**WHO)
    await service.close()


class TokenCredential:
    async def get_token(self, *scopes, **options):
        raise AssertionError("no token is asked for")


@pytest.mark.parametrize("credential", [None, TokenCredential()])
async def test_entra_id_over_http_says_what_to_do(unused_tcp_port, monkeypatch, credential):
    monkeypatch.delenv("COSMOSDB_KEY", raising=False)
    service = CosmosSessionService(
        endpoint=f"http://127.0.0.1:{unused_tcp_port}", credential=credential, database="adk"
    )
    with pytest.raises(ConfigurationError, match=r"Entra ID needs https.*Set COSMOSDB_KEY"):
        await service.create_session(**WHO)
    await service.close()


async def _hang_up(reader, writer):
    await reader.read(1)
    writer.close()


async def _speak_plainly(reader, writer):
    await reader.read(1)
    writer.write(b"HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\n\r\n")
    await writer.drain()
    writer.close()


@pytest.mark.parametrize(
    ("scheme", "answer", "message"),
    [
        ("http", _hang_up, "It may expect TLS: write https://"),
        ("http", _speak_plainly, "It may expect TLS: write https://"),
        ("https", _speak_plainly, "It does not speak TLS.* write http://"),
    ],
)
async def test_tls_on_one_side_only_says_what_to_do(scheme, answer, message):
    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    service = CosmosSessionService(
        endpoint=f"{scheme}://127.0.0.1:{port}",
        credential=WRONG_KEY,
        database="adk",
        client_options={"retry_total": 0, "retry_connect": 0},
    )
    with pytest.raises(UnavailableError, match=message):
        await service.create_session(**WHO)
    await service.close()
    server.close()


def test_bad_options_are_refused_at_once():
    for options in (
        {"on_conflict": "merge"},
        {"ttl": 0},
        {"ttl": "soon"},
        {"recent_events": -1},
        {"uri": "cosmosdb://embedded/x.db", "endpoint": "embedded:x.db"},
    ):
        with pytest.raises(ConfigurationError):
            CosmosSessionService(**({"endpoint": "embedded::memory:"} | options))


def test_every_exception_of_ours_has_one_root():
    import cosmosservice.errors as errors

    ours = [each for each in vars(errors).values() if isinstance(each, type)]
    adk = {"AlreadyExistsError", "SessionNotFoundError", "StaleSessionError"}
    for each in ours:
        assert issubclass(each, CosmosServiceError) or each.__name__ in adk


async def test_a_state_with_keys_that_are_not_strings_is_refused(service, emulator):
    with pytest.raises(InvalidStateError, match="Nothing was stored"):
        await service.create_session(**WHO, state={"user:a": 1, 7: 2})
    assert not [each for each in emulator.requests if each.resource == "docs"]


async def test_a_created_session_is_reported_as_created_though_its_state_is_out_of_reach(
    service, open_service, emulator
):
    emulator.faults.fail(408, operation="create", id="user_state.app", times=None)
    with pytest.raises(StateUpdatePendingError, match="IS created"):
        await service.create_session(**WHO, session_id="s", state={"user:a": 1})
    emulator.faults.clear()
    fresh = open_service()
    found = await fresh.get_session(**WHO, session_id="s")
    assert found.state == {"user:a": 1}
    await fresh.flush()
    assert await open_service().get_user_state(**WHO) == {"a": 1}


async def test_a_session_is_not_created_while_the_state_that_it_is_given_cannot_be_compared(
    service, open_service, emulator
):
    emulator.faults.fail(408, operation="read", id="user_state.app", times=None)
    with pytest.raises(UnavailableError, match="create_session"):
        await service.create_session(**WHO, session_id="s", state={"user:a": 1})
    emulator.faults.clear()
    assert await open_service().get_session(**WHO, session_id="s") is None


async def test_a_replica_that_lags_does_not_make_a_session_disappear(service, emulator):
    session = await service.create_session(**WHO)
    emulator.faults.fail(404, substatus=1002, operation="read", id=f"session.app.{session.id}")
    assert await reload(service, session) == session


async def test_replicas_that_keep_lagging_do_not_count_as_a_missing_session(service, emulator):
    session = await service.create_session(**WHO)
    emulator.faults.fail(404, substatus=1002, operation="read", container="sessions", times=None)
    with pytest.raises(UnavailableError, match="get_session"):
        await reload(service, session)


@pytest.mark.parametrize("name", ["blob", "user:blob", "app:blob"])
async def test_a_large_value_can_be_replaced_as_often_as_one_likes(service, name):
    session = await service.create_session(**WHO, state={name: "0" * 1_100_000})
    for number in range(1, 4):
        await service.append_event(session, event("x", delta={name: str(number) * 1_100_000}))
    await service.flush()
    assert (await reload(service, session)).state[name][0] == "3"
