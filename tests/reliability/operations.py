"""The operations whose every request is made to fail, and the result of each."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

from google.adk.events import Event
from google.adk.sessions import Session
from google.genai import types

from cosmos_emulator import Replicas
from cosmosservice.errors import (
    AlreadyExistsError,
    SessionNotFoundError,
    StaleSessionError,
    StateUpdatePendingError,
    StorageError,
)
from cosmosservice.hosting.operation import Unbounded
from tests.reliability.guarantees import APP, History, Picture, View
from tests.reliability.simulation import Killed, Process, store
from tests.support.adk import event

USER, ID = "ann", "s"
WHERE = (USER, ID)
WHO = {"app_name": APP, "user_id": USER}
THIS = WHO | {"session_id": ID}
REFUSALS = (StaleSessionError, SessionNotFoundError, AlreadyExistsError)

NOON = 1_700_000_000.5  # the time of every event: their order does not depend on it
# Random, so that it does not compress: two chunks, since an item takes 20,000 bytes here.
LARGE = random.Random(0).randbytes(22_000)


class Stage:
    """A store, the process whose requests fail, its session object, and what it was told."""

    def __init__(self, *, replicas: Replicas | None = None, **options: Any) -> None:
        self.emulator = store(replicas)
        self.history = History()
        self.victim = Process(self.emulator, **options)
        self.session: Session | None = None  # the victim's
        self.event: Event | None = None  # the one that the operation appends

    def fresh(self) -> Process:
        """A new process, which has seen nothing."""
        return Process(self.emulator)

    async def create(self, process: Process, born: str, **state: Any) -> Session:
        initial = {"born": born} | state
        own = {k: v for k, v in initial.items() if not k.startswith(("user:", "app:"))}
        self.history.initial[born] = own
        return await process.service.create_session(**THIS, state=initial)

    async def append(self, process: Process, session: Session, said: Event) -> None:
        """Appends, and records what the caller was told."""
        history = self.history
        history.unknown.add(said.id)
        try:
            await process.service.append_event(session, said)
        except REFUSALS:
            if said.id not in history.stored:
                history.unknown.discard(said.id)
                history.refused.add(said.id)
            raise
        except StateUpdatePendingError:
            history.unmerged.add(said.id)
            history.stored[said.id] = (session.user_id, session.id)
            raise
        except BaseException:
            history.cut_off.add(said.id)
            raise
        history.stored[said.id] = (session.user_id, session.id)


# Large enough for two documents: a value in a state document takes 32,000 bytes here.
LARGE_TEXT = random.Random(0).randbytes(18_000).hex()


def large_value(name: str) -> list[str]:
    return [name, LARGE_TEXT]


def say(name: str, *scopes: str, large: bool = False, large_state: bool = False) -> Event:
    """An event whose name is its id and its value in every scope. Every call returns the same
    event."""
    value = large_value(name) if large_state else name
    delta = {f"{scope}{'' if scope.endswith(':') else '_'}key": value for scope in scopes}
    content = None
    if large:
        blob = types.Blob(data=LARGE, mime_type="image/png")
        content = types.Content(role="user", parts=[types.Part(inline_data=blob)])
    fields = {"id": name, "delta": delta or None, "content": content, "timestamp": NOON}
    return event(None if large else name, **fields)


@dataclass(frozen=True)
class Operation:
    """`prepare`, then `run` on the victim, then again. A reader sees `before` or `after`."""

    name: str
    prepare: Callable[[Stage], Awaitable[None]]
    run: Callable[[Stage, Process], Awaitable[None]]
    before: View
    after: View
    where: tuple[str, str] = WHERE  # the session that readers check
    uploads: tuple[str, ...] = ()  # large events that may leave chunks if it is interrupted
    options: dict[str, Any] = field(default_factory=dict)
    refusal: type[Exception] | None = None  # the error that it must raise
    again: type[Exception] | None = None  # the error that it may raise the second time


async def nothing(stage: Stage) -> None:
    """Creates the containers, and connects to them."""
    await stage.victim.service.list_sessions(**WHO)


async def created(stage: Stage) -> None:
    stage.session = await stage.create(stage.victim, "first")


async def created_with_large_values(stage: Stage) -> None:
    stage.session = await stage.create(stage.victim, "first", own=VALUES)


async def begun(stage: Stage) -> None:
    """A session with one event, which the victim has seen."""
    await created(stage)
    await stage.append(stage.victim, stage.session, say("one", "own"))
    await stage.victim.service.flush()


async def late(stage: Stage) -> None:
    """Another process has appended user and app state, and has died before it was merged."""
    await begun(stage)
    other = stage.fresh()
    session = await other.service.get_session(**THIS)

    async def die(_: Any) -> None:
        other.kill()
        raise Killed

    rule = stage.emulator.faults.call(die, when="before", operation="replace", times=None)
    created_ = stage.emulator.faults.call(
        die, when="before", operation="create", container="sessions"
    )
    stage.history.unknown.add("other")
    try:
        await other.service.append_event(session, say("other", "own", "user:", "app:"))
    except Killed:
        stage.history.stored["other"] = WHERE  # the caller was never told, but it is stored
        stage.history.unmerged.add("other")
    stage.emulator.faults.clear()
    assert rule.hits + created_.hits > 0


async def overtaken(stage: Stage) -> None:
    """Another process has appended since the victim loaded the session."""
    await begun(stage)
    other = stage.fresh()
    session = await other.service.get_session(**THIS)
    await stage.append(other, session, say("other", "own", "user:"))
    await other.service.close()


async def with_deltas(stage: Stage) -> None:
    await begun(stage)
    await stage.append(stage.victim, stage.session, say("two", "own", "user:", "app:"))
    await stage.victim.service.flush()


async def with_large(stage: Stage) -> None:
    await begun(stage)
    await stage.append(stage.victim, stage.session, say("large", "own", large=True))
    await stage.victim.service.flush()


async def deleted(stage: Stage) -> None:
    await with_deltas(stage)
    await stage.victim.service.delete_session(**THIS)


async def deleted_elsewhere(stage: Stage) -> None:
    await begun(stage)
    other = stage.fresh()
    await other.service.delete_session(**THIS)
    await other.service.close()


def creating(born: str, **state: Any) -> Callable[[Stage, Process], Awaitable[None]]:
    async def run(stage: Stage, process: Process) -> None:
        stage.session = await stage.create(process, born, **state)

    return run


def appending(name: str, *scopes: str, **options: bool):
    async def run(stage: Stage, process: Process) -> None:
        if stage.event is None:
            stage.event = say(name, *scopes, **options)
        session = stage.session
        if process is not stage.victim:
            session = await process.service.get_session(**THIS)
            if session is None:
                raise SessionNotFoundError
        await stage.append(process, session, stage.event)

    return run


async def get(_: Stage, process: Process) -> None:
    await process.service.get_session(**THIS)


async def delete(_: Stage, process: Process) -> None:
    await process.service.delete_session(**THIS)


async def restore(_: Stage, process: Process) -> None:
    await process.service.restore_session(**THIS)


async def purge(stage: Stage, process: Process) -> None:
    await process.service.purge_session(**THIS)
    stage.history.purged.add(WHERE)


async def with_large_values(stage: Stage) -> None:
    await begun(stage)
    said = say("values", "own", "user:", large_state=True)
    await stage.append(stage.victim, stage.session, said)
    await stage.victim.service.flush()


async def purge_user(stage: Stage, process: Process) -> None:
    await process.service.purge_user(**WHO, include_state=True)
    stage.history.purged.add(WHERE)


def iterating(*names: str):
    async def run(_: Stage, process: Process) -> None:
        found = [each.id async for each in process.service.iter_events(**THIS, page_size=1)]
        assert found == list(names)

    return run


async def repair(_: Stage, process: Process) -> None:
    await process.service.repair_session(**THIS)


async def with_everything(stage: Stage) -> None:
    """Two events, a large one, and one with large values."""
    await with_deltas(stage)
    for said in (say("large", "own", large=True), say("values", "own", large_state=True)):
        await stage.append(stage.victim, stage.session, said)
    await stage.victim.service.flush()


def forking(at: int | None = None):
    async def run(_: Stage, process: Process) -> None:
        await process.service.fork_session(**THIS, at=at, new_session_id=FORK[1])

    return run


async def with_purged_target(stage: Stage) -> None:
    """The name of the fork belonged to another session."""
    await with_everything(stage)
    other = stage.fresh()
    where = {"app_name": APP, "user_id": FORK[0], "session_id": FORK[1]}
    session = await other.service.create_session(**where)
    stage.history.unknown.add("former")
    await other.service.append_event(session, event("former", id="former"))
    await other.service.purge_session(**where)
    await other.service.close()


async def without_document(stage: Stage) -> None:
    """The session's document and its large values are gone: only the log is left."""
    await with_everything(stage)
    await remove_document(stage)


