"""The promises of docs/reliability.md, each tried once on the store. A failed one raises."""

from __future__ import annotations

import asyncio
import json
import os
import sys
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from typing import Any

from google.adk.events import Event, EventActions
from google.adk.sessions import Session
from google.genai import types

from cosmosservice import errors
from cosmosservice.errors import SessionNotFoundError, StaleSessionError, StorageError
from cosmosservice.selftest.scratch import Client, Scratch

WRITERS, EVENTS = 3, 8
SILENCE = 5.0  # seconds that connecting and an append with a short timeout may take together
LARGE = 1_200_000  # bytes: more than one document holds once it is encoded


class Broken(Exception):
    """A promise was not kept: what was seen."""


def expect(holds: bool, seen: str) -> None:
    if not holds:
        raise Broken(seen)


def said(text: str, author: str = "user", **delta: Any) -> Event:
    content = types.Content(role="user", parts=[types.Part(text=text)])
    return Event(author=author, content=content, actions=EventActions(state_delta=delta))


async def loaded(client: Client, where: dict[str, Any]) -> Session:
    session = await client.sessions.get_session(**where)
    if session is None:
        raise Broken("a session that was created is not found")
    return session


async def access(scratch: Scratch, one: Client, other: Client) -> str:
    await scratch.prepare()
    created = await one.sessions.create_session(**scratch.session("access"))
    await one.sessions.append_event(created, said("hello"))
    await one.sessions.delete_session(**scratch.session("access"))
    return f"database {scratch.settings.database}: may create, read, write and delete"


async def events_of_processes(scratch: Scratch, one: Client, other: Client) -> str:
    """G1, G2, G3, G8: several processes write one session, and one of them is killed."""
    where = scratch.session("processes")
    await one.sessions.create_session(**where)
    writers = [
        await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "cosmosservice.selftest.writer",
            env=scratch.environment,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        for _ in range(WRITERS)
    ]

    loaded_by_all = asyncio.Barrier(WRITERS)  # so that they write at the same time

    async def acknowledged(number: int, writer: asyncio.subprocess.Process) -> list[str]:
        assert writer.stdin is not None
        assert writer.stdout is not None
        assert writer.stderr is not None
        complaint = asyncio.create_task(writer.stderr.read())
        work = where | {"author": f"writer{number}", "count": EVENTS}
        writer.stdin.write(json.dumps(work).encode() + b"\n")
        await writer.stdin.drain()
        ready = await writer.stdout.readline()
        await loaded_by_all.wait()
        if not ready:
            raise _reported(await complaint)
        writer.stdin.write(b"\n")
        ids = []
        while line := await writer.stdout.readline():
            ids.append(line.decode().strip())
            if number == 0 and len(ids) == EVENTS // 2:
                writer.kill()
        if await writer.wait() and number > 0:
            raise _reported(await complaint)
        return ids

    try:
        of_writers = await asyncio.gather(*map(acknowledged, range(WRITERS), writers))
    finally:
        for writer in writers:
            if writer.returncode is None:
                writer.kill()
    ids = [each for written in of_writers for each in written]
    await other.sessions.catch_up()
    log = [event async for event in other.sessions.iter_events(**where)]
    counted = Counter(event.id for event in log)
    expect(all(counted[each] == 1 for each in ids), "an acknowledged event is missing or twice")
    again = [event.id async for event in one.sessions.iter_events(**where)]
    expect([event.id for event in log] == again, "two readers saw different orders")
    state: dict[str, Any] = {}
    for event in log:
        state.update(event.actions.state_delta)
    found = (await loaded(other, where)).state
    expect(found == state, "the state is not what the events add up to")
    return f"{WRITERS} processes, one killed: {len(ids)} acknowledged events, each there once"


def _reported(complaint: bytes) -> Exception:
    """Why a writing process failed, from the last line that it wrote."""
    last = complaint.decode(errors="replace").strip().rpartition("\n")[2]
    name, _, text = last.partition(": ")
    kind = getattr(errors, name, None)
    if isinstance(kind, type) and issubclass(kind, StorageError):
        return kind(f"in a writing process, {text}")
    return Broken(f"a writing process failed: {last}")


