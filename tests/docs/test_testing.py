"""The tests that docs/testing.md shows pass with only the fixtures of the package."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tests.docs.blocks import blocks

PAGE = Path(__file__).parents[2] / "docs" / "testing.md"
# Tests without a loop, and anyio tests on asyncio, can use the fixtures too.
OTHERS = """
@pytest.mark.anyio
@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_of_anyio(cosmos_memory, anyio_backend):
    found = await cosmos_memory.search_memory(app_name="shop", user_id="ada", query="tea")
    assert found.memories == []


def test_without_a_loop(cosmos_sessions, cosmos_artifacts):
    runner = Runner(
        app_name="counter",
        agent=agent,
        session_service=cosmos_sessions,
        artifact_service=cosmos_artifacts,
        auto_create_session=True,
    )
    message = types.UserContent("Hello")
    assert len(list(runner.run(user_id="ada", session_id="first", new_message=message))) == 1


def test_the_environment_does_not_count(cosmos_account):
    assert cosmos_account.settings.endpoint == "embedded::memory:"
    assert cosmos_account.settings.artifact_blobs is None
"""


def test_the_tests_of_the_page_pass(tmp_path):
    code = "\n\n".join(block.text for block in blocks(PAGE) if block.kind == "python")
    tmp_path.joinpath("test_agent.py").write_text(code + OTHERS, encoding="utf-8")
    tmp_path.joinpath("pytest.ini").write_text(
        "[pytest]\nasyncio_mode = auto\nfilterwarnings = error::ResourceWarning\n"
    )
    plugins = ["anyio.pytest_plugin", "pytest_asyncio.plugin", "cosmosservice.testing"]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", *(f"-p{plugin}" for plugin in plugins)],
        cwd=tmp_path,
        env=os.environ
        | {
            "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
            "COSMOSDB_ENDPOINT": "https://production.documents.azure.com:443/",
            "COSMOSDB_ARTIFACT_BLOBS": "https://production.blob.core.windows.net/artifacts",
        },
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "8 passed" in done.stdout
