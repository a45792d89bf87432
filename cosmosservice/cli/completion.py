"""The ids that a shell offers for a session."""

from __future__ import annotations

import contextlib
from typing import Final

import click

from cosmosservice.cli.console import run

_MOST: Final = 200  # of the latest sessions


def complete_session(
    context: click.Context, parameter: click.Parameter, incomplete: str
) -> list[str]:
    """The ids of the latest sessions. None if they cannot be read."""
    with contextlib.suppress(Exception):
        chosen = {name: context.params.get(name) for name in ("uri", "app_name", "user_id")}
        return run(_session_ids(**chosen, beginning=incomplete))
    return []


async def _session_ids(
    uri: str | None, app_name: str | None, user_id: str | None, beginning: str
) -> list[str]:
    from cosmosservice.cli.session_work import service_of  # imports ADK

    async with service_of(uri) as service:
        active, _ = await service.list_latest(app_name=app_name, user_id=user_id, limit=_MOST)
        deleted, _ = await service.list_latest(
            app_name=app_name, user_id=user_id, limit=_MOST, deleted=True
        )
    found = (str(each["session_id"]) for each in (*active, *deleted))
    return [each for each in dict.fromkeys(found) if each.startswith(beginning)]
