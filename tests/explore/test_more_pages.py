"""The pages of a user, plots, memories and artifacts, and the command."""

from __future__ import annotations

import asyncio
import datetime
import re
import signal
import subprocess
import sys
import time
import urllib.request

import pytest
from click.testing import CliRunner
from google.adk.events import Event, EventActions
from google.genai import types

from cosmosservice import CosmosAccount, CosmosSessionService
from cosmosservice.cli.commands import cli
from cosmosservice.explore import plots
from cosmosservice.explore.dependants import Dependants
from cosmosservice.explore.files import saved_as
from cosmosservice.explore.measures import measures
from tests.explore.support import names, read
from tests.support.adk import event

USER = {"app": "shop", "user": "ada"}


async def make(service, **fields):
    session = await service.create_session(
        app_name="shop", user_id="ada", session_id="first", state={"user:name": "Ada"}
    )
    await service.append_event(session, event("Tea, please", **fields))
    await service.flush()
    return session


async def test_a_user_has_state_and_sessions(visit):
    visitor = await visit()
    await make(visitor.service)
    text = read(await visitor.get("/user", **USER))
    assert 'State name "Ada"' in text
    assert "first" in text
    assert "Memories" not in text
    assert "Artifacts" not in text


async def test_memories_are_searched_as_the_agent_would(visit):
    visitor = await visit(dependants=True)
    await visitor.dependants.memory.add_session_to_memory(await make(visitor.service))
    assert "Search as the agent would" in read(await visitor.get("/user", **USER))
    page = await visitor.get("/user", **USER, memory="teas")
    assert "<mark>Tea</mark>, please" in page
    assert "has teas" in read(page)
    assert "Nothing was found." in read(await visitor.get("/user", **USER, memory="coffee"))


async def test_artifacts_have_versions(visit):
    visitor = await visit(dependants=True)
    artifacts = visitor.dependants.artifacts
    session = await make(visitor.service)
    where = {"app_name": "shop", "user_id": "ada", "session_id": "first", "filename": "bill.txt"}
    for text in ("old bill", "new bill"):
        await artifacts.save_artifact(**where, artifact=types.Part(text=text))
    listed = read(await visitor.get("/session", **names(session)))
    assert "Artifacts bill.txt text/plain, 8 bytes versions 1 0" in listed
    listed = read(await visitor.get("/user", **USER))
    assert "bill.txt text/plain, 8 bytes, in first versions 1 0" in listed
    assert "new bill" in await visitor.get("/artifact", **names(session), name="bill.txt")
    old = await visitor.get("/artifact", **names(session), name="bill.txt", version=0)
    assert "old bill" in old


async def test_the_newest_memories_are_shown_before_a_search(visit):
    visitor = await visit(dependants=True)
    assert "None yet." in read(await visitor.get("/user", **USER))
    session = await make(visitor.service)
    await visitor.service.append_event(session, event("Coffee, rather"))
    await visitor.dependants.memory.add_session_to_memory(session)
    text = read(await visitor.get("/user", **USER))
    assert text.index("The newest.") < text.index("Coffee, rather") < text.rindex("Tea, please")


