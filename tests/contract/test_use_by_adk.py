"""The ways in which ADK's runner and API server use a session service."""

from __future__ import annotations

import asyncio
import threading

import pytest
from google.adk.agents import LlmAgent, RunConfig
from google.adk.agents.run_config import StreamingMode
from google.adk.runners import Runner
from google.adk.sessions.base_session_service import GetSessionConfig
from google.adk.tools import ToolContext

from tests.support.adk import event, reload, texts
from tests.support.scripted import ScriptedModel, call, user
from tests.support.stores import DURABLE


def roll(sides: int, tool_context: ToolContext) -> int:
    """Rolls a die."""
    tool_context.state["rolled"] = sides
    tool_context.state["user:rolls"] = tool_context.state.get("user:rolls", 0) + 1
    tool_context.state["temp:secret"] = "unkept"
    return sides


def runner_with(service, app: str, *replies) -> Runner:
    agent = LlmAgent(name="dealer", model=ScriptedModel(replies=list(replies)), tools=[roll])
    return Runner(app_name=app, agent=agent, session_service=service)


class Calls:
    """Counts the calls of a service, and remembers their session objects."""

    def __init__(self, service, monkeypatch):
        self.names: list[str] = []
        self.sessions: set[int] = set()
        for name in ("get_session", "append_event", "list_sessions", "create_session", "flush"):
            monkeypatch.setattr(service, name, self._counted(name, getattr(service, name)))

    def _counted(self, name, method):
        async def counted(*args, **kwargs):
            self.names.append(name)
            session = kwargs.get("session", args[0] if args else None)
            if name == "append_event":
                self.sessions.add(id(session))
            return await method(*args, **kwargs)

        return counted


async def test_a_turn_with_a_tool_is_one_get_and_four_appends(service, app, monkeypatch):
    session = await service.create_session(app_name=app, user_id="ann")
    runner = runner_with(service, app, call("roll", sides=6), "You rolled a 6.")
    calls = Calls(service, monkeypatch)
    async for _ in runner.run_async(
        user_id="ann", session_id=session.id, new_message=user("Roll a die.")
    ):
        pass
    assert calls.names == ["get_session", *["append_event"] * 4]
    assert len(calls.sessions) == 1
    await runner.close()
    assert calls.names[-1] == "flush"
    stored = await reload(service, session)
    assert texts(stored)[0] == "Roll a die."
    assert stored.events[1].get_function_calls()[0].args == {"sides": 6}
    assert stored.events[2].get_function_responses()[0].response == {"result": 6}
    assert texts(stored)[3] == "You rolled a 6."
    assert stored.state == {"rolled": 6, "user:rolls": 1}


async def test_a_conversation_goes_on_turn_after_turn(service, app):
    session = await service.create_session(app_name=app, user_id="ann")
    runner = runner_with(service, app, "one", call("roll", sides=6), "two", "three")
    for said in ("a", "b", "c"):
        async for _ in runner.run_async(
            user_id="ann", session_id=session.id, new_message=user(said)
        ):
            pass
    assert texts(await reload(service, session)) == [
        "a",
        "one",
        "b",
        None,
        None,
        "two",
        "c",
        "three",
    ]
    shown = [content.parts[0].text for content in runner.agent.model.prompts[-1]]
    assert shown == ["a", "one", "b", None, None, "two", "c"]


async def test_streamed_pieces_are_shown_but_not_stored(service, app):
    session = await service.create_session(app_name=app, user_id="ann")
    runner = runner_with(service, app, "piece by piece")
    shown = [
        item
        async for item in runner.run_async(
            user_id="ann",
            session_id=session.id,
            new_message=user("hi"),
            run_config=RunConfig(streaming_mode=StreamingMode.SSE),
        )
    ]
    assert sum(bool(item.partial) for item in shown) == 3
    stored = await reload(service, session)
    assert texts(stored) == ["hi", "piece by piece"]
    assert not any(item.partial for item in stored.events)


