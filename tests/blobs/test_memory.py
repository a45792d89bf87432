"""Large artifacts take little memory: the resident size of a process that does nothing else."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.artifacts.test_processes import ROOT

# `ARTIFACT_MEGABYTES=100 make test-blobs` writes and reads that much.
MEGABYTES = os.environ.get("ARTIFACT_MEGABYTES", "64")


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="needs Linux")
@pytest.mark.parametrize("store", ["Cosmos DB", "blobs"])
def test_a_large_artifact_takes_a_few_pieces_of_memory(http_emulator, azurite, container, store):
    endpoint, key = http_emulator
    where = [azurite.url(container.container_name)] if store == "blobs" else []
    done = subprocess.run(
        [sys.executable, "-m", "tests.artifacts.large", MEGABYTES, *where],
        cwd=ROOT,
        env=os.environ | {"COSMOSDB_ENDPOINT": endpoint, "COSMOSDB_KEY": key},
        check=True,
        stdout=subprocess.PIPE,
        text=True,
    )
    saved, read = map(int, done.stdout.split())
    print(f"{MEGABYTES} MB in {store}: {saved} MB more for the save, {read} MB with the read")
    # A few pieces of 4 MB, each in several copies. The whole artifact in memory would be more.
    assert max(saved, read) < 50
