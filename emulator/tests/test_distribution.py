"""The wheel: its content, what it needs, and that it works with that alone."""

import email
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

import cosmos_emulator

PROJECT = Path(__file__).parents[1]
# What is installed here, but need not be there when only the wheel's own dependencies are.
OTHERS = ["azure", "aiohttp", "requests", "google", "pydantic", "cosmosservice"]
BLOCKED = "import sys; sys.modules.update(dict.fromkeys({}))"
USE = """
import json
from cosmos_emulator import Emulator
from raw import create, make_container, send

with Emulator() as emulator:
    make_container(emulator)
    create(emulator, {"id": "a", "pk": "x"})
    headers = {"x_ms_documentdb_isquery": "true", "content_type": "application/query+json"}
    query = {"query": "SELECT VALUE c.id FROM c WHERE c.pk = 'x'"}
    headers["x_ms_documentdb_partitionkey"] = json.dumps(["x"])
    print(send(emulator, "POST", "/dbs/db/colls/c/docs", query, **headers)[1]["Documents"])
"""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    folder = tmp_path_factory.mktemp("dist")
    command = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", folder]
    done = subprocess.run([*command, PROJECT], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    (found,) = folder.glob("*.whl")
    return found


@pytest.fixture(scope="module")
def unpacked(wheel, tmp_path_factory):
    folder = tmp_path_factory.mktemp("unpacked")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder)
    return folder


def run(unpacked, *lines, without=OTHERS):
    paths = [str(unpacked), str(PROJECT / "tests")]
    script = "\n".join([BLOCKED.format(without), f"sys.path[:0] = {paths!r}", *lines])
    return subprocess.run([sys.executable, "-I", "-c", script], capture_output=True, text=True)


def test_the_wheel_holds_the_package_and_its_data_and_nothing_else(wheel):
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
    assert {"cosmos_emulator/py.typed", "cosmos_emulator/query/grammar.lark"} <= names
    (info,) = {name.split("/")[0] for name in names if ".dist-info/" in name}
    assert info == f"cosmos_emulator-{cosmos_emulator.__version__}.dist-info"
    assert {name.split("/")[0] for name in names} == {"cosmos_emulator", info}
    assert not [name for name in names if "test_" in name or "conftest" in name]


def test_the_wheel_needs_neither_azure_nor_aiohttp_but_by_extras(unpacked):
    (text,) = unpacked.glob("*.dist-info/METADATA")
    metadata = email.message_from_string(text.read_text("utf-8"))
    wanted = {}
    for requirement in metadata.get_all("Requires-Dist"):
        extra = re.search(r"extra == ['\"](\w+)['\"]", requirement)
        name = re.match(r"[\w.-]+", requirement)[0]
        wanted.setdefault(extra[1] if extra else "", set()).add(name)
    needed = {"lark", "snowballstemmer", "stop-words"}
    assert wanted == {"": needed, "azure": {"azure-cosmos", "aiohttp"}, "server": {"aiohttp"}}


def test_it_works_with_only_what_it_asks_for(unpacked):
    done = run(unpacked, USE)
    assert (done.stdout, done.stderr) == ("['a']\n", "")


@pytest.mark.parametrize("way", ["transport", "async_transport"])
def test_without_the_sdk_a_transport_says_what_to_install(unpacked, way):
    done = run(unpacked, f"from cosmos_emulator import Emulator; Emulator().{way}()")
    assert "pip install 'cosmos-emulator[azure]'" in done.stderr.splitlines()[-1]


def test_an_asynchronous_client_needs_no_requests(unpacked):
    done = run(
        unpacked,
        "from cosmos_emulator import Emulator; print(Emulator().async_transport() is not None)",
        without=["requests"],
    )
    assert (done.stdout, done.stderr) == ("True\n", "")


def test_without_aiohttp_the_command_says_what_to_install(unpacked):
    done = run(unpacked, "sys.argv[1:] = []; from cosmos_emulator.__main__ import main; main()")
    assert done.returncode == 1
    assert done.stderr == (
        "cosmos-emulator: The server needs aiohttp: pip install 'cosmos-emulator[server]'\n"
    )
