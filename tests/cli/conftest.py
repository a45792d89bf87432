import asyncio
import os
from types import SimpleNamespace

import pytest
from click.testing import CliRunner
from google.adk.events import Event, EventActions
from google.genai import types

from cosmosservice import CosmosSessionService
from cosmosservice.cli import console
from cosmosservice.cli.commands import cli


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """An empty working folder, with COSMOSDB_* pointing to an embedded store in it."""
    monkeypatch.chdir(tmp_path)
    for name in [name for name in os.environ if name.startswith("COSMOSDB_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("COSMOSDB_ENDPOINT", "embedded:store.db")
    monkeypatch.setenv("COLUMNS", "200")
    for each in (console.out, console.err):  # they keep COLUMNS from when they were made
        monkeypatch.setattr(each, "_width", None)
    return tmp_path


@pytest.fixture
def command():
    """Runs `cosmosservice …` and returns exit code, stdout and stderr."""

    def run(*arguments, **options):
        result = CliRunner().invoke(cli, [str(each) for each in arguments], **options)
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        return SimpleNamespace(code=result.exit_code, out=result.stdout, err=result.stderr)

    return run


def said(text, author="user", *, state=None, timestamp=None, **fields):
    when = {} if timestamp is None else {"timestamp": timestamp}
    return Event(
        author=author,
        invocation_id="turn",
        content=types.Content(role="user", parts=[types.Part(text=text)]),
        actions=EventActions(state_delta=state or {}),
        **when,
        **fields,
    )


@pytest.fixture
def conversation():
    """One session of two events in store.db: app shop, user ada, id first."""

    async def make():
        async with CosmosSessionService.embedded("store.db") as service:
            session = await service.create_session(
                app_name="shop", user_id="ada", session_id="first", state={"cart": []}
            )
            await service.append_event(session, said("Tea, please", timestamp=100.0))
            await service.append_event(
                session,
                said(
                    "Here you are",
                    "waiter",
                    state={"cart": ["tea"], "user:name": "Ada", "app:open": True},
                    timestamp=101.5,
                ),
            )

    asyncio.run(make())
