"""The page as files, without a server."""

from __future__ import annotations

import asyncio
import html
import re

import pytest
from click.testing import CliRunner
from google.adk.events import Event, EventActions
from google.genai import types

from cosmosservice import CosmosAccount, CosmosSessionService
from cosmosservice.cli.commands import cli
from cosmosservice.explore.dependants import Dependants


async def fill(path):
    async with CosmosAccount.embedded(path) as account:
        service, dependants = CosmosSessionService(account=account), await Dependants.on(account)
        for user, session_id in (("ada", "first"), ("bob", "second")):
            who = {"app_name": "shop", "user_id": user, "session_id": session_id}
            session = await service.create_session(**who, state={"n": 0})
            page = types.Part.from_bytes(data=b"<script>", mime_type="text/html")
            await dependants.artifacts.save_artifact(**who, filename="page.html", artifact=page)
            for number in range(1, 4):
                said = types.Content(role="model", parts=[types.Part(text=f"{user} {number}")])
                actions = EventActions(state_delta={"n": number}, artifact_delta={"page.html": 0})
                event = Event(author="waiter", content=said, actions=actions)
                await service.append_event(session, event)
            await service.fork_session(**who, at=2, new_session_id=f"fork of {session_id}")


@pytest.fixture
def export(tmp_path):
    store = tmp_path / "store.db"
    asyncio.run(fill(store))

    def run(*options, **more):
        uri = f"cosmosdb://embedded/{store}"
        folder = str(tmp_path / "out")
        return CliRunner().invoke(
            cli, ["explore", "--uri", uri, "--export", folder, *options], **more
        )

    return run


def pages(folder):
    return {path.name: path.read_text("utf-8") for path in folder.glob("*.html")}


def test_every_link_of_an_export_leads_to_a_file_or_an_anchor(export, tmp_path):
    done = export("--yes")
    assert done.exit_code == 0, done.output
    found = pages(tmp_path / "out")
    assert {"index.html", "activity.html", "usage.html"} <= found.keys()
    for name, text in found.items():
        for link in re.findall(r' (?:href|src)="([^"]*)"', text):
            target = html.unescape(link).partition("#")[0]
            if target and not target.startswith("data:"):
                assert (tmp_path / "out" / target).is_file(), (name, link)
        assert "Content-Security-Policy" in text
        assert '<form class="search' not in text
    (first,) = (
        text for text in found.values() if "<bdi>Untitled</bdi></h1>" in text and "ada 3" in text
    )
    assert first.count('<template id="state-') == 3
    assert 'id="state-2"' in first


def test_an_artifact_of_an_export_is_not_run_by_a_browser(export, tmp_path):
    export("--yes")
    assert {path.suffix for path in (tmp_path / "out" / "files").iterdir()} == {".bin"}


def test_what_an_export_contains_is_shown_before_it_is_written(export, tmp_path):
    done = export(input="n\n")
    assert "4 sessions with 10 events:" in done.output
    assert "shop / bob / second" in done.output
    assert "memories and artifacts of 2 users" in done.output
    assert "whoever has the files can read all of it" in done.output
    assert done.exit_code != 0
    assert not (tmp_path / "out").exists()


def test_an_export_of_one_session_has_nothing_of_others(export, tmp_path):
    done = export("--session", "first", "--yes")
    assert "1 session with 3 events:" in done.output
    found = pages(tmp_path / "out")
    assert not {"activity.html", "usage.html"} & found.keys()
    assert not [name for name, text in found.items() if "bob" in text or "second" in text]


def test_a_folder_with_files_is_left_alone(export, tmp_path):
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "mine.txt").write_text("mine")
    done = export("--yes")
    assert (done.exit_code, "is not empty" in done.output) == (2, True)
    assert export("--session", "none", "--yes").exit_code != 0
