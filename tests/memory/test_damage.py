"""A damaged document hides no other memory, and is reported once."""

from __future__ import annotations

import asyncio
import itertools
import re
from functools import partial

import pytest
from click.testing import CliRunner

from cosmos_emulator import Emulator
from cosmosservice.cli.commands import cli
from cosmosservice.hosting.operation import Bounded
from cosmosservice.memory.documents import Owner
from tests.memory.damage import FIELDS, GOOD, IN_PARTS, WRONG, Told, fill_with_damage
from tests.memory.support import found_texts, session, texts
from tests.memory.test_embedding import Embedder
from tests.support.adk import event
from tests.support.combinations import ALL
from tests.support.raw import RawContainer, raw_client


@pytest.fixture
async def memory(open_memory):
    service = open_memory(embedder=Embedder(), repeat_seconds=0)
    await service.search_memory(app_name="app", user_id="nobody", query="tea")  # makes the store
    return service


@pytest.fixture
def raw(emulator, memory):
    with raw_client(emulator) as client:
        proxy = client.get_database_client("adk").get_container_client("memories")
        yield RawContainer(proxy, "owner")


def told(found) -> set[str]:
    return {text for text in texts(found) if text in GOOD}


@pytest.mark.parametrize("wrong", WRONG)
@pytest.mark.parametrize("which", FIELDS)
async def test_every_damaged_field(which, wrong, memory, raw, caplog):
    for number, field in enumerate(FIELDS[which], list(WRONG).index(wrong)):
        user = Told(memory, large=which in IN_PARTS)
        await user.add()
        user.damage(raw, which, field, WRONG[wrong], raw.all(owner=user.owner.key))
        caplog.clear()
        names, owner = user.names, user.owner
        for session_id in (None, "s") if ALL else ((None, "s")[number % 2],):
            if user.large in user.events:
                await memory.search_memory(**names, query="large word7", session_id=session_id)
            answer = await memory.search_memory(**names, query="tea", session_id=session_id)
            assert told(answer.memories) == GOOD, field
            listed = [each async for each in memory.iter_memories(**names, session_id=session_id)]
            assert told(listed) == GOOD, field
        newest = await memory.in_store(
            Bounded("iter_memories"),
            lambda store: store.latest(owner, 10),  # noqa: B023
        )
        assert told(newest) == GOOD, field
        more = session(*user.events, event("tea at last"), user=user.user)
        await memory.add_session_to_memory(more)
        await memory.embed_missing(**names)
        assert "tea at last" in await found_texts(memory, "last", user=user.user)
        await memory.delete_memory(**names, memory_id=user.events[0].id)
        assert "tea before" not in await found_texts(memory, "tea", user=user.user)
        await memory.purge_memories(**names, session_id="s")
        assert raw.all(owner=owner.key, session_id="s") == [], field
        await memory.purge_memories(**names)
        assert raw.all(owner=owner.key) == [], field
        logged = [each.getMessage() for each in caplog.records if each.name == "cosmosservice"]
        assert len(logged) <= 1, (field, logged)
        for text in ("strange", user.user, "tea", "word7"):
            assert all(text not in each for each in logged), logged


@pytest.mark.parametrize("part", ["first", "middle", "last"])
async def test_a_changed_chunk_is_damage(part, memory, raw, caplog):
    user = Told(memory)
    await user.add()
    stored = raw.all(owner=user.owner.key)
    data = user.document("chunk", stored)["data"]
    at = {"first": 0, "middle": len(data) // 2, "last": len(data) - 5}[part]
    changed = "A" if data[at] != "A" else "B"
    user.damage(raw, "chunk", "data", data[:at] + changed + data[at + 1 :], stored)
    assert set(await found_texts(memory, "tea", user=user.user)) == GOOD | {"hidden tea"}
    assert caplog.text.count("is damaged") == 1


async def test_a_chunk_that_is_gone_is_damage(memory, raw, caplog):
    user = Told(memory)
    await user.add()
    raw.remove(user.document("chunk", raw.all(owner=user.owner.key)))
    for _ in range(2):
        assert set(await found_texts(memory, "tea", user=user.user)) == GOOD | {"hidden tea"}
    assert caplog.text.count("a part of it is missing") == 1


async def test_many_damaged_memories_hide_none(open_memory, memory, raw):
    plain = open_memory(repeat_seconds=0, results=5)
    names = {"app_name": "app", "user_id": "many"}
    events = [event(f"tea {number}", timestamp=float(number)) for number in range(260)]
    await plain.add_events_to_memory(**names, events=events)
    owner = Owner.of("app", "many")
    for document in raw.all(owner=owner.key):
        if document["time"] not in (3.0, 259.0):
            raw.put(document | {"content": 5})
    listed = [each async for each in plain.iter_memories(**names)]
    assert texts(listed) == ["tea 3", "tea 259"]
    newest = await plain.in_store(Bounded("iter_memories"), lambda store: store.latest(owner, 2))
    assert texts(newest) == ["tea 259", "tea 3"]


async def test_commands_go_on(folder):
    with Emulator("store.db") as emulator:
        users = await fill_with_damage(emulator)
    command = partial(asyncio.to_thread, CliRunner().invoke, cli)
    stores = ["cosmosdb://embedded/store.db", "cosmosdb://embedded/new.db"]
    moved = await command(["migrate", *stores])
    assert moved.exit_code == 0, moved.output
    for store, arguments in itertools.product(stores, (["search", "tea"], ["list"])):
        for user in users[::7]:
            names = ["--app", "app", "--user", user, "--uri", store]
            shown = await command(["memory", *arguments, *names])
            assert shown.exit_code == 0, shown.output
            assert set(re.findall("tea before|tea after", shown.stdout)) == GOOD