async def remove_document(stage: Stage) -> None:
    other = stage.fresh()

    async def remove(store: Any) -> None:
        for each in Picture(stage.emulator).documents:
            if each["document_type"] in ("session", "state_value"):
                await store.sessions.delete(each["id"], each["user_id"])

    await other.service.in_store(Unbounded("test"), remove)
    await other.service.close()
    stage.history.damaged.add(WHERE)


ONE = {"born": "first", "own_key": "one"}
TWO = ONE | {"own_key": "two", "user:key": "two", "app:key": "two"}
OTHER = ONE | {"own_key": "other", "user:key": "other", "app:key": "other"}
AGAIN = {"born": "again", "user:key": "two", "app:key": "two"}

FORK = (USER, "fork")
EVERYTHING = ["one", "two", "large", "values"]
VALUES, MORE = large_value("values"), large_value("more")

OPERATIONS = [
    Operation(
        "create with user and app state",
        nothing,
        creating("first", **{"user:u": "first", "app:a": "first"}),
        None,
        ([], {"born": "first", "user:u": "first", "app:a": "first"}),
        again=AlreadyExistsError,
    ),
    Operation(
        "append", created, appending("one"), ([], {"born": "first"}), (["one"], {"born": "first"})
    ),
    Operation(
        "append with session, user and app state",
        begun,
        appending("two", "own", "user:", "app:"),
        (["one"], ONE),
        (["one", "two"], TWO),
    ),
    Operation(
        "append over 2 MB",
        begun,
        appending("large", "own", "user:", large=True),
        (["one"], ONE),
        (["one", "large"], ONE | {"own_key": "large", "user:key": "large"}),
    ),
    Operation(
        "append, rebasing",
        overtaken,
        appending("two", "own", "user:"),
        (["one", "other"], ONE | {"own_key": "other", "user:key": "other"}),
        (["one", "other", "two"], ONE | {"own_key": "two", "user:key": "two"}),
        options={"on_conflict": "rebase"},
    ),
    Operation(
        "append over 2 MB, rebasing",
        overtaken,
        appending("large", "own", large=True),
        (["one", "other"], ONE | {"own_key": "other", "user:key": "other"}),
        (["one", "other", "large"], ONE | {"own_key": "large", "user:key": "other"}),
        options={"on_conflict": "rebase"},
    ),
    Operation(
        "append to a newer session",
        overtaken,
        appending("two", "own", "user:", "app:"),
        (["one", "other"], ONE | {"own_key": "other", "user:key": "other"}),
        (["one", "other"], ONE | {"own_key": "other", "user:key": "other"}),
        refusal=StaleSessionError,
    ),
    Operation(
        "append over 2 MB to a newer session",
        overtaken,
        appending("large", large=True),
        (["one", "other"], ONE | {"own_key": "other", "user:key": "other"}),
        (["one", "other"], ONE | {"own_key": "other", "user:key": "other"}),
        refusal=StaleSessionError,
    ),
    Operation(
        "append to a deleted session",
        deleted_elsewhere,
        appending("two", "own", "user:"),
        None,
        None,
        refusal=SessionNotFoundError,
    ),
    Operation("delete", with_deltas, delete, (["one", "two"], TWO), None),
    Operation(
        "create again",
        deleted,
        creating("again", **{"user:u": "again"}),
        None,
        ([], AGAIN | {"user:u": "again"}),
        again=AlreadyExistsError,
    ),
    Operation("restore", deleted, restore, None, (["one", "two"], TWO)),
    Operation("purge", deleted, purge, None, None),
    Operation(
        "purge with chunks, deleting first",
        with_large,
        purge,
        (["one", "large"], ONE | {"own_key": "large"}),
        None,
    ),
    Operation(
        "get of a late session",
        late,
        get,
        (["one", "other"], OTHER),
        (["one", "other"], OTHER),
    ),
    Operation(
        "append of large values",
        with_large_values,
        appending("more", "own", "user:", large_state=True),
        (["one", "values"], ONE | {"own_key": VALUES, "user:key": VALUES}),
        (["one", "values", "more"], ONE | {"own_key": MORE, "user:key": MORE}),
    ),
    Operation(
        "purge of a user with large values",
        with_large_values,
        purge_user,
        (["one", "values"], ONE | {"own_key": VALUES, "user:key": VALUES}),
        None,
    ),
    Operation(
        "iteration",
        with_deltas,
        iterating("one", "two"),
        (["one", "two"], TWO),
        (["one", "two"], TWO),
    ),
    Operation(
        "create with large values",
        nothing,
        creating("first", own=VALUES, **{"user:u": MORE}),
        None,
        ([], {"born": "first", "own": VALUES, "user:u": MORE}),
        again=AlreadyExistsError,
    ),
    Operation(
        "fork",
        with_everything,
        forking(),
        None,
        (EVERYTHING, TWO | {"own_key": VALUES}),
        where=FORK,
        uploads=("large", "values"),
        again=AlreadyExistsError,
    ),
    Operation(
        "fork at a point",
        with_everything,
        forking(at=1),
        None,
        (["one"], TWO | {"own_key": "one"}),
        where=FORK,
        again=AlreadyExistsError,
    ),
    Operation(
        "fork onto a purged session",
        with_purged_target,
        forking(),
        None,
        (EVERYTHING, TWO | {"own_key": VALUES}),
        where=FORK,
        uploads=("large", "values"),
        again=AlreadyExistsError,
    ),
    Operation(
        "purge without events",
        created_with_large_values,
        purge,
        ([], {"born": "first", "own": VALUES}),
        None,
    ),
    Operation("rebuild", without_document, repair, None, (EVERYTHING, TWO | {"own_key": VALUES})),
    Operation("repair", late, repair, (["one", "other"], OTHER), (["one", "other"], OTHER)),
]


async def attempt(work: Awaitable[None]) -> str:
    """What the caller is told, in one word."""
    try:
        await work
    except asyncio.CancelledError:
        return "cancelled"
    except Killed:
        return "killed"
    except StateUpdatePendingError:
        return "stored, state follows"
    except (StorageError, *REFUSALS) as error:
        return type(error).__name__
    return "ok"