async def test_a_turn_on_a_truncated_session_is_stored_at_the_end(service, app):
    session = await service.create_session(app_name=app, user_id="ann")
    runner = runner_with(service, app, "one", "two", "three")
    for said in ("a", "b", "c"):
        async for _ in runner.run_async(
            user_id="ann",
            session_id=session.id,
            new_message=user(said),
            run_config=RunConfig(get_session_config=GetSessionConfig(num_recent_events=1)),
        ):
            pass
    assert texts(await reload(service, session)) == ["a", "one", "b", "two", "c", "three"]
    assert len(runner.agent.model.prompts[-1]) == 2


async def test_two_tasks_append_to_one_session_object_at_once(service, app):
    """As in live mode, where different tasks append the model's events and the user's input."""
    session = await service.create_session(app_name=app, user_id="ann")

    async def talk(who: str):
        for n in range(8):
            await service.append_event(
                session, event(f"{who}{n}", delta={who: n, f"user:{who}": n})
            )
            await asyncio.sleep(0)

    await asyncio.gather(talk("a"), talk("b"))
    stored = await reload(service, session)
    assert stored == session
    assert stored.state == {"a": 7, "b": 7, "user:a": 7, "user:b": 7}
    for who in "ab":
        said = [text for text in texts(stored) if text.startswith(who)]
        assert said == [f"{who}{n}" for n in range(8)]


async def test_many_appends_started_together_all_arrive(service, app):
    session = await service.create_session(app_name=app, user_id="ann")
    await asyncio.gather(*(service.append_event(session, event(str(n))) for n in range(12)))
    stored = await reload(service, session)
    assert sorted(texts(stored), key=int) == [str(n) for n in range(12)]
    assert texts(stored) == texts(session)


async def test_the_synchronous_runner_makes_a_new_loop_for_each_turn(service, app):
    session = await service.create_session(app_name=app, user_id="ann")
    runner = runner_with(service, app, call("roll", sides=6), "one", "two", "three")

    def turns():
        for said in ("a", "b", "c"):
            for _ in runner.run(user_id="ann", session_id=session.id, new_message=user(said)):
                pass

    await asyncio.to_thread(turns)
    stored = await reload(service, session)
    assert texts(stored) == ["a", None, None, "one", "b", "two", "c", "three"]
    assert stored.state == {"rolled": 6, "user:rolls": 1}


def test_a_service_made_before_any_loop_works_in_one_loop_per_request(sync_store, app):
    service = sync_store.open()

    async def first():
        return await service.create_session(app_name=app, user_id="ann", session_id="s")

    async def further(n):
        session = await service.get_session(app_name=app, user_id="ann", session_id="s")
        await service.append_event(session, event(str(n), delta={"user:n": n}))
        return session

    asyncio.run(first())
    for n in range(5):
        session = asyncio.run(further(n))
    assert texts(session) == ["0", "1", "2", "3", "4"]
    assert session.state == {"user:n": 4}


def test_one_session_object_may_move_from_loop_to_loop(sync_store, app):
    service = sync_store.open()
    session = asyncio.run(service.create_session(app_name=app, user_id="ann"))
    for n in range(3):
        asyncio.run(service.append_event(session, event(str(n))))
    assert texts(asyncio.run(reload(service, session))) == ["0", "1", "2"]


@pytest.mark.claims(DURABLE)
def test_threads_with_loops_of_their_own_share_a_service(sync_store, app):
    service = sync_store.open()
    errors: list[BaseException] = []

    async def conversation(name: str):
        session = await service.create_session(app_name=app, user_id="ann", session_id=name)
        for n in range(4):
            await service.append_event(session, event(f"{name}{n}", delta={f"user:{name}": n}))

    def work(name: str):
        try:
            asyncio.run(conversation(name))
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(name,)) for name in "abcd"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []

    async def look():
        listed = await service.list_sessions(app_name=app, user_id="ann")
        return [await reload(service, session) for session in listed.sessions]

    found = asyncio.run(look())
    assert sorted(session.id for session in found) == list("abcd")
    for session in found:
        assert texts(session) == [f"{session.id}{n}" for n in range(4)]
        assert session.state == {f"user:{name}": 3 for name in "abcd"}