async def one_of_two(scratch: Scratch, one: Client, other: Client) -> str:
    """G2, G5: of two appends that expect the same version, one is refused without a trace."""
    where = scratch.session("race")
    await one.sessions.create_session(**where)
    await other.sessions.catch_up()
    mine, theirs = await loaded(one, where), await loaded(other, where)
    results = await asyncio.gather(
        one.sessions.append_event(mine, said("mine", lost=1)),
        other.sessions.append_event(theirs, said("theirs", lost=1)),
        return_exceptions=True,
    )
    refused = [each for each in results if isinstance(each, StaleSessionError)]
    for each in results:
        if isinstance(each, Exception) and each not in refused:
            raise each
    expect(len(refused) == 1, "of two appends to one version not exactly one was refused")
    await one.sessions.catch_up()
    expect(len((await loaded(one, where)).events) == 1, "a refused append left a trace")
    return "of two concurrent appends one succeeded and one was refused"


async def own_writes(scratch: Scratch, one: Client, other: Client) -> str:
    where = scratch.session("own")
    session = await one.sessions.create_session(**where)
    for number in range(5):
        await one.sessions.append_event(session, said(f"event {number}", number=number))
        seen = await loaded(one, where)
        expect(len(seen.events) == number + 1, "a get missed what its own process had appended")
        expect(seen.state["number"] == number, "a get had an older state than its events")
    return "every get included what this process had appended before it"


async def deleted(scratch: Scratch, one: Client, other: Client) -> str:
    """G6, G7: nothing can be appended after a delete, and a successor begins empty."""
    where = scratch.session("again")
    old = await one.sessions.create_session(**where, state={"old": 1})
    await one.sessions.append_event(old, said("old words"))
    await one.sessions.delete_session(**where)
    expect(await one.sessions.get_session(**where) is None, "a deleted session was found")
    await refused(one.sessions.append_event(old, said("too late")))
    new = await one.sessions.create_session(**where)
    own = [key for key in new.state if not key.startswith(("user:", "app:"))]
    expect(not new.events and not own, "a session created again shows its predecessor")
    await refused(one.sessions.append_event(old, said("too late")))
    expect(not (await loaded(one, where)).events, "an old object wrote into a new session")
    return "nothing was appended after the delete; its successor began empty"


async def refused(append: Awaitable[Any]) -> None:
    try:
        await append
    except (SessionNotFoundError, StaleSessionError):
        return
    raise Broken("an append to a deleted session was accepted")


async def sent_again(scratch: Scratch, one: Client, other: Client) -> str:
    where = scratch.session("repeat")
    session = await one.sessions.create_session(**where)
    await other.sessions.catch_up()
    twin, event = await loaded(other, where), said("once")
    await one.sessions.append_event(session, event)
    await other.sessions.append_event(twin, event.model_copy(deep=True))
    await one.sessions.catch_up()
    expect(len((await loaded(one, where)).events) == 1, "an event that was sent again is twice")
    return "an event that was sent by two clients is stored once"


async def in_time(scratch: Scratch, one: Client, other: Client) -> str:
    where, timeout = scratch.session("time"), 0.05
    session = await one.sessions.create_session(**where)
    started = time.monotonic()
    outcome = "was answered"
    async with scratch.client(timeout=timeout) as hasty:
        try:
            await hasty.sessions.append_event(session, said("quick"))
        except StorageError:
            outcome = "ended with an error"
        took = time.monotonic() - started
    expect(took < timeout + SILENCE, f"an append with a timeout of 50 ms took {took:.1f} s")
    return f"an append with a timeout of 50 ms {outcome} after {took * 1000:.0f} ms"


async def complete(scratch: Scratch, one: Client, other: Client) -> str:
    """G11: iteration and forks are complete, also with events over 2 MB."""
    where = scratch.session("whole")
    session = await one.sessions.create_session(**where)
    await one.sessions.append_event(session, said(os.urandom(LARGE).hex()))
    for number in range(20):
        await one.sessions.append_event(session, said(f"event {number}"))
    fork = scratch.session("fork")["session_id"]
    await one.sessions.fork_session(**where, new_session_id=fork)
    await other.sessions.catch_up()
    source = [e.content async for e in other.sessions.iter_events(**where)]
    copy = [e.content async for e in other.sessions.iter_events(**where | {"session_id": fork})]
    expect(len(source) == 21 and source == copy, "iteration or a fork was not complete")
    return "21 events, one of 2.4 MB, and their fork are the same"


