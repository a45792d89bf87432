"""docs/telemetry.md is correct."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from google.adk.sessions.base_session_service import GetSessionConfig

from cosmosservice import CosmosSessionService
from tests.support.adk import event

TEXT = (Path(__file__).parents[2] / "docs" / "telemetry.md").read_text()
CODE = re.findall(r"```python\n(.*?)```", TEXT, re.DOTALL)
NAMES = set(re.findall(r"`([\w.]+)`", TEXT))

USE = """
import asyncio
from google.adk.events import Event

async def main():
    async with service:
        session = await service.create_session(app_name="app", user_id="ann")
        await service.append_event(session, Event(author="user"))

asyncio.run(main())
assert spent["append_event"] > 0, spent
assert spent["create_session"] > 0, spent
"""


def test_the_code_runs_and_prints_spans_and_metrics():
    script = "\n".join([*CODE, USE])
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    assert '"name": "append_event events"' in done.stdout
    assert '"cosmosservice.operation.duration"' in done.stdout


async def test_every_attribute_and_metric_is_described(emulator, seen):
    emulator.faults.throttle(retry_after_ms=1, operation="create", container="events")
    async with (
        CosmosSessionService.embedded(emulator, on_conflict="rebase") as service,
        CosmosSessionService.embedded(emulator) as reader,
    ):
        names = {"app_name": "app", "user_id": "ann", "session_id": "s"}
        session = await service.create_session(**names)
        other = await service.get_session(**names, config=GetSessionConfig(num_recent_events=1))
        await service.append_event(session, event("one"))
        await service.append_event(other, event("two"))
        await reader.get_session(**names)
        await reader.flush()
    spans = [span for span in seen.all_spans if "db.system.name" in span.attributes]
    measured = seen.measured()
    assert set(measured) <= NAMES
    assert {name for span in spans for name in span.attributes} <= NAMES
    points = [point for of_one in measured.values() for point in of_one]
    assert {name for point in points for name in point.attributes} <= NAMES
    described = {name for name in NAMES if name.startswith("cosmosservice.")}
    seen_names = {name for span in spans for name in span.attributes} | set(measured)
    seen_names |= {name for point in points for name in point.attributes}
    assert described <= seen_names
