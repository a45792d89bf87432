"""A session that is created again: memories know which incarnation of it they came from."""

from __future__ import annotations

import pytest

from cosmosservice import CosmosMemoryService, CosmosSessionService
from cosmosservice.hosting.operation import Unbounded
from cosmosservice.memory.documents import Owner
from cosmosservice.memory.sources import MemoriesOf, documents_from
from cosmosservice.sessions.store.keys import SessionKey
from tests.memory.raw import documents_of, memories_of
from tests.memory.support import USER, found_texts, texts
from tests.memory.test_embedding import Embedder
from tests.support.adk import event
from tests.support.cosmos import account_on
from tests.support.raw import raw_client

WHO = {"app_name": "app", "user_id": USER}
NAMES = {**WHO, "session_id": "s"}
LONG = "tea of old, a very long story " * 2_000


class Process:
    def __init__(self, store, *, remembers: bool = False, **options) -> None:
        self.account = account_on(store)
        self.memory = CosmosMemoryService(account=self.account, **options)
        memory = self.memory if remembers else None
        self.sessions = CosmosSessionService(account=self.account, memory=memory)

    async def tell(self, session, *said: str, how: str) -> None:
        events = [event(text) for text in said]
        for each in events:
            await self.sessions.append_event(session, each)
        if how == "object":
            await self.memory.add_session_to_memory(session)
        elif how == "json":
            copy = type(session).model_validate_json(session.model_dump_json())
            await self.memory.add_session_to_memory(copy)
        elif how == "events":
            await self.memory.add_events_to_memory(**NAMES, events=events)
        else:
            await self.sessions.flush()

    async def create(self):
        return await self.sessions.create_session(**NAMES)

    async def listed(self, **options) -> list[str]:
        return texts([each async for each in self.memory.iter_memories(**WHO, **options)])


@pytest.fixture(params=["object", "json", "events", "memory="])
def how(request):
    return request.param


@pytest.fixture
async def start(cosmos):
    """Processes with caches of 30 seconds: they must not hide that a session was created again."""
    started = []

    def make(**options):
        started.append(Process(cosmos, **options))
        return started[-1]

    yield make
    for each in started:
        await each.account.close()


async def two_incarnations(start, how, **options):
    process = start(remembers=how == "memory=", **options)
    old = await process.create()
    await process.tell(old, "tea of old", LONG, how=how)
    assert "tea of old" in await found_texts(process.memory, "tea", session_id="s")
    await process.sessions.delete_session(**NAMES)
    assert "tea of old" in await found_texts(process.memory, "tea", session_id="s")
    new = await process.create()
    assert await found_texts(process.memory, "tea", session_id="s") == []
    await process.tell(new, "tea of new", how=how)
    return process, old, new


async def test_a_search_or_list_of_the_new_session_finds_only_its_own(start, how):
    process, _, _ = await two_incarnations(start, how)
    for each in (process, start()):
        assert await found_texts(each.memory, "tea", session_id="s") == ["tea of new"]
        assert await each.listed(session_id="s") == ["tea of new"]
        assert set(await each.listed()) == {"tea of old", LONG, "tea of new"}
        assert set(await found_texts(each.memory, "tea")) == {"tea of old", LONG, "tea of new"}


async def test_a_search_by_meaning_does_not_find_the_old_one_either(start, how):
    process, _, _ = await two_incarnations(start, how, embedder=Embedder())
    assert await found_texts(process.memory, "brew", session_id="s") == ["tea of new"]


@pytest.mark.parametrize("erased", [0, 1])
async def test_erasing_one_incarnation_erases_exactly_its_memories(start, how, cosmos, erased):
    process, *sessions = await two_incarnations(start, how, embedder=Embedder())
    incarnations = [
        (str(each._storage_update_marker).split(":")[1], {said.id for said in each.events})
        for each in sessions
    ]
    incarnation, events = incarnations[erased]
    owner = Owner.of("app", USER)
    wanted = MemoriesOf("s", incarnation, frozenset(events))
    found = await process.memory.in_store(
        Unbounded("test"), lambda store: documents_from(store.container, owner, wanted)
    )
    before = {each["id"] for each in documents_of(cosmos) if each["owner"] == owner.key}
    count = await process.memory.erase_session_memories(
        SessionKey("app", USER, "s"), incarnation, events
    )
    after = {each["id"] for each in documents_of(cosmos) if each["owner"] == owner.key}
    assert {each["id"] for each in found} == before - after
    assert count == len(before - after)
    left = {"tea of old", LONG} if erased else {"tea of new"}
    assert set(await process.listed()) == left
    if not erased:
        assert "old" not in str(documents_of(cosmos))


async def test_the_incarnation_is_stored_where_it_is_known(start, cosmos, how):
    _, old, new = await two_incarnations(start, how)
    stored = {each.get("memory_id"): each.get("incarnation") for each in documents_of(cosmos)}
    for session in (old, new):
        known = str(session._storage_update_marker).split(":")[1]
        expected = known if how in ("object", "memory=") else None
        assert [stored[each.id] for each in session.events] == [expected] * len(session.events)


async def test_an_incarnation_that_becomes_known_is_added(start, cosmos):
    process = start()
    session = await process.create()
    await process.tell(session, "tea", how="json")
    await start().memory.add_session_to_memory(session)
    (stored,) = documents_of(cosmos)
    assert str(session._storage_update_marker).split(":")[1] == stored["incarnation"]


async def test_a_memory_that_both_lives_have_stays_until_the_last_is_erased(start, cosmos):
    """The old session was forked, and the fork back onto its name."""
    process = start()
    old = await process.create()
    await process.tell(old, "tea of all", how="object")
    await process.sessions.fork_session(**NAMES, new_session_id="t")
    await process.sessions.purge_session(**NAMES)
    fork = await process.sessions.get_session(**WHO, session_id="t")
    await process.memory.add_session_to_memory(fork)
    await process.memory.add_session_to_memory(old)  # an old object
    await process.sessions.fork_session(**WHO, session_id="t", new_session_id="s2")
    again = await process.sessions.get_session(**WHO, session_id="s2")
    await process.memory.add_session_to_memory(again)
    for session in (old, fork, again):
        assert memories_of(cosmos) == ["tea of all"]
        incarnation = str(session._storage_update_marker).split(":")[1]
        await process.memory.erase_session_memories(
            SessionKey("app", USER, session.id), incarnation
        )
    assert documents_of(cosmos) == []


async def test_memories_added_by_hand_to_a_session_are_found_in_it(start):
    """Their events are in no log."""
    process = start()
    await process.create()
    await process.memory.add_events_to_memory(**NAMES, events=[event("tea by hand")])
    assert await found_texts(process.memory, "tea", session_id="s") == ["tea by hand"]


async def test_a_restored_session_finds_its_memories(start, how):
    process = start(remembers=how == "memory=")
    session = await process.create()
    await process.tell(session, "tea", how=how)
    await process.sessions.delete_session(**NAMES)
    await process.sessions.restore_session(**NAMES)
    assert await found_texts(process.memory, "tea", session_id="s") == ["tea"]


async def test_a_store_without_sessions_gets_no_containers(emulator, memory):
    await memory.add_events_to_memory(**NAMES, events=[event("tea")])
    assert await found_texts(memory, "tea", session_id="s") == ["tea"]
    with raw_client(emulator) as client:
        database = client.get_database_client("adk")
        assert [each["id"] for each in database.list_containers()] == ["memories"]
