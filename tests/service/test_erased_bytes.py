"""Erased content is gone from the embedded emulator's file and from the files beside it."""

from __future__ import annotations

import datetime

import pytest

from cosmosservice import CosmosSessionService
from tests.support.adk import event

WHO = {"app_name": "app", "user_id": "user"}
SECRET = "the-secret-word"


def bytes_of(folder):
    return b"".join(path.read_bytes() for path in folder.iterdir())


@pytest.mark.parametrize("way", ["session", "user", "deleted"])
async def test_no_byte_of_it_is_left(tmp_path, way):
    service = CosmosSessionService.embedded(str(tmp_path / "agent.db"))
    for number in range(5):
        session = await service.create_session(
            **WHO, session_id=str(number), state={"k": SECRET, "user:k": SECRET}
        )
        await service.append_event(session, event(SECRET, delta={"k": SECRET * 3_000}))
    await service.flush()
    assert SECRET.encode() in bytes_of(tmp_path)
    if way == "deleted":
        for number in range(5):
            await service.delete_session(**WHO, session_id=str(number))
        await service.purge_deleted(older_than=datetime.timedelta(0))
        await service.purge_user(**WHO, include_state=True)
    elif way == "session":
        for number in range(5):
            await service.purge_session(**WHO, session_id=str(number))
        await service.purge_user(**WHO, include_state=True)
    else:
        await service.purge_user(**WHO, include_state=True)
    assert SECRET.encode() not in bytes_of(tmp_path)
    await service.close()
