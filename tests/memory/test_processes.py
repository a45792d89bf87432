"""Several real processes on one store. They start slowly, so only `make interleavings` runs these
tests."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from pathlib import Path

import pytest

from cosmos_emulator.serving import serving
from cosmosservice.memory.documents import document_id
from tests.memory.raw import documents_of, memories_of

ROOT = Path(__file__).parents[2]
ADDS = """
import asyncio
import sys
from cosmosservice import CosmosMemoryService
from tests.memory.support import session
from tests.support.adk import event

async def main():
    said = session(*(event(f"Note {number}", id=f"e{number}") for number in range(20)))
    service = CosmosMemoryService(endpoint=sys.argv[1], credential=sys.argv[2], database="adk")
    async with service as memory:
        await memory.add_session_to_memory(said)

asyncio.run(main())
"""


@pytest.mark.skipif("RELIABILITY_SEEDS" not in os.environ, reason="set RELIABILITY_SEEDS")
def test_processes_that_add_one_session_at_once_store_it_once(emulator):
    """Each sends its first memory before the other's is stored."""
    first = document_id("e0")
    adding: list[str] = []
    both = asyncio.Event()

    async def until_both_add(request) -> None:
        adding.append(request.id)
        if len(adding) == 2:
            both.set()
        await both.wait()

    emulator.faults.call(
        until_both_add,
        when="before",
        operation="create",
        times=None,
        where=lambda request: request.id == first,
    )
    with serving(emulator) as endpoint:
        command = [sys.executable, "-c", ADDS, endpoint, emulator.key]
        pipe = subprocess.PIPE
        processes = [
            subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True, cwd=ROOT)
            for _ in range(2)
        ]
        ended = [(*each.communicate(timeout=120), each.returncode) for each in processes]
    assert ended == [("", "", 0)] * 2
    assert memories_of(emulator) == [f"Note {number}" for number in range(20)]
    assert len(documents_of(emulator)) == 20
    assert len(adding) == 2
