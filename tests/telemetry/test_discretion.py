"""Neither logs nor traces nor metrics carry what users say, what agents remember, or keys."""

from __future__ import annotations

import logging
import subprocess
import sys

import pytest

from cosmos_emulator import EMULATOR_KEY
from cosmosservice import CosmosSessionService
from cosmosservice.account.quiet import quiet_http_log
from cosmosservice.errors import StaleSessionError
from tests.support.adk import event

SECRET = "xyzzy"
POLICY = "azure.cosmos._cosmos_http_logging_policy"


async def use(service):
    state = {f"user:{SECRET}": SECRET, f"app:{SECRET}": SECRET, SECRET: SECRET}
    names = {"app_name": "app", "user_id": "ann", "session_id": "s"}
    session = await service.create_session(**names, state=state)
    other = await service.get_session(**names)
    await service.append_event(session, event(SECRET, delta=state))
    with pytest.raises(StaleSessionError):
        await service.append_event(other, event(SECRET, delta=state))
    await service.list_sessions(app_name="app")
    await service.delete_session(**names)
    await service.flush()


async def test_no_payload_is_logged_or_exported(emulator, seen, caplog):
    caplog.set_level(logging.DEBUG, logger="cosmosservice")
    emulator.faults.fail(500, operation="create", container="events")
    async with CosmosSessionService.embedded(emulator) as service:
        await use(service)
    ours = [record for record in caplog.records if record.name == "cosmosservice"]
    assert {record.levelno for record in ours} >= {logging.DEBUG, logging.INFO}
    exported = [span.to_json() for span in seen.all_spans if "db.system.name" in span.attributes]
    measured = seen.measured()
    assert exported
    assert measured
    said = [record.getMessage() + str(record.exc_text) for record in ours] + exported
    said += [str(dict(point.attributes)) for points in measured.values() for point in points]
    for text in said:
        assert SECRET not in text
        assert EMULATOR_KEY not in text


async def test_a_request_that_is_sent_again_is_logged(emulator, caplog):
    caplog.set_level(logging.INFO, logger="cosmosservice")
    async with CosmosSessionService.embedded(emulator) as service:
        session = await service.create_session(app_name="app", user_id="ann")
        emulator.faults.fail(500, operation="create", container="events")
        await service.append_event(session, event("hello"))
    assert "append_event: the create in container 'events' is sent again after answer 500." in (
        record.getMessage() for record in caplog.records
    )


def test_without_an_sdk_nothing_of_it_is_loaded_and_the_service_works():
    program = """
import asyncio, sys
from google.adk.events import Event
from cosmosservice import CosmosSessionService

async def main():
    async with CosmosSessionService.embedded() as service:
        session = await service.create_session(app_name="app", user_id="ann")
        await service.append_event(session, Event(author="user"))
    assert "opentelemetry.trace" in sys.modules
    print(*[name for name in sys.modules if name.startswith("opentelemetry.sdk")])

asyncio.run(main())
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, "\n", "")


QUIET = """
import asyncio, logging, sys
logging.basicConfig(level=logging.INFO, stream=sys.stdout, format="%(name)s|%(message)s")
{setting}
from cosmos_emulator import Emulator
from cosmosservice import CosmosSessionService
from google.adk.events import Event

names = dict(app_name="app", user_id="the-user", session_id="the-session")

async def main():
    service = CosmosSessionService.embedded(Emulator())
    session = await service.create_session(**names, state={{"user:k": 1}})
    await service.append_event(session, Event(author="user"))
    await service.get_session(**names)
    await service.list_sessions(app_name="app")
    await service.delete_session(**names)
    await service.purge_user(app_name="app", user_id="the-user")
    await service.close()

asyncio.run(main())
"""


def logged(setting=""):
    script = QUIET.format(setting=setting)
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_at_the_level_info_a_few_lines_are_logged_and_no_id_is_among_them():
    said = logged()
    assert len(said.splitlines()) < 10
    assert "azure" not in said
    assert "the-user" not in said
    assert "the-session" not in said


def test_an_application_that_wants_the_log_of_requests_gets_it():
    assert "azure.cosmos" in logged("logging.getLogger('azure').setLevel(logging.INFO)")


@pytest.mark.parametrize("name", ["azure", "azure.cosmos", POLICY])
def test_a_level_that_the_application_has_set_is_kept(name, monkeypatch):
    for logger in ("azure", "azure.cosmos", POLICY):
        monkeypatch.setattr(logging.getLogger(logger), "level", logging.NOTSET)
    monkeypatch.setattr(logging.getLogger(name), "level", logging.INFO)
    quiet_http_log()
    assert logging.getLogger(POLICY).getEffectiveLevel() == logging.INFO
