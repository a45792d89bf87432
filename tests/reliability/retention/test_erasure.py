"""Erasing for good: no content is left, whatever interrupts the erasure.

The process that erases ends at its first request, at its second, and so on until it completes. Each
time it works on a copy of the same store, and another process has to finish the work.
"""

from __future__ import annotations

import asyncio
import contextlib
import datetime
import json
import shutil
import uuid

import pytest

from cosmos_emulator import Emulator
from cosmosservice import CosmosSessionService
from cosmosservice.errors import AlreadyExistsError, CosmosServiceError, SessionNotFoundError
from tests.support.adk import event, texts
from tests.support.raw import raw_store

WHO = {"app_name": "app", "user_id": "user"}
THIS = WHO | {"session_id": "s"}
OTHERS = [
    {"app_name": "app", "user_id": "other", "session_id": "s"},
    {"app_name": "app2", "user_id": "user", "session_id": "s"},
]
SECRET = "s3cret"
LARGE = SECRET + "x" * 2_100_000  # goes into a chunk


async def fill(service):
    """A session with a secret wherever content can be: text, keys, values, a chunk, a predecessor.
    Its neighbours have content of their own."""
    for who in OTHERS:
        session = await service.create_session(**who, state={"kept": 1, "user:kept": 1})
        await service.append_event(session, event("kept"))
    old = await service.create_session(**THIS, state={SECRET: SECRET})
    await service.append_event(old, event(LARGE))
    await service.delete_session(**THIS)
    session = await service.create_session(**THIS, state={"k": SECRET, "user:k": SECRET})
    await service.append_event(session, event(SECRET, delta={SECRET: SECRET}, author=SECRET))
    await service.append_event(session, event(LARGE))
    await service.append_event(session, event("plain", custom_metadata={"note": SECRET}))


@pytest.fixture(scope="module")
def filled(tmp_path_factory):
    """The file of a store with that session."""
    path = tmp_path_factory.mktemp("erasure") / "store.db"

    async def make():
        with Emulator(path) as emulator:
            async with CosmosSessionService.embedded(emulator) as service:
                await fill(service)

    asyncio.run(make())
    return path


@pytest.fixture
def copies(filled, tmp_path):
    """Each call opens a copy of the store and closes the one before."""
    with contextlib.ExitStack() as stack:

        def copy():
            stack.close()
            path = tmp_path / f"{uuid.uuid4()}.db"
            shutil.copy(filled, path)
            return stack.enter_context(Emulator(path))

        yield copy


@contextlib.asynccontextmanager
async def process(emulator):
    async with CosmosSessionService.embedded(emulator, ensure="never") as service:
        yield service


def left_over(raw):
    """The documents that still contain some of the content."""
    return [
        body["id"]
        for body in raw.everything()
        if SECRET in json.dumps(body) or body["document_type"] == "chunk"
    ]


async def nothing_is_left(emulator, *, user_state):
    with raw_store(emulator) as raw:
        kept = [body for body in raw.everything() if body["document_type"] == "user_state"]
        allowed = {body["id"] for body in kept} if user_state else set()
        assert set(left_over(raw)) <= allowed
        stubs = raw.events.all(user_id="user", app_name="app")
        assert all(body["ttl"] > 0 for body in stubs)
    async with process(emulator) as service:
        assert await service.get_session(**THIS) is None
        with pytest.raises(SessionNotFoundError):
            await service.restore_session(**THIS)
        for who in OTHERS:
            found = await service.get_session(**who)
            assert texts(found) == ["kept"]
            assert found.state == {"kept": 1, "user:kept": 1}


async def test_the_scan_finds_what_it_looks_for(copies):
    with raw_store(copies()) as raw:
        found = left_over(raw)
    # The chunks of both sessions, the text, the note, the session's state and the user's. The
    # events that name the chunks contain none of it.
    assert len(found) == 6


async def purge_session(service):
    await service.purge_session(**THIS)


async def purge_user(service):
    seen = []
    await service.purge_user(**WHO, include_state=True, progress=lambda *at: seen.append(at))
    assert seen in ([(1, 1)], [])  # nothing if only the state was left to erase


async def purge_deleted(service):
    seen = []
    await service.delete_session(**THIS)
    now = datetime.timedelta(0)
    await service.purge_deleted(older_than=now, progress=lambda *at: seen.append(at))


async def create_anew(service):
    """Not a purge: the process that creates the session finishes the purge that was begun."""
    session = await service.create_session(**THIS)
    await service.append_event(session, event("new"))
    assert texts(await service.get_session(**THIS)) == ["new"]
    await service.purge_session(**THIS)


CUT = ["the process ends", "the answer is lost"]  # in turn


def cut(faults, way, nth):
    if way == "the process ends":
        # All requests from this one on fail, and the client does not try again.
        return faults.fail(403, nth=nth, times=None, resource="docs")
    return faults.drop_after(nth=nth, resource="docs")


