"""A session object is accepted only by the store that it is from. That costs its owner nothing."""

from __future__ import annotations

import pickle
import subprocess
import sys
import textwrap

import pytest
from google.adk.sessions import Session

from cosmos_emulator import Emulator
from cosmosservice import CosmosSessionService
from cosmosservice.errors import SessionNotFoundError, StaleSessionError
from cosmosservice.sessions.store.held import Incarnations
from tests.support.adk import event, reload, texts

WHO = {"app_name": "app", "user_id": "user", "session_id": "s"}


def documents(emulator):
    return [each for each in emulator.requests if each.resource == "docs"]


def sent(emulator):
    return [(each.operation, each.container) for each in documents(emulator)]


async def quiet(service, emulator):
    await service.flush()
    emulator.clear_requests()


OTHERS = {
    "another account": lambda emulator, other: {"store": other},
    "another database": lambda emulator, other: {"store": emulator, "database": "second"},
    "other containers": lambda emulator, other: {
        "store": emulator,
        "session_container": "sessions2",
        "conversation_container": "events2",
    },
    "another session container": lambda emulator, other: {
        "store": emulator,
        "session_container": "sessions2",
    },
}


@pytest.mark.parametrize("first", ["new", "used"])
@pytest.mark.parametrize("there", ["nothing", "a session of that id", "a deleted one"])
@pytest.mark.parametrize("other", OTHERS)
async def test_an_object_of_another_store_is_refused(service, emulator, other, there, first):
    held = await service.create_session(**WHO)
    if first == "used":
        await service.append_event(held, event("one"))
    with Emulator() as second:
        options = OTHERS[other](emulator, second)
        store = options["store"]
        async with CosmosSessionService.embedded(**options) as elsewhere:
            if there != "nothing":
                await elsewhere.create_session(**WHO, state={"theirs": 1})
            if there == "a deleted one":
                await elsewhere.delete_session(**WHO)
            await elsewhere.flush()
            store.clear_requests()
            for _ in range(2):
                with pytest.raises(SessionNotFoundError, match="from another store"):
                    await elsewhere.append_event(held, event("lost?", delta={"user:k": 1}))
            assert {each.operation for each in documents(store)} <= {"read", "replace"}
            assert all(
                each.status in (404, 412)
                for each in documents(store)
                if each.operation == "replace"
            )
            found = await elsewhere.get_session(**WHO)
            if there == "a session of that id":
                assert (texts(found), found.state) == ([], {"theirs": 1})
            else:
                assert found is None
    assert "lost?" not in texts(held)
    await service.append_event(held, event("two"))
    assert texts(await reload(service, held))[-1] == "two"


async def test_an_object_without_a_marker_is_refused_by_another_store(service, emulator):
    held = await service.create_session(**WHO)
    await service.append_event(held, event("one"))
    received = Session.model_validate_json(held.model_dump_json())
    async with CosmosSessionService.embedded(emulator, database="second") as elsewhere:
        with pytest.raises(SessionNotFoundError):
            await elsewhere.append_event(received, event("lost?"))
        await elsewhere.create_session(**WHO)
        with pytest.raises(StaleSessionError):
            await elsewhere.append_event(received, event("lost?"))


@pytest.mark.parametrize("cache_bytes", [0, 1_000_000])
async def test_an_object_of_the_same_service_costs_no_request_more(
    open_service, emulator, cache_bytes
):
    service = open_service(cache_bytes=cache_bytes)
    held = await service.create_session(**WHO)
    await service.append_event(held, event("one"))
    for recent in (None, 0, 1):
        held = await reload(service, held, recent=recent)
        for _ in range(2):
            await quiet(service, emulator)
            await service.append_event(held, event("more"))
            assert sent(emulator) == [("create", "events")]


async def test_an_object_of_another_service_costs_one_read_once(open_service, emulator):
    service, other = open_service(), open_service()
    held = await service.create_session(**WHO)
    await service.append_event(held, event("one"))
    await other.list_sessions(app_name="app")  # connects
    received = pickle.loads(pickle.dumps(held))
    await quiet(service, emulator)
    await other.append_event(received, event("two"))
    assert sent(emulator) == [("read", "sessions"), ("create", "events")]
    await quiet(other, emulator)
    await other.append_event(received, event("three"))
    assert sent(emulator) == [("create", "events")]


async def test_a_new_session_of_another_service_costs_one_read_too(open_service, emulator):
    """Its first event needs the document, and that is the same read."""
    service, other = open_service(), open_service()
    held = await service.create_session(**WHO)
    await other.list_sessions(app_name="app")
    await quiet(service, emulator)
    await other.append_event(held, event("one"))
    assert sent(emulator) == [("read", "sessions"), ("create", "events")]


async def test_an_object_of_a_forked_session_costs_no_request_more(service, emulator):
    held = await service.create_session(**WHO)
    await service.append_event(held, event("one"))
    fork = await service.fork_session(**WHO)
    await quiet(service, emulator)
    await service.append_event(fork, event("two"))
    assert sent(emulator) == [("create", "events")]


def test_what_a_service_knows_of_its_sessions_is_bounded():
    known = Incarnations(most=100)
    for number in range(1_000):
        known.add(str(number))
        assert str(number) in known
    assert len(known._known) <= 100


@pytest.mark.parametrize(
    "copied", ["session", "Session.model_validate_json(session.model_dump_json())"]
)
def test_a_forked_process_continues_with_its_parents_object(copied):
    script = textwrap.dedent(f"""
        import asyncio, os, threading
        from cosmos_emulator import Emulator
        from cosmosservice import CosmosSessionService
        from google.adk.events import Event
        from google.adk.sessions import Session
        from cosmos_emulator.serving import serving

        WHO = dict(app_name="a", user_id="u", session_id="s")

        async def main(service, session, name):
            for number in range(2):
                await service.append_event(session, Event(author=name))
            await service.flush()
            return session

        with Emulator() as emulator, serving(emulator) as endpoint:
            service = CosmosSessionService(
                endpoint=endpoint, credential=emulator.key, database="t"
            )
            session = asyncio.run(service.create_session(**WHO))
            session = asyncio.run(main(service, session, "parent"))
            child = os.fork()
            if child == 0:
                session = asyncio.run(main(service, {copied}, "child"))
                os._exit(len(session.events))
            status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
            found = asyncio.run(service.get_session(**WHO))
            print(status, [each.author for each in found.events])
            asyncio.run(service.close())
    """)
    ended = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=120, check=False
    )
    assert ended.stdout == "4 ['parent', 'parent', 'child', 'child']\n", ended.stderr
