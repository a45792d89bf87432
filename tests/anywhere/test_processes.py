"""Several real processes on one store, of which one is killed."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tests.support.adk import event, texts

ROOT = Path(__file__).parents[2]
EACH = 6
WHO = {"app_name": "processes", "user_id": "ann"}
THIS = WHO | {"session_id": "s"}


def start(environment, name, count=EACH):
    paths = os.pathsep.join([str(ROOT), str(ROOT / "emulator")])
    return subprocess.Popen(
        [sys.executable, "-m", "tests.anywhere.appender", WHO["app_name"], name, str(count)],
        env=os.environ | environment | {"PYTHONPATH": paths},
        stdout=subprocess.PIPE,
        text=True,
        cwd=ROOT,
    )


async def test_every_acknowledged_event_is_there_once_though_a_process_is_killed(
    cosmos, open_service
):
    service = open_service(on_conflict="rebase")
    session = await service.create_session(**THIS)
    environment = cosmos.environment()
    victim, *others = [start(environment, name) for name in ("victim", "one", "two")]
    told = [victim.stdout.readline().strip()]  # so it is in the middle of its work
    victim.kill()
    told += victim.stdout.read().split()
    for each in others:
        told += each.communicate(timeout=100)[0].split()
        assert each.returncode == 0
    victim.wait()
    victim.stdout.close()
    await service.append_event(session, event("after"))
    found = await open_service().get_session(**THIS)
    stored = texts(found)
    assert len(stored) == len(set(stored))
    assert set(told) <= set(stored)
    for name in ("victim", "one", "two"):
        mine = [each for each in stored if each.startswith(name)]
        assert mine == [f"{name}-{number}" for number in range(len(mine))]
    # The process that was killed may have stored one more event than it was told of.
    assert len(stored) - 1 - len(told) in (0, 1)
    assert found.state["user:one"] == found.state["user:two"] == EACH - 1
    verified = await open_service().repair_session(**THIS)
    assert verified is not None
