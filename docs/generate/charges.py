"""What operations cost, measured on the embedded emulator."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Callable
from functools import cache
from random import Random
from typing import NamedTuple

from google.adk.events import Event, EventActions
from google.adk.events.event_actions import EventCompaction
from google.adk.sessions.base_session_service import GetSessionConfig
from google.genai import types

from cosmos_emulator import Emulator
from cosmosservice import CosmosArtifactService, CosmosSessionService, RequestCharge
from cosmosservice.errors import StaleSessionError
from cosmosservice.hosting.operation import Unbounded
from cosmosservice.sessions.store.keys import SessionKey
from docs.generate.pages import table

NAMES = {"app_name": "shop", "user_id": "ada"}
LONG = 500


class Cost(NamedTuple):
    """Of one operation."""

    operation: str
    requests: int
    request_units: float


def charges() -> str:
    rows = [
        [cost.operation, f"{cost.requests:,}", f"{cost.request_units:,.1f}"] for cost in measured()
    ]
    return table(["operation", "requests", "RU"], rows)


@cache
def measured() -> list[Cost]:
    return asyncio.run(_measure())


class _Meter:
    """Sums up what is spent between two looks."""

    def __init__(self) -> None:
        self.costs: list[Cost] = []
        self._spent: list[RequestCharge] = []

    def __call__(self, charge: RequestCharge) -> None:
        if charge.operation != "connect":
            self._spent.append(charge)

    def reset(self) -> None:
        self._spent.clear()

    def note(self, operation: str) -> None:
        units = sum(charge.request_units for charge in self._spent)
        self.costs.append(Cost(operation, len(self._spent), units))
        self.reset()


def _event(**delta: str) -> Event:
    """1 KB as JSON."""
    return Event(
        author="waiter",
        invocation_id="turn",
        content=types.Content(role="model", parts=[types.Part(text="tea " * 200)]),
        actions=EventActions(state_delta=delta),
    )


async def _measure() -> list[Cost]:
    meter = _Meter()
    with Emulator() as emulator:

        def opened(since_compaction: bool = False) -> CosmosSessionService:
            return CosmosSessionService.embedded(
                emulator, on_request_charge=meter, since_compaction=since_compaction
            )

        async with opened() as service:
            await _write(service, meter)
            await _fill(service, meter)
        await _read(opened, meter)
        async with opened() as service:
            await _watch(service, meter)
            await _fork(service, meter)
            await _end(service, meter)
    return meter.costs


async def _write(service: CosmosSessionService, meter: _Meter) -> None:
    session = await service.create_session(**NAMES, session_id="first", state={"cart": ["tea"]})
    meter.note("create a session")
    await service.append_event(session, _event())
    meter.note("append an event")
    await service.append_event(session, _event(cart="tea"))
    meter.note("append an event that changes the session's state")
    await service.flush()
    meter.note("the session document that follows these appends, written once for all of them")
    await service.append_event(session, Event(author="a", actions=_delta("user:name", "app:open")))
    meter.reset()  # the state documents are there from now on
    await service.append_event(session, _event(**{"user:name": "Ada"}))
    meter.note("append an event that changes `user:` state")
    await service.append_event(session, _event(**{"app:open": "no"}))
    meter.note("append an event that changes `app:` state")
    stale = await service.get_session(**NAMES, session_id="first")
    assert stale is not None
    await service.append_event(session, _event())
    meter.reset()
    try:
        await service.append_event(stale, _event())
    except StaleSessionError:
        meter.note("an append that is refused (StaleSessionError)")
    await service.flush()  # it may take longer than a session document waits
    meter.reset()
    await service.append_event(session, _large())
    meter.note("append an event of 3 MB, of which 0.4 MB are left when compressed")
    values = {f"page {number}": Random(number).randbytes(180_000).hex() for number in range(5)}
    session = await service.create_session(app_name="large", user_id="ada", state=values)
    await service.append_event(session, _event(cart="tea"))
    await service.flush()
    meter.reset()
    await service.append_event(session, _event(cart="cake"))
    await service.flush()
    meter.note("append a small change beside 1.8 MB of other state, and the session document")
    values = {f"user:{name}": value for name, value in values.items()}
    session = await service.create_session(app_name="shared", user_id="ada", state=values)
    await service.append_event(session, _event(**{"user:cart": "tea"}))
    await service.flush()
    meter.reset()
    await service.append_event(session, _event(**{"user:cart": "cake"}))
    await service.flush()
    meter.note("… beside 1.8 MB of other `user:` state")


def _delta(*keys: str) -> EventActions:
    return EventActions(state_delta=dict.fromkeys(keys, ""))


def _large() -> Event:
    """Half a megabyte that does not compress well, and the rest that does."""
    noise = "".join(Random(1).choices("abcdefghijklmnopqrstuvwxyz", k=600_000))
    return Event(
        author="user",
        content=types.Content(role="user", parts=[types.Part(text=noise + " " * 2_400_000)]),
    )


async def _fill(service: CosmosSessionService, meter: _Meter) -> None:
    for number in range(60):
        await service.create_session(**NAMES, session_id=f"other {number}")
    ten = await service.create_session(**NAMES, session_id="ten")
    hundred = await service.create_session(**NAMES, session_id="hundred")
    long = await service.create_session(**NAMES, session_id="long")
    for number in range(LONG):
        await service.append_event(long, _event())
        if number < 100:
            await service.append_event(hundred, _event())
        if number < 10:
            await service.append_event(ten, _event())
    await _summarised(service)
    await service.flush()
    meter.reset()


async def _summarised(service: CosmosSessionService) -> None:
    """A long session of turns of one event, of which the last is not in its summary."""
    session = await service.create_session(**NAMES, session_id="summarised")
    for number in range(LONG):
        said = _event()
        said.author, said.invocation_id, said.timestamp = "user", f"turn {number}", float(number)
        await service.append_event(session, said)
    content = types.Content(role="model", parts=[types.Part(text="tea " * 200)])
    covered = EventCompaction(
        start_timestamp=0.0, end_timestamp=LONG - 2.0, compacted_content=content
    )
    await service.append_event(
        session, Event(author="user", actions=EventActions(compaction=covered))
    )


async def _read(opened: Callable[..., CosmosSessionService], meter: _Meter) -> None:
    for session_id, count in (("ten", 10), ("hundred", 100), ("long", LONG)):
        async with opened() as service:
            await service.get_session(**NAMES, session_id=session_id)
            meter.note(f"get a session of {count:,} events that this process has not seen")
    async with opened(since_compaction=True) as service:
        await service.get_session(**NAMES, session_id="summarised")
        meter.note(
            f"get one of {LONG:,} summarised events with `since_compaction`, not seen before"
        )
    async with opened() as service:
        ten = GetSessionConfig(num_recent_events=10)
        await service.get_session(**NAMES, session_id="long", config=ten)
        meter.note(f"get the last 10 of {LONG:,} events, not seen before")
        await service.get_session(**NAMES, session_id="long")
        meter.reset()
        await service.get_session(**NAMES, session_id="long")
        meter.note("get a session that this process has seen, of any length")
        await service.get_session(**NAMES, session_id="none")
        meter.note("get a session that is not there")
        await service.list_sessions_page(**NAMES, limit=50)
        meter.note("list 50 of a user's sessions")
        await service.list_sessions_page(**NAMES, limit=50, newest_first=True)
        meter.note("list the newest 50 of them")
        await service.count_sessions(**NAMES)
        meter.note("count a user's sessions")
        await service.list_sessions_page(app_name="shop", limit=50)
        meter.note("list 50 of an app's sessions")


async def _watch(service: CosmosSessionService, meter: _Meter) -> None:
    watch = service.watch(app_name="shop")
    await watch.ready()
    meter.reset()
    since = watch.continuation or ""
    await _reported(service, since)
    meter.note("watch an app: a look that finds nothing new")
    session = await service.create_session(**NAMES, session_id="watched")
    for _ in range(10):
        await service.append_event(session, _event())
    await service.flush()
    meter.reset()
    assert await _reported(service, since) == 10
    meter.note("… a look that finds 10 events, and one that finds no more")


async def _reported(service: CosmosSessionService, since: str) -> int:
    watch = service.watch(app_name="shop", since=since, follow=False)
    return len([change async for change in watch])


async def _fork(service: CosmosSessionService, meter: _Meter) -> None:
    await service.get_session_at(**NAMES, session_id="hundred", at=50)
    meter.note("get a session of 100 events as it was at a point")
    await service.fork_session(**NAMES, session_id="hundred")
    meter.note("fork a session of 100 events")
    artifacts = CosmosArtifactService(account=service.account)
    saved = {"session_id": "ten", "filename": "f", "artifact": types.Part(text="tea " * 250)}
    await artifacts.save_artifact(**NAMES, **saved)
    meter.reset()
    await service.fork_session(**NAMES, session_id="ten")
    meter.note("fork a session of 10 events with an artifact of 1 KB")
    lost = SessionKey.of(**NAMES, session_id="hundred")
    await service.in_store(
        Unbounded("remove"), lambda store: store.sessions.delete(lost.document_id, "ada")
    )
    meter.reset()
    await service.repair_session(**NAMES, session_id="hundred")
    meter.note("rebuild a lost session document from 100 events (`repair_session`)")
    del artifacts
    gc.collect()  # a service that still exists erases with the sessions below


async def _end(service: CosmosSessionService, meter: _Meter) -> None:
    await service.delete_session(**NAMES, session_id="ten")
    meter.note("delete a session")
    await service.restore_session(**NAMES, session_id="ten")
    meter.note("restore it")
    await service.delete_session(**NAMES, session_id="hundred")
    meter.reset()
    await service.purge_session(**NAMES, session_id="hundred")
    meter.note("purge a deleted session of 100 events")
