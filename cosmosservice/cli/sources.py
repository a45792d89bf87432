"""Opens any session service that a URI names, and finds out which apps it holds."""

from __future__ import annotations

import contextlib
import os
import sqlite3
from collections.abc import AsyncIterator, Iterator
from typing import Any
from urllib.parse import unquote, urlsplit

import click
from google.adk.sessions.base_session_service import BaseSessionService

from cosmosservice import CosmosSessionService
from cosmosservice.account.settings import read_environment
from cosmosservice.cli.console import Problem, UsageProblem, settings_of
from cosmosservice.errors import CosmosServiceError

SOURCE_KEY = "COSMOSDB_SOURCE_KEY"
SQL_APPS = "SELECT DISTINCT app_name FROM sessions ORDER BY app_name"


@contextlib.asynccontextmanager
async def opened(uri: str) -> AsyncIterator[BaseSessionService]:
    """The service that the URI names: ours, or one that ADK's own commands would open."""
    if uri.startswith("cosmosdb:"):
        settings_of(uri, existing=True)
        key = read_environment().get(SOURCE_KEY) or None
        async with CosmosSessionService(uri=uri, credential=key, ensure="verify") as ours:
            yield ours
        return
    service = _adk_service(uri)
    try:
        yield service
    finally:
        close = getattr(service, "close", None)
        if close is not None:
            await close()


def _adk_service(uri: str) -> BaseSessionService:
    from google.adk.cli.utils.service_factory import create_session_service_from_options

    scheme = urlsplit(uri).scheme
    if not scheme:
        raise UsageProblem("A source is a URI, such as sqlite:///sessions.db.")
    if scheme == "sqlite" and not os.path.exists(_sqlite_path(uri)):
        raise UsageProblem(f"There is no file {_sqlite_path(uri)}.")
    try:
        return create_session_service_from_options(base_dir=os.getcwd(), session_service_uri=uri)
    except ImportError as missing:
        reason = f"{scheme}:// needs {missing.name or 'a package'}, which is not installed: "
        raise UsageProblem(reason + "pip install 'google-adk[db]' asyncpg.") from None
    except (ValueError, RuntimeError) as error:
        # Only the first line: what follows may quote the URI with its password.
        reason = str(error).splitlines()[0].replace(uri, f"{scheme}://…")
        hint = "" if "+" in scheme else " Name an async driver, as in postgresql+asyncpg://."
        raise UsageProblem(f"ADK cannot open this source: {reason}{hint}") from None


@contextlib.contextmanager
def reading(uri: str) -> Iterator[None]:
    """Turns what a database driver raises into one line, without the URI's password."""
    try:
        yield
        return
    except (CosmosServiceError, click.ClickException, AssertionError):
        raise
    except Exception as error:
        reason = (str(error).splitlines() or [""])[0]
        problem = f"{type(error).__name__}: {reason}".removesuffix(": ")
    password = urlsplit(uri).password
    if password:
        problem = problem.replace(password, "…").replace(unquote(password), "…")
    raise Problem(f"The source cannot be read: {problem}")


async def apps_of(service: BaseSessionService, uri: str) -> list[str]:
    """ADK's services cannot be asked for their apps; their databases can."""
    if isinstance(service, CosmosSessionService):
        return await service.list_apps()
    engine: Any = getattr(service, "db_engine", None)
    if engine is not None:
        from sqlalchemy import text  # type: ignore[import-not-found,unused-ignore]

        async with engine.connect() as connection:
            return list((await connection.execute(text(SQL_APPS))).scalars())
    if urlsplit(uri).scheme == "sqlite":
        with contextlib.closing(sqlite3.connect(_sqlite_path(uri))) as database:
            return [name for (name,) in database.execute(SQL_APPS)]
    raise UsageProblem("This source cannot list its apps: name them with --app.")


def _sqlite_path(uri: str) -> str:
    return unquote(urlsplit(uri).path).removeprefix("/")
