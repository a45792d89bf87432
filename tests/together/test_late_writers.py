"""A process saves an artifact and adds a memory while its session is purged or created again."""

from __future__ import annotations

import itertools

import pytest
from google.genai import types

from cosmos_emulator.requests_log import RequestRecord
from cosmosservice.errors import CosmosServiceError
from tests.reliability.simulation import simulate
from tests.support.adk import event
from tests.together.crash_matrix import (
    ADA,
    NEW,
    OPERATIONS,
    OTHER,
    THIS,
    Operation,
    Stage,
    _later,
    prepared,
)
from tests.together.processes import Process, full, left_of, look

DAY = 24 * 3600
LATE = "latetext"
PART = types.Part.from_bytes(data=LATE.encode(), mime_type="text/plain")
NAMED = {each.name: each for each in OPERATIONS}


async def _late(process: Process) -> None:
    """What an agent that does not know of the purge does."""
    for work in (
        process.memory.add_events_to_memory(
            **ADA, session_id="s", events=[event(f"word {LATE}", id="late")]
        ),
        process.artifacts.save_artifact(**THIS, filename=f"small {LATE}", artifact=PART),
    ):
        try:
            await work
        except CosmosServiceError:
            continue


async def _play(operation: Operation, number: int, content: bytes) -> bool:
    """False if the operation sends fewer requests."""
    _later()
    stage = Stage(content=content)
    writer, operator = stage.process(), stage.process()
    busy = False

    async def write(_: RequestRecord) -> None:
        nonlocal busy
        if not busy:
            busy = True
            await _late(writer)

    stage.emulator.faults.call(write, when="after", nth=number)
    await operation.run(operator)
    stage.emulator.faults.clear()
    process = stage.process()
    if operation.name == "create over deleted":
        new = await process.sessions.get_session(**THIS)
        await process.use(new, NEW)
        # An artifact saved under the name of the new session, after its predecessor's were erased,
        # is the new session's.
        seen = await look(process, "s")
        assert set(full(NEW).files) <= set(seen.files)
        assert (await look(process, "other")) == full(OTHER)
    else:
        stage.emulator.clock.advance(DAY + 60)
        await process.sessions.list_sessions(**ADA)  # its answer tells the time
        report = await process.sessions.purge_deleted()
        assert report.failed == ()
        assert left_of(stage.emulator, LATE) == []
        assert left_of(stage.emulator, "oldtexts") == []
    stage.close()
    return busy


@pytest.mark.parametrize("name", ["purge_session", "purge_deleted", "create over deleted"])
def test_what_is_stored_during_a_purge_is_found_a_day_later(name):
    operation = NAMED[name]
    content = prepared(operation)
    for number in itertools.count(1, 5):
        if not simulate(lambda number=number: _play(operation, number, content)):
            break
    assert number > 20
