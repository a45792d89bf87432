"""Opens the source of a migration by its URI, and finds out what it contains."""

from __future__ import annotations

import contextlib
import logging
import os
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import SplitResult, unquote, urlsplit

import click
from google.adk.sessions.base_session_service import BaseSessionService

from cosmosservice import CosmosArtifactService, CosmosMemoryService, CosmosSessionService
from cosmosservice.account.files import Holds, contents, rows_of
from cosmosservice.account.settings import read_environment
from cosmosservice.cli.artifact_copies import ArtifactFolder, ArtifactSource, CosmosArtifacts
from cosmosservice.cli.console import LOW_PRIORITY, Problem, UsageProblem, settings_of
from cosmosservice.cli.memory_copies import CosmosMemories, MemoryFile, MemorySource
from cosmosservice.errors import ContainerMismatchError, CosmosServiceError

SOURCE_KEY = "COSMOSDB_SOURCE_KEY"
SQL_APPS = "SELECT DISTINCT app_name FROM sessions ORDER BY app_name"


@dataclass(frozen=True)
class Source:
    """What a source contains. None for what it does not have."""

    uri: str
    sessions: BaseSessionService | None = None
    memories: MemorySource | None = None
    artifacts: ArtifactSource | None = None


@contextlib.asynccontextmanager
async def opened(uri: str) -> AsyncIterator[Source]:
    """The source that the URI names: a store of this service, or a service of ADK."""
    parts = urlsplit(uri)
    if parts.scheme == "cosmosdb":
        async with _ours(uri) as source:
            yield source
    elif parts.scheme == "file":
        yield Source(uri, artifacts=ArtifactFolder(_folder(parts)))
    else:
        path = _path(parts) if parts.scheme in ("sqlite", "sqlite+aiosqlite") else ""
        holds = _known(path) if path else None
        service = None if holds == {Holds.MEMORIES} else _adk_service(uri, path, holds)
        memories = MemoryFile(path) if holds and Holds.MEMORIES in holds else None
        try:
            yield Source(uri, service, memories)
        finally:
            close = getattr(service, "close", None)
            if close is not None:
                await close()


@contextlib.asynccontextmanager
async def _ours(uri: str) -> AsyncIterator[Source]:
    settings_of(uri, existing=True)
    key = read_environment().get(SOURCE_KEY) or None
    async with CosmosSessionService(
        uri=uri, credential=key, ensure="verify", client_options=LOW_PRIORITY
    ) as sessions:
        memories = CosmosMemories(CosmosMemoryService(account=sessions.account))
        artifacts = CosmosArtifacts(CosmosArtifactService(account=sessions.account))
        yield Source(
            uri,
            sessions,
            memories if await _is_there(memories) else None,
            artifacts if await _is_there(artifacts) else None,
        )


async def _is_there(part: CosmosMemories | CosmosArtifacts) -> bool:
    """A service that is not used has no container."""
    try:
        await part.look()
    except ContainerMismatchError:
        return False
    return True


def _path(parts: SplitResult) -> str:
    return unquote(parts.path).removeprefix("/")


def _folder(parts: SplitResult) -> Path:
    folder = Path(unquote(parts.path))
    if parts.netloc not in ("", "localhost") or not folder.is_dir():
        raise UsageProblem(
            f"There is no folder {parts.netloc}{folder}. A folder of artifacts is named by its"
            " absolute path: file:///home/ada/agents/.adk/artifacts."
        )
    return folder


def _known(path: str) -> set[Holds]:
    """What can be copied from a file."""
    if not os.path.exists(path):
        raise UsageProblem(f"There is no file {path}.")
    if os.path.isdir(path):
        raise UsageProblem(
            f"{path} is a folder. A folder of artifacts is {Path(path).absolute().as_uri()}."
        )
    holds = contents(path)
    if holds == {Holds.STORE}:
        raise UsageProblem(f"{path} is a store of this service: cosmosdb://embedded/{path}.")
    if not holds:
        raise UsageProblem(
            f"{path} has nothing that can be copied: it is not a file of ADK's"
            " SqliteSessionService, DatabaseSessionService or SqliteMemoryService."
        )
    return holds


def _adk_service(uri: str, path: str, holds: set[Holds] | None) -> BaseSessionService:
    """ADK's session service for the source. For a file, its tables tell which one."""
    scheme = urlsplit(uri).scheme
    if not scheme:
        raise UsageProblem("A source is a URI, such as sqlite:///sessions.db.")
    try:
        if holds is None:
            from google.adk.cli.utils.service_factory import create_session_service_from_options

            return create_session_service_from_options(
                base_dir=os.getcwd(), session_service_uri=uri
            )
        if Holds.SQLITE_SESSIONS in holds:
            from google.adk.sessions.sqlite_session_service import SqliteSessionService

            return SqliteSessionService(path)
        from google.adk.sessions.database_session_service import DatabaseSessionService

        # ADK warns about writing to an old schema and says to migrate, which is being done here.
        logging.getLogger("google_adk.google.adk.sessions").setLevel(logging.ERROR)
        return DatabaseSessionService(f"sqlite+aiosqlite:///{path}")
    except ImportError:
        driver = "aiosqlite" if holds else "asyncpg"
        raise UsageProblem(
            f"Sessions of ADK's DatabaseSessionService need packages that are not installed:"
            f" pip install 'google-adk[db]' 'sqlalchemy[asyncio]' {driver}."
        ) from None
    except (ValueError, RuntimeError) as error:
        # Only the first line: the rest may quote the URI with its password.
        reason = str(error).splitlines()[0].replace(uri, f"{scheme}://…")
        hint = "" if "+" in scheme else " Name an async driver, as in postgresql+asyncpg://."
        raise UsageProblem(f"ADK cannot open this source: {reason}{hint}") from None


@contextlib.contextmanager
def reading(uri: str) -> Iterator[None]:
    """Turns errors of a database driver into one line, without the URI's password."""
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
    """ADK's services cannot list their apps, so the database is asked."""
    if isinstance(service, CosmosSessionService):
        return await service.list_apps()
    engine: Any = getattr(service, "db_engine", None)
    if engine is not None:
        from sqlalchemy import text

        async with engine.connect() as connection:
            return list((await connection.execute(text(SQL_APPS))).scalars())
    parts = urlsplit(uri)
    if parts.scheme.startswith("sqlite"):
        return [name for (name,) in rows_of(_path(parts), SQL_APPS)]
    raise UsageProblem("This source cannot list its apps: name them with --app.")