async def memories(scratch: Scratch, one: Client, other: Client) -> str:
    session = await one.sessions.create_session(**scratch.session("memory"))
    await one.sessions.append_event(session, said("The peanut allergy is serious."))
    await one.memory.add_session_to_memory(session)
    found = await one.memory.search_memory(**scratch.who, query="peanut")
    expect(len(found.memories) == 1, "a memory that was added is not found")
    bob = scratch.who | {"user_id": scratch.users[1]}
    stranger = await one.memory.search_memory(**bob, query="peanut")
    expect(not stranger.memories, "a user found the memory of another one")
    return "a memory is found by its user, and by nobody else"


async def files(scratch: Scratch, one: Client, other: Client) -> str:
    where, data = scratch.session("files"), os.urandom(1_000_000)
    await one.sessions.create_session(**where)
    part = types.Part.from_bytes(data=data, mime_type="application/octet-stream")
    saves = (
        each.artifacts.save_artifact(**where, filename="f", artifact=part) for each in (one, other)
    )
    versions = await asyncio.gather(*saves)
    expect(sorted(versions) == [0, 1], "two saves got the same version")
    found = await other.artifacts.load_artifact(**where, filename="f", version=versions[0])
    blob = None if found is None else found.inline_data
    expect(blob is not None and blob.data == data, "a file was not loaded as it was saved")
    return "1 MB, saved by two clients: two versions, loaded byte for byte"


async def repaired(scratch: Scratch, one: Client, other: Client) -> str:
    """G13: a repair while another client appends damages nothing, and reports no damage."""
    where = scratch.session("repair")
    session = await one.sessions.create_session(**where)

    async def append() -> None:
        for number in range(10):
            await one.sessions.append_event(session, said(f"event {number}", number=number))

    writing = asyncio.create_task(append())
    try:
        while not writing.done():
            report = await other.sessions.repair_session(**where)
            expect(report.healthy, f"a repair reported damage where there is none: {report}")
    finally:
        await asyncio.gather(writing, return_exceptions=True)
    await writing
    seen = await loaded(one, where)
    expect(len(seen.events) == 10 and seen.state["number"] == 9, "a repair lost an event")
    return "a session was repaired again and again while it was written: nothing is lost"


async def erased(scratch: Scratch, one: Client, other: Client) -> str:
    """G12: after everything above, nothing of the users is left in any container."""
    before = len(await scratch.documents())
    for user in scratch.users:
        report = await one.sessions.purge_user(
            app_name=scratch.mark, user_id=user, include_state=True
        )
        for each in report.failed:
            raise Broken(f"a purge reports that something is left: {each.reason}")
    left = [each for each in await scratch.documents() if _has_content(each)]
    expect(not left, f"{len(left)} documents of an erased user still have content")
    return f"{before} documents with events, state, memories and files: no content is left"


_WORDS = ("peanut", "event ", "old words", "hello", "writer")


def _has_content(document: dict[str, Any]) -> bool:
    text = json.dumps(document)
    return any(word in text for word in _WORDS)


Check = Callable[[Scratch, Client, Client], Awaitable[str]]
PROMISES: tuple[tuple[str, str, Check], ...] = (
    ("access", "the credential may do what the services need", access),
    ("G1 G3 G8", "nothing acknowledged is lost, in one order; state follows", events_of_processes),
    ("G2 G5", "of two writers one is refused, without a trace", one_of_two),
    ("G4", "a process reads its own writes", own_writes),
    ("G6 G7", "deleted means deleted, created again means new", deleted),
    ("G9", "sending again stores once", sent_again),
    ("G10", "operations end within their timeout", in_time),
    ("G11", "iteration and forks are complete, at any size", complete),
    ("G13", "repair takes lag for no damage", repaired),
    ("memory", "memories are found, by their user only", memories),
    ("artifacts", "files are versioned and whole", files),
    ("G12", "what is erased is erased, everywhere", erased),
)