async def test_an_image_among_the_artifacts_is_shown_and_anything_else_is_saved(visit):
    visitor = await visit(dependants=True)
    session = await make(visitor.service)
    where = {"app_name": "shop", "user_id": "ada", "session_id": "first"}
    script = b"<script>alert(1)</script>"
    for name, kind, data in (
        ("cup.png", "image/png", b"\x89PNG"),
        ("page.png", "text/html", script),  # its name does not match its content
        ("large.bin", "application/octet-stream", bytes(3_000_000)),
    ):
        part = types.Part(inline_data=types.Blob(mime_type=kind, data=data))
        await visitor.dependants.artifacts.save_artifact(**where, filename=name, artifact=part)
        address = f"{visitor.origin}/artifact/content"
        asked = names(session) | {"name": name, "version": "0"}
        async with visitor.http.get(address, params=asked) as answer:
            assert await answer.read() == data
            shown = kind if kind == "image/png" else "application/octet-stream"
            assert answer.content_type == shown
            saved = answer.headers.get("Content-Disposition")
            named = f"attachment; filename*=UTF-8''{name}"
            assert saved == (None if kind == "image/png" else named)
            assert answer.headers["X-Content-Type-Options"] == "nosniff"
    page = await visitor.get("/artifact", **names(session), name="cup.png")
    assert re.search(r'<img loading="lazy" src="/artifact/content\?[^"]*name=cup.png', page)
    page = await visitor.get("/artifact", **names(session), name="large.bin")
    assert "application/octet-stream, 3,000,000 bytes" in read(page)
    status, _ = await visitor.answer("/artifact/content", params=names(session) | {"name": "no"})
    assert status == 404


async def test_artifacts_are_shown_where_the_conversation_names_them(visit):
    visitor = await visit(dependants=True)
    session = await make(visitor.service)
    actions = EventActions(artifact_delta={"cup.png": 3, "bill.txt": 0})
    await visitor.service.append_event(session, Event(author="waiter", actions=actions))
    page = await visitor.get("/session", **names(session))
    assert re.search(r'src="/artifact/content\?[^"]*name=cup.png&amp;version=3"', page)
    assert re.search(r'data-load="/artifact\?[^"]*name=bill.txt&amp;version=0"', page)


async def test_plots_show_turns_tokens_sizes_and_request_units(visit):
    visitor = await visit()
    session = await make(visitor.service, timestamp=time.time())
    used = types.GenerateContentResponseUsageMetadata(
        prompt_token_count=1200, candidates_token_count=34
    )
    answer = Event(author="waiter", usage_metadata=used, timestamp=time.time())
    await visitor.service.append_event(session, answer)
    key = {"app_name": session.app_name, "user_id": session.user_id}
    await visitor.service.fork_session(**key, session_id=session.id)  # counts in its source
    await visitor.service.flush()
    page = await visitor.get("/activity")
    today = str(datetime.date.today())
    assert page.count('<svg viewBox="0 -10 ') == 2  # no turn took time, and none failed
    assert f"<title>{today}: 1</title>" in page
    assert f"<title>{today}: 1,200 in</title>" in page
    assert f"<title>{today}: 34 out</title>" in page
    assert f'aria-label="Tokens a day: 1,234 in 14 days, most on {today}: 1,234"' in page
    assert "<title>0 to 5: 2</title>" in page
    assert re.search(r"<title>append_event: \d", page)
    assert "style=" not in page


async def test_a_store_without_their_containers_has_no_memories_and_artifacts(emulator):
    async with CosmosAccount.embedded(emulator, ensure="create") as account:
        await CosmosSessionService(account=account).list_apps()
    async with CosmosAccount.embedded(emulator, ensure="verify") as account:
        assert await Dependants.on(account) == Dependants(None, None)
    async with CosmosAccount.embedded(emulator, ensure="create") as account:
        found = await Dependants.on(account)
        assert found.memory is not None
        assert found.artifacts is not None


@pytest.mark.parametrize(
    ("name", "saved"),
    [
        ("bill.txt", "bill.txt"),
        ("user:bill.txt", "bill.txt"),
        ("../../.profile", "profile"),
        ("a\\b\\..", "artifact"),
        ("x\u202egnp.exe", "x_u202egnp.exe"),
        ('a"\r\nSet-Cookie: b', "a%22%0ASet-Cookie%3A%20b"),
        ("über.txt", "%C3%BCber.txt"),
    ],
)
def test_a_saved_artifact_has_a_harmless_name(name, saved):
    assert saved_as(name) == f"attachment; filename*=UTF-8''{saved}"


def test_sizes_are_counted_in_ranges():
    found = plots.sizes([0, 5, 6, 1_000, 1_001, 50_000])
    assert found["0 to 5"] == 2
    assert found["6 to 10"] == 1
    assert found["501 to 1,000"] == 1
    assert found["more than 1,000"] == 2
    assert sum(found.values()) == 6


