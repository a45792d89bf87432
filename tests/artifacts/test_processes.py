"""Real processes save and delete the same names on one emulator over HTTP, with and without lag."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from cosmos_emulator import Emulator, Replicas
from cosmos_emulator.serving import serving
from cosmosservice import CosmosArtifactService
from tests.artifacts.kinds import SMALL

ROOT = Path(__file__).parents[2]
WORKER = """
import asyncio, json, sys
from cosmosservice import CosmosArtifactService
from cosmosservice.artifacts.stores import Sizes
from google.genai import types

endpoint, key, app, me = sys.argv[1:]
who = {"app_name": app, "user_id": "ann", "session_id": "s"}

async def main():
    service = CosmosArtifactService(
        endpoint=endpoint, credential=key, database="tests", _sizes=Sizes(16, 256, 384, 1024)
    )
    async with service:
        kept = []
        for n in range(8):
            data = f"{me}-{n}-".encode() * (40 if n % 2 else 2)
            part = types.Part(inline_data=types.Blob(data=data, mime_type="image/png"))
            version = await service.save_artifact(**who, filename="kept", artifact=part)
            kept.append((version, data.decode()))
            await service.save_artifact(**who, filename="deleted", artifact=part)
            if n % 3 == 2:
                await service.delete_artifact(**who, filename="deleted")
    print(json.dumps(kept))

asyncio.run(main())
"""


@pytest.fixture(params=[0.0, 0.3], ids=["", "lag"])
def replicas(request):
    """They lag by up to so many seconds."""
    return Replicas((0.0, request.param))


@pytest.fixture
def endpoint(replicas):
    with Emulator(partitions=3, replicas=replicas) as emulator, serving(emulator) as address:
        yield address, emulator.key


@pytest.fixture
def answers(endpoint, replicas, who):
    """What two processes were told about their saves."""
    workers = [
        subprocess.Popen(
            [sys.executable, "-c", WORKER, *endpoint, who["app_name"], str(n)],
            cwd=ROOT,
            stdout=subprocess.PIPE,
        )
        for n in range(2)
    ]
    answers = [json.loads(worker.communicate(timeout=100)[0]) for worker in workers]
    replicas.catch_up()
    return answers


async def test_processes_agree_on_versions_and_lose_nothing(answers, endpoint, who):
    address, key = endpoint
    saved = dict(sorted(map(tuple, answers[0] + answers[1])))
    service = CosmosArtifactService(
        endpoint=address, credential=key, database="tests", _sizes=SMALL
    )
    async with service:
        assert list(saved) == await service.list_versions(**who, filename="kept") == [*range(16)]
        for version, data in saved.items():
            found = await service.load_artifact(**who, filename="kept", version=version)
            assert found.inline_data.data.decode() == data
        versions = await service.list_versions(**who, filename="deleted")
        assert versions == list(range(len(versions)))
        for version in versions:
            assert await service.load_artifact(**who, filename="deleted", version=version)
