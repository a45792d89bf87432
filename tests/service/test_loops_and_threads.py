"""One service, used from many event loops and threads."""

from __future__ import annotations

import asyncio
import gc
import subprocess
import sys
import textwrap
import threading
import time
import warnings

import pytest

from cosmosservice import CosmosSessionService
from cosmosservice.errors import UnavailableError
from tests.support.adk import event, reload

WHO = {"app_name": "app", "user_id": "user"}


def left_behind():
    """Loops, tasks and futures that are still referenced, and threads of services."""
    gc.collect()
    kinds = (asyncio.BaseEventLoop, asyncio.Future)
    threads = [each.name for each in threading.enumerate()].count("cosmosservice-io")
    return sum(isinstance(each, kinds) for each in gc.get_objects()), threads


def test_a_thousand_loops_leave_nothing_behind(emulator, recwarn):
    service = CosmosSessionService.embedded(emulator)
    session = asyncio.run(service.create_session(**WHO))
    asyncio.run(service.append_event(session, event("warm")))
    objects, threads = left_behind()
    for _ in range(1000):
        asyncio.run(service.get_user_state(**WHO))
    after = left_behind()
    assert after[0] < objects + 100
    assert after[1] <= threads
    asyncio.run(service.close())
    assert not [each for each in recwarn if issubclass(each.category, ResourceWarning)]


def test_threads_with_loops_of_their_own_share_one_client(emulator):
    service = CosmosSessionService.embedded(emulator)
    asyncio.run(service.get_user_state(**WHO))
    emulator.clear_requests()

    def work(number: int) -> None:
        async def turn() -> None:
            session = await service.create_session(**WHO, session_id=f"s{number}")
            for _ in range(5):
                await service.append_event(session, event("x"))
            assert len((await reload(service, session)).events) == 5

        asyncio.run(turn())

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    listed = asyncio.run(service.list_sessions(**WHO))
    assert len(listed.sessions) == 8
    asyncio.run(service.close())
    assert not [each for each in emulator.requests if each.resource == "dbs"]


async def test_a_service_can_be_used_again_after_close(service):
    session = await service.create_session(**WHO)
    await service.close()
    await service.append_event(session, event("again"))
    assert len((await reload(service, session)).events) == 1


@pytest.mark.parametrize("used_again", [True, False], ids=["used again", "closed"])
async def test_a_service_whose_opening_was_cancelled_goes_on(emulator, used_again):
    """For example by a program that cancels every task of its loop, and continues."""
    before = asyncio.all_tasks()
    reached = asyncio.Event()

    async def never_answer(_):
        reached.set()
        await asyncio.Event().wait()

    emulator.faults.call(never_answer)
    async with CosmosSessionService.embedded(emulator) as service:
        call = asyncio.create_task(service.create_session(**WHO))
        await reached.wait()
        for each in asyncio.all_tasks() - before:
            each.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        if used_again:
            session = await service.create_session(**WHO)
            assert await reload(service, session) == session


async def test_an_opening_that_failed_unseen_is_tried_again_at_the_next_call(emulator):
    before = asyncio.all_tasks()
    reached, answer = asyncio.Event(), asyncio.Event()

    async def wait_for_it(_):
        reached.set()
        await answer.wait()

    emulator.faults.call(wait_for_it)
    refused = emulator.faults.fail(403, times=1, operation="read", resource="dbs")
    async with CosmosSessionService.embedded(emulator) as service:
        call = asyncio.create_task(service.create_session(**WHO))
        await reached.wait()
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        opening = asyncio.all_tasks() - before
        answer.set()
        await asyncio.wait(opening)
        assert refused.hits
        session = await service.create_session(**WHO)
        assert await reload(service, session) == session


def io_threads():
    return [each for each in threading.enumerate() if each.name == "cosmosservice-io"]


def _ended(before):
    while len(io_threads()) > before:
        time.sleep(0.01)


