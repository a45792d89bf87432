"""Sessions become memories automatically and exactly once while replicas lag."""

from __future__ import annotations

import asyncio
import contextlib
import os

import pytest
from click.testing import CliRunner

from cosmos_emulator import Emulator
from cosmos_emulator.replicas import Replicas
from cosmos_emulator.serving import serving
from cosmosservice import CosmosAccount, CosmosMemoryService, CosmosSessionService
from cosmosservice.cli.commands import cli
from cosmosservice.errors import StaleSessionError
from tests.memory.raw import documents_of, memories_of
from tests.memory.support import USER
from tests.support.adk import event

WHO = {"app_name": "app", "user_id": USER}
SEEDS = range(int(os.environ.get("RELIABILITY_SEEDS", "1")))


@pytest.fixture(params=[None, *SEEDS], ids=lambda seed: "held" if seed is None else f"seed {seed}")
def replicas(request):
    if request.param is None:
        return Replicas()
    return Replicas(lag=(0, 0.05 * 4 ** (request.param % 3)), seed=request.param)


@pytest.fixture
def emulator(request, replicas):
    with Emulator(replicas=replicas) as made:
        made.held = request.node.callspec.params["replicas"] is None
        yield made


@pytest.fixture
async def start(emulator):
    accounts = []

    def make() -> tuple[CosmosSessionService, CosmosMemoryService]:
        accounts.append(CosmosAccount.embedded(emulator))
        memory = CosmosMemoryService(account=accounts[-1], repeat_seconds=0)
        return CosmosSessionService(account=accounts[-1], memory=memory), memory

    yield make
    async with asyncio.timeout(60):
        for each in accounts:
            await each.close()


async def say(sessions, *texts: str) -> list[str]:
    """Appends. Loads the session again when a replica showed an older state of it."""
    said: list[str] = []
    async with asyncio.timeout(60):
        while len(said) < len(texts):
            session = await sessions.get_session(**WHO, session_id="s")
            with contextlib.suppress(StaleSessionError):
                while session is not None and len(said) < len(texts):
                    made = await sessions.append_event(session, event(texts[len(said)]))
                    said.append(made.id)
    return said


async def test_two_processes_by_turns_store_each_event_once(start, emulator, replicas):
    (one, _), (other, _) = start(), start()
    await one.create_session(**WHO, session_id="s")
    await say(one, "0")
    if emulator.held:
        replicas.hold("memories")
    for number in range(1, 7):
        await say(other if number % 2 else one, str(number))
    async with asyncio.timeout(60):
        await one.flush()
        await other.flush()
    replicas.catch_up()
    assert sorted(memories_of(emulator)) == [str(number) for number in range(7)]


async def test_what_was_erased_does_not_come_back(start, emulator, replicas):
    (one, memory), (other, _) = start(), start()
    await one.create_session(**WHO, session_id="s")
    (secret, *_) = await say(one, "my secret", "else")
    await one.flush()
    if emulator.held:
        replicas.hold("memories")
    await memory.delete_memory(**WHO, memory_id=secret)
    await say(other, "more")
    await other.flush()
    replicas.catch_up()
    assert sorted(memories_of(emulator)) == ["else", "more"]
    async with asyncio.timeout(60):
        await say(one, "the last")
        await start()[0].purge_session(**WHO, session_id="s")
        await one.close()
    replicas.catch_up()
    assert documents_of(emulator) == []


def test_a_follower_stores_each_event_once_and_keeps_nothing_that_is_erased(
    emulator, replicas, folder, monkeypatch
):
    def use(work) -> None:
        async def run() -> None:
            async with CosmosSessionService() as sessions:
                await work(sessions)

        asyncio.run(run())

    def follow() -> None:
        done = CliRunner().invoke(cli, ["memory", "follow", "--app", "app", "--once"])
        assert (done.exit_code, done.exception) == (0, None)

    with serving(emulator) as endpoint:
        monkeypatch.setenv("COSMOSDB_ENDPOINT", endpoint)
        monkeypatch.setenv("COSMOSDB_KEY", emulator.key)
        monkeypatch.setenv("COSMOSDB_DATABASE", "adk")
        use(lambda sessions: sessions.create_session(**WHO, session_id="s"))
        use(lambda sessions: say(sessions, "0", "1"))
        follow()
        use(lambda sessions: say(sessions, "2"))
        if emulator.held:
            replicas.hold("events", "memories")
        use(lambda sessions: say(sessions, "3", "4"))
        follow()  # what replicas do not show yet follows later
        replicas.catch_up()
        follow()
        replicas.catch_up()
        assert memories_of(emulator) == ["0", "1", "2", "3", "4"]
        use(lambda sessions: sessions.purge_session(**WHO, session_id="s"))
        replicas.catch_up()
        follow()
        replicas.catch_up()
        assert memories_of(emulator) == []
