"""The content of the wheel and the sdist, and that the wheel alone is enough."""

from __future__ import annotations

import email
import re
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

USE = """
import asyncio
from google.adk.events import Event
import cosmosservice
from cosmosservice import CosmosSessionService
from cosmosservice.errors import ConfigurationError

async def main():
    async with CosmosSessionService.embedded() as service:
        try:
            session = await service.create_session(app_name="app", user_id="ann", session_id="s")
        except ConfigurationError as error:
            return error
        await service.append_event(session, Event(author="user"))
        found = await service.get_session(app_name="app", user_id="ann", session_id="s")
        return len(found.events)

print(cosmosservice.__file__)
print(asyncio.run(main()))
"""


@pytest.fixture(scope="module")
def names(wheel: Path) -> set[str]:
    with zipfile.ZipFile(wheel) as archive:
        return set(archive.namelist())


@pytest.fixture(scope="module")
def unpacked(wheel: Path, emulator_wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("unpacked")
    for each in (wheel, emulator_wheel):
        with zipfile.ZipFile(each) as archive:
            archive.extractall(folder)
    return folder


def run(unpacked: Path, *lines: str) -> str:
    script = "\n".join(["import sys", f"sys.path.insert(0, {str(unpacked)!r})", *lines, USE])
    done = subprocess.run([sys.executable, "-I", "-c", script], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    file, result = done.stdout.splitlines()
    assert file.startswith(str(unpacked))
    return result


def test_the_wheel_holds_the_package_and_its_data_and_nothing_else(names):
    assert names >= {
        "cosmosservice/py.typed",
        "cosmosservice/cli/database.bicep",
        "cosmosservice/explore/pages/sessions.html",
        "cosmosservice/explore/static/explore.css",
        "cosmosservice/explore/static/explore.js",
    }
    (info,) = {name.split("/")[0] for name in names if ".dist-info/" in name}
    assert {name.split("/")[0] for name in names} == {"cosmosservice", info}
    kinds = {Path(name).suffix for name in names if not name.startswith(info)}
    assert kinds == {".py", ".typed", ".bicep", ".html", ".css", ".js", ".svg"}
    assert not [name for name in names if re.search(r"(^|[/_])tests?[/_.]|conftest", name)]


def test_the_wheel_asks_for_what_production_needs_and_the_rest_by_extras(wheel):
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (each for each in archive.namelist() if each.endswith("/METADATA"))
        metadata = email.message_from_bytes(archive.read(name))
    wanted: dict[str, set[str]] = {}
    for requirement in metadata.get_all("Requires-Dist"):
        extra = re.search(r"extra == ['\"](\w+)['\"]", requirement)
        package = re.match(r"[\w.-]+(\[[\w,]+\])?", requirement)[0]
        wanted.setdefault(extra[1] if extra else "", set()).add(package)
    assert wanted[""] == {
        "aiohttp",
        "azure-cosmos",
        "google-adk",
        "opentelemetry-api",
        "pydantic",
        "python-dotenv",
        "snowballstemmer",
        "stop-words",
        "typing-extensions",
    }
    assert wanted["entra"] == {"azure-identity"}
    assert wanted["emulator"] == {"cosmos-emulator[azure,server]"}
    assert wanted["cli"] == {"cosmos-emulator[azure,server]", "click", "packaging", "rich"}
    assert set(metadata.get_all("Provides-Extra")) == {
        *("blobs", "cli", "emulator", "entra", "explore", "openai")
    }
    assert metadata["License-Expression"] == "Apache-2.0"


def test_pytest_finds_the_fixtures(unpacked):
    (entries,) = unpacked.glob("cosmosservice-*.dist-info/entry_points.txt")
    assert "[pytest11]\ncosmosservice = cosmosservice.testing" in entries.read_text("utf-8")


def test_the_sdist_holds_the_tests(dist):
    (sdist,) = dist.glob("cosmosservice-*.tar.gz")
    with tarfile.open(sdist) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    assert names >= {
        "pyproject.toml",
        "README.md",
        "LICENSE",
        "Makefile",
        "tests/conftest.py",
        "tests/packaging/test_distributions.py",
        "cosmosservice/py.typed",
        "emulator/pyproject.toml",
        "emulator/cosmos_emulator/query/grammar.lark",
        "deploy/database.bicep",
    }


def test_the_packages_work_as_they_are_in_the_wheel(unpacked):
    assert run(unpacked) == "1"


def test_without_the_extra_the_embedded_emulator_says_what_to_install(unpacked):
    said = run(unpacked, "sys.modules['cosmos_emulator'] = None")
    assert "pip install 'cosmosservice[emulator]'" in said
