"""Any sequence of calls has the same outcome on our service as on ADK's in-memory service.

Two of our services on one store take turns, like two processes. They append only to sessions that
they have just read. test_conflicts covers stale sessions.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import Any

from google.adk.sessions import BaseSessionService, InMemorySessionService, Session
from google.adk.sessions.base_session_service import GetSessionConfig
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cosmos_emulator import Emulator
from cosmosservice import CosmosSessionService
from tests.support.adk import event

APP = "app"
# Sessions without events have the clock's time. Events have these times, before and after it.
CLOCK = 10_000.0

users = st.sampled_from(["ann", "bob"])
ids = st.sampled_from(["s", " s ", "t"])
keys = st.sampled_from(["k", "l", "user:k", "user:l", "app:k", "temp:k", "", "a.b", "$k"])
values = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(allow_nan=False),
    st.text(max_size=5),
    st.lists(st.integers(), max_size=2),
    st.dictionaries(st.text(max_size=3), st.none() | st.integers(), max_size=2),
)
states = st.dictionaries(keys, values, max_size=4)
times = st.integers(min_value=0, max_value=20).map(float)


@dataclass
class Call:
    """One call, and which of our two services it goes to."""

    name: str
    user: str
    id: str
    process: int
    state: dict[str, Any] = field(default_factory=dict)
    events: list[tuple[float, dict[str, Any], bool]] = field(default_factory=list)
    recent: int | None = None


calls = st.builds(
    Call,
    name=st.sampled_from(["create", "append", "append", "append", "get", "list", "delete", "user"]),
    user=users,
    id=ids,
    process=st.sampled_from([0, 1]),
    state=states,
    events=st.lists(st.tuples(times, states, st.sampled_from([False, False, True])), max_size=3),
    recent=st.none() | st.integers(min_value=0, max_value=4),
)


async def outcome(service: BaseSessionService, call: Call, number: int) -> Any:
    """What a caller sees of the call."""
    who = {"app_name": APP, "user_id": call.user}
    try:
        match call.name:
            case "create":
                state = dict(call.state)
                return seen(await service.create_session(**who, session_id=call.id, state=state))
            case "append":
                session = await service.get_session(**who, session_id=call.id)
                if session is None:
                    return None
                for n, (at, delta, partial) in enumerate(call.events):
                    said = event(
                        f"{number}.{n}",
                        id=f"{number}.{n}",
                        timestamp=at,
                        delta=dict(delta),
                        partial=partial,
                    )
                    await service.append_event(session, said)
                return seen(session)
            case "get":
                # Not by time: ADK's own services differ when times run backwards.
                config = GetSessionConfig(num_recent_events=call.recent)
                found = await service.get_session(**who, session_id=call.id, config=config)
                return found and seen(found)
            case "list":
                user = None if call.recent is None else call.user
                listed = await service.list_sessions(app_name=APP, user_id=user)
                return [seen(session) for session in listed.sessions]
            case "delete":
                return await service.delete_session(**who, session_id=call.id)
            case "user":
                return await service.get_user_state(**who)
    except Exception as error:
        return type(error), str(error)


def seen(session: Session) -> tuple:
    at = session.last_update_time if session.last_update_time < CLOCK else "now"
    return session.user_id, session.id, repr(sorted(session.state.items())), at, session.events


@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.lists(calls, max_size=14))
def test_any_history_of_calls_has_the_same_outcome(history):
    async def play() -> None:
        reference = InMemorySessionService()
        with Emulator() as emulator:
            ours = [CosmosSessionService.embedded(emulator) for _ in range(2)]
            for number, call in enumerate(history):
                expected = await outcome(reference, call, number)
                service = ours[call.process]
                assert await outcome(service, call, number) == expected, call
                # The list follows the log. Another process sees a change once this one has flushed.
                await service.flush()
            for service in ours:
                await service.close()

    asyncio.run(play())