async def test_in_a_block_the_service_lives_on_its_loop_and_closes_with_it(emulator):
    before = len(io_threads())
    async with CosmosSessionService.embedded(emulator) as service:
        session = await service.create_session(**WHO)
        await service.append_event(session, event("x", delta={"k": 1}))
        assert len(session.events) == 1
        assert len(io_threads()) == before
        emulator.clear_requests()
    assert [each.operation for each in emulator.requests] == ["replace"]  # outstanding work
    await service.append_event(session, event("after the block"))
    assert len(io_threads()) == before + 1
    await service.close()
    assert len(io_threads()) == before


async def test_a_block_may_block_its_loop_on_a_thread_that_uses_the_service(emulator):
    """`Runner.run()` does so when it is called in a coroutine."""
    async with CosmosSessionService.embedded(emulator) as service:
        session = await service.create_session(**WHO)
        found = []

        def turn() -> None:
            found.append(asyncio.run(reload(service, session)))
            asyncio.run(service.append_event(found[0], event("from there", delta={"k": 1})))
            asyncio.run(service.flush())

        thread = threading.Thread(target=turn)
        thread.start()
        thread.join()
        assert found[0].state == {"k": 1}
        assert await reload(service, session) == found[0]


async def test_what_is_in_memory_is_one_for_all_loops():
    async with CosmosSessionService.embedded() as service:
        session = await service.create_session(**WHO)
        listed = await asyncio.to_thread(asyncio.run, service.list_sessions(**WHO))
        assert [each.id for each in listed.sessions] == [session.id]
    assert await reload(service, session) == session
    await service.close()


async def test_a_block_within_a_block_and_after_a_lost_loop(emulator):
    service = CosmosSessionService.embedded(emulator)
    lost = asyncio.new_event_loop()
    lost.run_in_executor(None, lambda: None)
    await asyncio.to_thread(lost.run_until_complete, service.__aenter__())
    lost.close()
    async with service:
        async with service:
            session = await service.create_session(**WHO)
        assert await reload(service, session) == session


@pytest.mark.parametrize("in_a_block", [True, False])
async def test_closing_waits_for_the_calls_under_way(emulator, in_a_block):
    service = CosmosSessionService.embedded(emulator)
    if in_a_block:
        await service.__aenter__()
    sessions = [await service.create_session(**WHO, state={"n": n}) for n in range(4)]
    emulator.faults.latency = 0.05
    appends = [service.append_event(each, event("x")) for each in sessions]
    reads = [reload(service, each) for each in sessions]
    under_way = asyncio.gather(*appends, *reads)
    await asyncio.sleep(0.02)
    await service.close()
    await under_way
    assert [len(each.events) for each in sessions] == [1, 1, 1, 1]


def test_closing_all_the_time_fails_no_call(emulator):
    service = CosmosSessionService.embedded(emulator)
    ended = threading.Event()
    failures = []

    def use() -> None:
        async def calls() -> None:
            while not ended.is_set():
                try:
                    await service.get_user_state(**WHO)
                except BaseException as failure:
                    failures.append(failure)

        asyncio.run(calls())

    threads = [threading.Thread(target=use) for _ in range(2)]
    for thread in threads:
        thread.start()
    for _ in range(30):
        asyncio.run(service.close())
    ended.set()
    for thread in threads:
        thread.join()
    asyncio.run(service.close())
    assert failures == []


async def test_a_call_that_outlasts_the_timeout_of_a_close_gets_an_error(emulator, monkeypatch):
    for module in ("resources", "thread_executor"):
        monkeypatch.setattr(f"cosmosservice.hosting.{module}.CLOSE_TIMEOUT", 0.05)
    service = CosmosSessionService.embedded(emulator)
    session = await service.create_session(**WHO)
    await service.flush()
    emulator.faults.latency = 0.5
    append = asyncio.create_task(service.append_event(session, event("x")))
    await asyncio.sleep(0.05)
    await service.close()
    with pytest.raises(UnavailableError, match="closed while this call was under way"):
        await append
    emulator.faults.latency = 0
    await service.append_event(session, append_again := event("y"))
    assert session.events[-1] == append_again
    await service.close()


