"""The check of the guarantees finds every kind of problem: here documents are changed by hand."""

from __future__ import annotations

import contextlib
import json

import pytest

from cosmos_emulator import Emulator
from tests.reliability.guarantees import Broken, check_guarantees, tables_of
from tests.reliability.operations import Stage, deleted, say, with_large
from tests.reliability.simulation import simulate


def tamper(stage: Stage, where, change) -> None:
    """Lets `change` alter every document that `where` chooses; None removes it."""
    with contextlib.closing(tables_of(stage.emulator)) as tables:
        for (number,) in tables.execute("SELECT num FROM containers").fetchall():
            for seq, body in tables.execute(f"SELECT seq, body FROM items_{number}").fetchall():
                document = json.loads(body)
                if not where(document):
                    continue
                changed = change(document)
                if changed is None:
                    tables.execute(f"DELETE FROM items_{number} WHERE seq = ?", [seq])
                else:
                    text = json.dumps(changed)
                    tables.execute(f"UPDATE items_{number} SET body = ? WHERE seq = ?", [text, seq])
        tables.commit()
        stage.emulator = Emulator.load(tables.serialize())


def is_event(name: str):
    return lambda document: document.get("event_id") == name


def kind(name: str):
    return lambda document: document["document_type"] == name


async def several(stage: Stage) -> None:
    session = stage.session = await stage.create(stage.victim, "first")
    for name in ("one", "two", "three"):
        await stage.append(stage.victim, session, say(name, "own", "user:", "app:"))
    await stage.victim.service.flush()


@pytest.mark.parametrize(
    ("prepare", "where", "change", "says"),
    [
        (several, is_event("two"), lambda _: None, "G1"),
        (several, is_event("three"), lambda d: d | {"event_id": "two"}, "G1"),
        (several, is_event("three"), lambda d: d | {"document_type": "tombstone"}, "G6"),
        (several, is_event("two"), lambda d: d | {"document_type": "tombstone"}, "G6"),
        (several, kind("session"), lambda d: d | {"revision": 9}, "G3"),
        (several, kind("session"), lambda d: d | {"revision": 2}, "G3"),
        (several, kind("session"), lambda d: d | {"state": d["state"] | {"x": 1}}, "G3"),
        (several, kind("session"), lambda d: d | {"status": "deleted"}, "G6"),
        (several, kind("user_state"), lambda d: d | {"state": {"key": "two"}}, "G8"),
        (several, kind("app_state"), lambda _: None, "G8"),
        (several, kind("app_state"), lambda d: d | {"stamps": {"key": [9e15, "x"]}}, "G5"),
        (deleted, kind("session"), lambda d: d | {"status": "active"}, "G6"),
        (with_large, kind("chunk"), lambda d: d | {"data": ""}, "G1"),
        (with_large, kind("chunk"), lambda _: None, "G1"),
        (with_large, is_event("large"), lambda d: d | {"event_id": "other"}, "G1"),
    ],
)
def test_a_change_by_hand_is_noticed(prepare, where, change, says):
    async def scene() -> None:
        stage = Stage()
        await prepare(stage)
        check_guarantees(stage.emulator, stage.history)
        tamper(stage, where, change)
        with pytest.raises(Broken, match=says):
            check_guarantees(stage.emulator, stage.history)

    simulate(scene)


def test_a_trace_of_a_refused_event_is_noticed():
    async def scene() -> None:
        stage = Stage()
        await several(stage)
        stage.history.refused.add("three")
        with pytest.raises(Broken, match="G5 three: refused, but it left a trace"):
            check_guarantees(stage.emulator, stage.history)

    simulate(scene)