def test_invalid_times_and_numbers_are_left_out_of_the_days():
    today = datetime.date(2026, 1, 31)
    events = [{"timestamp": "soon"}, {}, {"timestamp": 1e300}, {"timestamp": float("nan")}]
    found = measures(events, today, 14)
    assert len(found.days) == 14
    assert list(found.days)[-1] == "2026-01-31"
    assert not any(day.turns or sum(day.tokens) for day in found.days.values())
    assert found.agents == {}


def test_latency_and_errors_are_by_day_by_agent_and_by_tool():
    noon = datetime.datetime(2026, 1, 31, 12).astimezone().timestamp()
    used = {"prompt_token_count": 100, "candidates_token_count": 10, "thoughts_token_count": 5}

    def step(author, seconds, **fields):
        named = {"app_name": "shop", "session_id": "s", "invocation_id": "turn"}
        return named | {"author": author, "timestamp": noon + seconds} | fields

    found = measures(
        [
            step("waiter", 9, usage_metadata=used),
            step("waiter", 6, tools=[{"name": "fetch", "failed": True}]),
            step("waiter", 1, usage_metadata=used),
            step("user", 0),
            step("cook", 10, error_code="OVERLOADED"),
        ],
        datetime.date(2026, 1, 31),
        14,
    )
    day = found.days["2026-01-31"]
    assert (day.turns, day.tokens, day.seconds) == (1, (200, 30), [10])
    assert (day.errors, day.failures) == (1, 1)
    waiter, fetch = found.agents["waiter"], found.tools["fetch"]
    assert (waiter.turns, waiter.p50, waiter.p95, waiter.failures) == (1, 1, 3, 1)
    assert (fetch.turns, fetch.p50, fetch.failures) == (1, 5, 1)
    assert found.agents["cook"].errors == 1


async def test_the_usage_of_apps_users_and_sessions_is_shown(visit):
    visitor = await visit()
    session = await make(visitor.service, timestamp=time.time())
    used = types.GenerateContentResponseUsageMetadata(
        prompt_token_count=1200, candidates_token_count=34
    )
    await visitor.service.append_event(session, Event(author="waiter", usage_metadata=used))
    await visitor.get("/")
    assert "shop 1 1 1,200 0 34 0 11" in read(await visitor.get("/usage"))
    page = read(await visitor.get("/usage", app="shop", days=7))
    assert "By user" in page
    assert "ada 1 1 1,200 0 34 0 11" in page
    assert "1 turn, 1,200 tokens in, 34 out" in read(
        await visitor.get("/user", app="shop", user="ada")
    )
    assert "1 turn, 1,200 tokens in, 34 out" in read(
        await visitor.get("/session", **names(session))
    )


def test_a_store_that_is_not_there_is_said_so(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(
        cli, ["explore", "--no-browser", "--uri", "cosmosdb://embedded/store.db"]
    )
    assert done.exit_code == 2
    assert "There is no file" in done.stderr


def test_the_command_prints_an_address_and_ends_with_ctrl_c(tmp_path):
    async def store():
        async with CosmosSessionService.embedded(str(tmp_path / "store.db")) as service:
            await make(service)

    asyncio.run(store())
    uri = f"cosmosdb://embedded/{tmp_path}/store.db"
    process = subprocess.Popen(
        [sys.executable, "-m", "cosmosservice.cli", "explore", "--no-browser", "--uri", uri],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        # A shell that runs the tests in the background has them ignore Ctrl-C.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    try:
        address = process.stdout.readline().strip()
        with urllib.request.urlopen(address) as response:
            assert response.status == 200
    finally:
        process.send_signal(signal.SIGINT)
        _, printed = process.communicate(timeout=60)
    assert process.returncode == 0
    assert printed.strip() == "Ctrl-C ends it."
