"""No search sees the memories of another user or another app, whatever their names are."""

from __future__ import annotations

import itertools

import pytest

from tests.memory.support import found_texts, session
from tests.support.stores import DURABLE

NAMES = [
    "a", "b", "a.b", "a~2Eb", "A", "ä", "a\u0308", "a/b", "..", ".", "#", "?", "%2F", "'", '"',
    "\\", "a b", " a", "=", "=a", "null", "\u202e", "漢", "🦊", "a" * 1500, "a" * 1501, "ä" * 400,
]  # fmt: skip


@pytest.mark.claims(DURABLE)
async def test_two_tenants_with_any_names_never_meet(service, app):
    tenants = [(f"{app}{one}", two) for one, two in itertools.product(NAMES[:6], NAMES)]
    tenants += [(f"{app}.x", "y"), (app, "x.y"), (f"{app}.x.y", ""), (app, "")]
    for number, (name, user) in enumerate(tenants):
        await service.add_session_to_memory(
            session(f"secret number{number}", app=name, user=user, id="same")
        )
    for number, (name, user) in enumerate(tenants):
        assert await found_texts(service, "secret", app=name, user=user) == [
            f"secret number{number}"
        ]


async def test_users_and_apps_do_not_share_memories(service, app):
    await service.add_session_to_memory(session("a secret", app=app, user="ann"))
    assert await found_texts(service, "secret", app=app, user="bob") == []
    assert await found_texts(service, "secret", app=f"{app}2", user="ann") == []