async def test_a_forgotten_service_closes_itself(emulator):
    before = len(io_threads())
    service = CosmosSessionService.embedded(emulator)
    session = await service.create_session(**WHO)
    await service.append_event(session, event("x", delta={"k": 1}))
    assert len(io_threads()) == before + 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        del service
        gc.collect()
    await asyncio.to_thread(_ended, before)
    written = [each for each in emulator.requests if each.operation == "replace"]
    assert [each.id for each in written] == [f"session.app.{session.id}"]


def test_a_process_that_ends_without_close_writes_what_is_due_and_says_nothing(tmp_path):
    path = tmp_path / "sessions.db"
    script = textwrap.dedent(f"""
        import asyncio
        from cosmosservice import CosmosSessionService
        from google.adk.events import Event, EventActions

        service = CosmosSessionService.embedded({str(path)!r})

        async def main():
            session = await service.create_session(app_name="a", user_id="u", session_id="s")
            event = Event(author="user", actions=EventActions(state_delta={{"k": 1}}))
            await service.append_event(session, event)

        asyncio.run(main())
    """)
    ended = subprocess.run(
        [sys.executable, "-X", "dev", "-W", "ignore::DeprecationWarning", "-c", script],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert "Error" not in ended.stderr
    assert "Unclosed" not in ended.stderr
    assert "never awaited" not in ended.stderr

    async def listed():
        async with CosmosSessionService.embedded(str(path)) as service:
            return await service.list_sessions(app_name="a", user_id="u")

    assert asyncio.run(listed()).sessions[0].state == {"k": 1}


@pytest.mark.parametrize("use", ["await ids()", "pass"])
def test_a_forked_child_leaves_the_connections_of_its_parent_alone(use):
    script = textwrap.dedent(f"""
        import asyncio, os, signal
        from cosmos_emulator import Emulator
        from cosmos_emulator.server import Server
        from cosmosservice import CosmosSessionService

        async def serve():
            signal.alarm(50)  # whatever happens to the others
            emulator = Emulator()
            endpoint = await Server(emulator).start()
            os.write(writable, f"{{endpoint}} {{emulator.key}}".encode())
            await asyncio.sleep(60)

        readable, writable = os.pipe()
        server = os.fork()
        if server == 0:
            asyncio.run(serve())
        endpoint, key = os.read(readable, 1000).decode().split()
        service = CosmosSessionService(endpoint=endpoint, credential=key, database="t")

        async def ids():
            listed = await service.list_sessions(app_name="a", user_id="u")
            return [each.id for each in listed.sessions]

        async def child():
            {use}

        try:
            asyncio.run(service.create_session(app_name="a", user_id="u", session_id="s"))
            forked = os.fork()
            if forked == 0:
                server = 0
                asyncio.run(child())
            else:
                os.waitpid(forked, 0)
                print(asyncio.run(asyncio.wait_for(ids(), 10)))
                asyncio.run(service.close())  # while the server is there
        finally:
            if server:
                os.kill(server, signal.SIGKILL)
    """)
    ended = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=False
    )
    assert ended.stdout == "['s']\n", ended.stderr


def test_however_often_a_thread_is_asked_to_stop_it_shuts_down_once(emulator, monkeypatch):
    """A second stop while its loop ends would leave a task that never runs."""
    service = CosmosSessionService.embedded(emulator)
    asyncio.run(service.create_session(**WHO))
    thread = service.account.executor.current
    ends = []
    shut_down = thread._shut_down
    monkeypatch.setattr(thread, "_shut_down", lambda: ends.append("end") or shut_down())
    for _ in range(3):
        thread.request_stop()
    thread.stop()
    assert ends == ["end"]