@pytest.mark.parametrize(
    ("begin", "finishers"),
    [
        (purge_session, [purge_session, create_anew]),
        (purge_user, [purge_user]),
        (purge_deleted, [purge_deleted]),
    ],
)
async def test_an_erasure_cut_short_anywhere_is_finished_by_the_next(copies, begin, finishers):
    nth, hit = 0, True
    while hit:
        nth += 1
        emulator = copies()
        finish = finishers[nth % len(finishers)]
        rule = cut(emulator.faults, "the process ends", nth)
        async with process(emulator) as service:
            try:
                await begin(service)
            except CosmosServiceError:
                assert rule.hits
        hit = bool(rule.hits)
        emulator.faults.clear()
        async with process(emulator) as service:
            try:
                await finish(service)
            except AlreadyExistsError:  # interrupted before anything was done
                await service.purge_session(**THIS)
        await nothing_is_left(emulator, user_state=finish is not purge_user)
    assert nth > 10


def of_predecessors(raw):
    """Events and chunks of the session's earlier incarnation."""
    current = raw.sessions.all(user_id="user", app_name="app", document_type="session")[0]
    return [
        body["id"]
        for body in raw.events.all(user_id="user", app_name="app")
        if body["document_type"] in ("adk_event", "chunk")
        and body["incarnation"] != current["incarnation"]
    ]


async def test_what_a_session_replaced_is_erased_and_the_session_untouched(copies):
    now = datetime.timedelta(0)
    nth, hit = 0, True
    while hit:
        nth += 1
        emulator = copies()
        with raw_store(emulator) as raw:
            assert len(of_predecessors(raw)) == 2
        async with process(emulator) as service:
            before = await service.get_session(**THIS)
        rule = cut(emulator.faults, CUT[nth % 2], nth)
        async with process(emulator) as service:
            try:
                await service.purge_deleted(older_than=now)
            except CosmosServiceError:
                assert rule.hits
        hit = bool(rule.hits)
        emulator.faults.clear()
        async with process(emulator) as service:
            await service.purge_deleted(older_than=now)
            assert (await service.purge_deleted(older_than=now)).sessions == 0
            session = await service.get_session(**THIS)
            assert session == before
            await service.append_event(session, event("goes on"))
        with raw_store(emulator) as raw:
            assert of_predecessors(raw) == []
    assert nth > 5


async def test_a_chunk_that_a_purge_could_not_remove_is_removed_by_the_next(copies):
    """Its event is already a stub, so that only the stub tells to whom the chunk belonged."""
    emulator = copies()
    now = datetime.timedelta(0)
    emulator.faults.fail(403, times=1, operation="delete", container="events")
    async with process(emulator) as service:
        assert len((await service.purge_deleted(older_than=now)).failed) == 1
        assert not (await service.purge_deleted(older_than=now)).failed
    with raw_store(emulator) as raw:
        assert of_predecessors(raw) == []


async def test_a_restore_cut_short_anywhere_is_finished_by_the_next(copies):
    nth, hit = 0, True
    while hit:
        nth += 1
        emulator = copies()
        async with process(emulator) as service:
            before = await service.get_session(**THIS)
            await service.delete_session(**THIS)
        rule = cut(emulator.faults, CUT[nth % 2], nth)
        async with process(emulator) as service:
            try:
                await service.restore_session(**THIS)
            except CosmosServiceError:
                assert rule.hits
        hit = bool(rule.hits)
        emulator.faults.clear()
        async with process(emulator) as service:
            seen = await service.get_session(**THIS)
            # All or nothing, at any moment.
            assert seen is None or (seen.events, seen.state) == (before.events, before.state)
            await service.restore_session(**THIS)
        async with process(emulator) as service:
            found = await service.get_session(**THIS)
            assert found.events == before.events
            assert found.state == before.state
            await service.append_event(found, event("goes on"))
    assert nth > 4


async def test_many_sessions_are_purged_with_progress_and_resumed(open_service, emulator):
    """Seven of thirty are done when the process ends; the next call does the rest."""
    service = open_service()
    for number in range(30):
        session = await service.create_session(**WHO, session_id=str(number))
        await service.append_event(session, event(SECRET))
    seen = []

    def progress(done, of):
        seen.append((done, of))
        if done == 7:
            emulator.faults.fail(403, times=None, resource="docs")

    report = await service.purge_user(**WHO, progress=progress)
    assert (report.sessions, len(report.failed)) == (7, 24)  # and what belongs to no session
    assert seen[-1] == (30, 30)
    emulator.faults.clear()
    fresh = open_service()
    assert len((await fresh.list_sessions(**WHO)).sessions) >= 22
    report = await fresh.purge_user(**WHO)
    assert report.sessions == 23
    assert report.documents >= 22
    assert (await fresh.purge_user(**WHO)).sessions == 0
    with raw_store(emulator) as raw:
        assert left_over(raw) == []
    assert (await fresh.list_sessions(**WHO)).sessions == []


async def test_a_long_session_is_purged_in_batches(open_service, emulator):
    """A few requests at a time, so that a purge leaves capacity to others."""
    service = open_service()
    session = await service.create_session(**THIS)
    for number in range(60):
        await service.append_event(session, event(f"{SECRET} {number}"))
    await service.delete_session(**THIS)
    emulator.faults.latency = 0.002
    emulator.clear_requests()
    assert (await service.purge_session(**THIS)).documents >= 60
    emulator.faults.latency = 0.0
    writes = [each for each in emulator.requests if each.operation == "replace"]
    assert len(writes) >= 60
    at_once = max(sum(one.overlaps(other) for other in writes) for one in writes)
    assert at_once <= 17  # itself, and those that overlap it
    with raw_store(emulator) as raw:
        assert left_over(raw) == []
