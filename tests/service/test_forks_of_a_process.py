"""os.fork while other threads use the service on an embedded store."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import textwrap

import pytest

from cosmosservice import CosmosSessionService

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")

FORKS, THREADS = 4, 3
SCRIPT = """
    import asyncio, os, signal, sys, threading, time
    from cosmos_emulator import Emulator
    from cosmosservice import CosmosSessionService
    from google.adk.events import Event

    path = sys.argv[1]
    service = CosmosSessionService.embedded({store})
    ended, appended = threading.Event(), [0] * {threads}

    async def talk(name, events):
        session = await service.create_session(app_name="a", user_id="u", session_id=name)
        for event in events:
            await service.append_event(session, event)
        return await service.get_session(app_name="a", user_id="u", session_id=name)

    def endless(number):
        while not ended.is_set():
            yield Event(author="user")
            appended[number] += 1
            while appended[number] > 20 and not ended.is_set():  # until the next fork
                time.sleep(0.001)

    def use(number):
        asyncio.run(talk(f"thread{{number}}", endless(number)))

    async def child(number):
        found = await talk(f"child{{number}}", [Event(author="user")])
        await service.close()
        return len(found.events)

    threads = [threading.Thread(target=use, args=[number]) for number in range({threads})]
    for thread in threads:
        thread.start()
    codes = []
    for number in range({forks}):
        while not all(appended):
            time.sleep(0.001)
        appended[:] = [0] * {threads}  # each thread is used again before the next fork
        forked = os.fork()
        if forked == 0:
            signal.alarm(30)  # ends a child that hangs
            code = 99
            try:
                code = asyncio.run(child(number))
            finally:
                os._exit(code)
        codes.append(os.waitstatus_to_exitcode(os.waitpid(forked, 0)[1]))
    ended.set()
    for thread in threads:
        thread.join()
    asyncio.run(service.close())
    print(codes)
"""


@pytest.mark.parametrize("store", ["path", "Emulator(path)", "':memory:'"])
def test_a_child_that_is_forked_while_threads_append_can_use_the_store(tmp_path, store):
    path = tmp_path / "sessions.db"
    script = textwrap.dedent(SCRIPT).format(store=store, forks=FORKS, threads=THREADS)
    ended = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", script, str(path)],
        capture_output=True,
        text=True,
        timeout=FORKS * 40,
        check=False,
    )
    assert ended.stdout == f"{[1] * FORKS}\n", ended.stderr
    if store == "':memory:'":
        return

    async def listed():
        async with CosmosSessionService.embedded(str(path)) as service:
            found = await service.list_sessions(app_name="a", user_id="u")
            return {each.id for each in found.sessions}

    assert asyncio.run(listed()) == {f"child{n}" for n in range(FORKS)} | {
        f"thread{n}" for n in range(THREADS)
    }
