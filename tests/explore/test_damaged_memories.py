"""The page of a user one of whose memories is damaged."""

from __future__ import annotations

import re

from tests.explore.support import read
from tests.memory.damage import GOOD, fill_with_damage


async def test_a_damaged_memory_hides_no_other(visit, emulator):
    users = await fill_with_damage(emulator)
    visitor = await visit(dependants=True)
    for user in users[::2]:
        for searched in ({}, {"memory": "tea"}):
            page = read(await visitor.get("/user", app="app", user=user, **searched))
            assert set(re.findall("tea before|tea after", page)) == GOOD
