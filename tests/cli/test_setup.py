"""`cosmosservice doctor`, `init`, `init-agent`, `bench`, `emulator`, and mistakes."""

import json
import os
import shlex
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from azure.core.exceptions import ClientAuthenticationError
from azure.cosmos import PartitionKey

from cosmos_emulator import Emulator
from cosmos_emulator.serving import serving
from cosmosservice import cli as package
from cosmosservice.account.refusals import Refusal
from cosmosservice.cli import versions
from tests.service.test_refusals import ANSWERS
from tests.support.raw import raw_client

EXAMPLES = Path(__file__).parents[2] / "examples"


def findings(shown):
    return {each["check"]: each for each in map(json.loads, shown.out.splitlines())}


def test_doctor_finds_a_new_store_healthy(command):
    assert command("init").code == 0
    shown = command("doctor", "--json")
    assert shown.code == 0
    found = findings(shown)
    assert {each["status"] for each in found.values()} == {"ok"}
    assert set(found) >= {"settings", "connection", "write regions", "container events", "latency"}


def test_doctor_is_readable(command):
    command("init")
    assert "✓ container sessions   partition key /user_id" in command("doctor").out


def test_doctor_says_which_container_is_missing_and_what_to_do(command):
    Emulator("store.db").close()
    shown = command("doctor", "--json")
    assert shown.code == 1
    missing = findings(shown)["container sessions"]
    assert missing["status"] == "fail"
    assert "cosmosservice init" in missing["advice"]


def test_doctor_says_of_an_embedded_file_that_containers_are_created_at_their_first_use(
    command, conversation
):
    shown = command("doctor", "--json")
    assert shown.code == 0
    memories = findings(shown)["container memories"]
    assert memories["status"] == "warn"
    assert memories["found"] == "the file has no container 'memories' yet"
    assert memories["advice"].startswith("The services create their containers at the first use.")
    for word in ("Entra", "Bicep", "deploy"):
        assert word not in shown.out


def test_doctor_gives_the_same_advice_once(command, conversation):
    shown = command("doctor").out
    assert shown.count("no container") == 2
    assert shown.count("`cosmosservice init`") == 1


def test_doctor_says_of_an_account_how_containers_are_created(command, monkeypatch):
    with Emulator() as emulator, serving(emulator) as endpoint:
        client = raw_client(emulator)
        client.create_database("adk")
        monkeypatch.setenv("COSMOSDB_ENDPOINT", endpoint)
        monkeypatch.setenv("COSMOSDB_KEY", emulator.key)
        monkeypatch.setenv("COSMOSDB_DATABASE", "adk")
        shown = command("doctor", "--json")
    memories = findings(shown)["container memories"]
    assert memories["found"] == "there is none in database 'adk', or this identity may not see it"
    assert memories["advice"].startswith("Create them with `cosmosservice init` or the Bicep file")


def test_doctor_recognises_a_wrong_partition_key_and_expensive_indexing(command):
    with Emulator("store.db") as emulator:
        client = raw_client(emulator)
        database = client.create_database("adk")
        database.create_container("sessions", PartitionKey("/id"))
        database.create_container("events", PartitionKey("/session_id"))
        database.create_container("artifacts", PartitionKey("/scope"))
    found = findings(command("doctor", "--json"))
    assert found["container sessions"]["status"] == "fail"
    assert found["container sessions"]["found"] == "its partition key is /id, not /user_id"
    assert found["container events"]["status"] == "warn"
    assert found["container artifacts"]["found"] == "it lacks the unique key /claim"
    assert "time to live" in found["container events"]["advice"]
    assert "indexes every path" in found["container events"]["advice"]


@pytest.mark.parametrize("package", ["google-adk", "azure-cosmos"])
def test_doctor_fails_on_versions_that_are_not_supported(command, monkeypatch, package):
    command("init")
    real = versions.version
    monkeypatch.setattr(versions, "version", lambda name: "9.0" if name == package else real(name))
    shown = command("doctor", "--json")
    assert shown.code == 1
    found = findings(shown)["versions"]
    assert found["status"] == "fail"
    assert f"{package} 9.0" in found["found"]
    assert f"Not supported. pip install '{package}" in found["advice"]


def test_init_update_repairs_ttl_and_indexing_and_nothing_else(command):
    with Emulator("store.db") as emulator:
        client = raw_client(emulator)
        database = client.create_database("adk")
        mine = {"includedPaths": [{"path": "/mine/?"}], "excludedPaths": [{"path": "/*"}]}
        unique = {"uniqueKeys": [{"paths": ["/mine"]}]}
        database.create_container(
            "sessions", PartitionKey("/user_id"), indexing_policy=mine, unique_key_policy=unique
        )
        database.create_container("events", PartitionKey("/session_id"), default_ttl=60)
        database.create_container("memories", PartitionKey("/owner"), default_ttl=-1)
    left = findings(command("doctor", "--json"))
    assert "removes everything after 60 seconds" in left["container events"]["advice"]
    command("init")
    assert findings(command("doctor", "--json"))["container events"]["status"] == "warn"
    done = command("init", "--update")
    assert done.code == 0
    assert "Repaired container sessions: time to live is switched off" in done.err
    assert "Repaired container events: it indexes every path" in done.err
    found = findings(command("doctor", "--json"))
    assert {each["status"] for each in found.values()} == {"ok"}
    assert "Repaired" not in command("init", "--update").err
    with Emulator("store.db") as emulator:
        client = raw_client(emulator)
        there = client.get_database_client("adk").get_container_client("sessions").read()
    assert {"path": "/mine/?"} in there["indexingPolicy"]["includedPaths"]
    assert there["uniqueKeyPolicy"]["uniqueKeys"] == unique["uniqueKeys"]


@pytest.mark.parametrize("update", [(), ("--update",)])
def test_init_and_doctor_say_whether_memories_can_have_vectors(command, update):
    command("init")
    assert findings(command("doctor", "--json"))["container memories"]["found"].endswith(
        "for words only"
    )
    refused = command("init", "--vectors", "4", *update)
    assert refused.code == 2
    assert "without a vector policy, which is fixed at creation" in refused.err
    other = ("--uri", "cosmosdb://embedded/vectors.db")
    command("init", "--vectors", "4", *other)
    found = findings(command("doctor", "--json", *other))["container memories"]["found"]
    assert found.endswith("for vectors of 4 dimensions")
    assert command("init", "--update", *other).code == 0
    assert "made for vectors of 4" in command("init", "--vectors", "5", *update, *other).err


def test_init_update_says_what_cannot_be_changed(command):
    with Emulator("store.db") as emulator:
        client = raw_client(emulator)
        client.create_database("adk").create_container("sessions", PartitionKey("/id"))
    shown = command("init", "--update")
    assert shown.code == 2
    assert (
        "has the partition key /id; the service needs /user_id of version 2, which is fixed"
        in shown.err
    )


def test_init_prints_how_to_update(command):
    uri = "cosmosdb://contoso.documents.azure.com/agents"
    az = command("init", "--print", "az", "--update", "--uri", uri).out
    assert az.count("az cosmosdb sql container update --account-name contoso") == 4
    assert "--partition-key" not in az
    assert " create " not in az


def test_doctor_says_when_nobody_answers(command, monkeypatch):
    monkeypatch.setenv("COSMOSDB_KEY", "c2VjcmV0")
    shown = command("doctor", "--json", "--uri", "cosmosdb://127.0.0.1:9/adk?protocol=http")
    assert shown.code == 1
    assert findings(shown)["connection"]["status"] == "fail"
    assert (
        "127.0.0.1:9/ cannot be reached: Cannot connect to host"
        in (findings(shown)["connection"]["found"])
    )
    assert "firewall" in findings(shown)["connection"]["advice"]
    assert "c2VjcmV0" not in shown.out + shown.err


@pytest.mark.parametrize(
    "reason",
    [Refusal.CLOCK, Refusal.FIREWALL, Refusal.ROLE, Refusal.KEY],
    ids=lambda each: each.name,
)
def test_doctor_tells_the_refusals_of_azure_apart(command, monkeypatch, reason):
    status, text = ANSWERS[reason]

    class Azure(BaseHTTPRequestHandler):
        def do_GET(self):
            body = json.dumps({"code": "Refused", "message": text}).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_):
            """Nothing is printed."""

    monkeypatch.setenv("COSMOSDB_KEY", "c2VjcmV0")
    with ThreadingHTTPServer(("127.0.0.1", 0), Azure) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        uri = f"cosmosdb://127.0.0.1:{server.server_port}/adk?protocol=http"
        shown = command("doctor", "--json", "--uri", uri)
        server.shutdown()
    assert shown.code == 1
    assert findings(shown)["connection"]["advice"] == reason.advice
    assert text.split(".")[0] in findings(shown)["connection"]["found"]
    assert "c2VjcmV0" not in shown.out + shown.err
    assert "ada@example.com" not in shown.out + shown.err


def test_doctor_says_what_to_do_if_only_documents_are_refused(command, monkeypatch):
    """As with an identity that may read metadata and nothing else."""
    with Emulator() as emulator, serving(emulator) as endpoint:
        monkeypatch.setenv("COSMOSDB_KEY", emulator.key)
        uri = f"cosmosdb://{endpoint.removeprefix('http://')}adk?protocol=http"
        command("init", "--uri", uri)
        emulator.faults.fail(403, where=lambda each: each.resource == "docs", times=None)
        shown = command("doctor", "--json", "--uri", uri)
    assert shown.code == 1
    found = findings(shown)
    for name in ("sessions", "events", "memories", "artifacts"):
        assert found[f"access to {name}"]["status"] == "fail"
        assert found[f"access to {name}"]["advice"]


def test_doctor_says_how_to_get_an_identity(command, monkeypatch):
    class NoIdentity:
        async def get_token(self, *scopes, **options):
            raise ClientAuthenticationError("no identity here")

        async def close(self):
            """Does nothing: nothing is open."""

    monkeypatch.setattr("azure.identity.aio.DefaultAzureCredential", NoIdentity)
    found = findings(command("doctor", "--json", "--uri", "cosmosdb://127.0.0.1:9/adk"))
    assert found["settings"]["found"].startswith("https://127.0.0.1:9/ with Entra ID")
    assert found["connection"]["status"] == "fail"
    assert "az login" in found["connection"]["advice"]
    assert "Built-in Data Contributor" in found["connection"]["advice"]


def test_doctor_does_not_blame_the_network_for_a_package_that_is_missing(command, monkeypatch):
    monkeypatch.setitem(sys.modules, "azure.identity.aio", None)
    found = findings(command("doctor", "--json", "--uri", "cosmosdb://127.0.0.1:9/adk"))
    assert "pip install 'cosmosservice[entra]'" in found["connection"]["found"]
    assert found["connection"]["advice"] == ""


def test_missing_settings_are_a_message_and_no_traceback(command, monkeypatch):
    monkeypatch.delenv("COSMOSDB_ENDPOINT")
    shown = command("doctor")
    assert shown.code == 2
    assert shown.err.startswith("Error: COSMOSDB_ENDPOINT is missing: set it in the environment")


def test_init_prints_what_an_administrator_can_run(command):
    uri = "cosmosdb://contoso.documents.azure.com/agents"
    bicep = command("init", "--print", "bicep", "--uri", uri)
    assert bicep.code == 0
    assert "param accountName string = 'contoso'" in bicep.out
    az = command("init", "--print", "az", "--uri", uri)
    assert "az cosmosdb sql container create --account-name contoso" in az.out


def test_init_with_entra_id_points_to_print(command):
    shown = command("init", "--uri", "cosmosdb://contoso.documents.azure.com/agents")
    assert shown.code == 2
    assert "--print az" in shown.err


@pytest.mark.parametrize("options", [[], ["--yaml"]])
def test_init_agent_writes_the_file_once(command, folder, options):
    name = "services.yaml" if options else "services.py"
    folder.joinpath("agents").mkdir()
    made = command("init-agent", "agents", *options)
    assert made.code == 0
    uri = "cosmosdb://embedded/sessions.db?remember=true"
    assert made.out.startswith(f"adk web '--session_service_uri={uri}' ")
    assert made.out.endswith(" agents\n")
    text = folder.joinpath("agents", name).read_text()
    assert "cosmosservice.adk" in text
    again = command("init-agent", "agents", *options)
    assert again.code == 0
    assert "already" in again.err


def test_init_agent_does_not_change_an_existing_file(command, folder):
    folder.joinpath("services.py").write_text("mine = 1\n")
    shown = command("init-agent", folder)
    assert shown.code == 1
    assert "import cosmosservice.adk" in shown.err
    assert folder.joinpath("services.py").read_text() == "mine = 1\n"


def test_init_agent_refuses_a_folder_that_is_not_there(command, folder):
    shown = command("init-agent", "agents")
    assert shown.code == 2
    assert "There is no folder agents." in shown.err
    assert list(folder.iterdir()) == []


def test_init_agent_in_the_folder_of_one_agent_says_adk_run(command, folder):
    folder.joinpath("my agent").mkdir()
    folder.joinpath("my agent", "agent.py").write_text("root_agent = None\n")
    printed = command("init-agent", "my agent").out
    uri = "cosmosdb://embedded/sessions.db"
    assert printed == (
        f"adk run '--session_service_uri={uri}?remember=true' --memory_service_uri={uri}"
        f" --artifact_service_uri={uri} 'my agent'\n"
    )


def test_example_has_what_init_agent_writes(command, folder):
    folder.joinpath("agents").mkdir()
    command("init-agent", "agents")
    written = folder.joinpath("agents", "services.py").read_text()
    assert written == EXAMPLES.joinpath("agents", "services.py").read_text()


def test_bench_measures_time_and_request_units(command):
    rows = json.loads(command("bench", "--turns", "2", "--json").out)
    assert {row["operation"]: row["count"] for row in rows} == {
        "create_session": 1,
        "get_session": 2,
        "append_event": 8,
    }
    assert all(row["request_units"] > 0 for row in rows)
    assert command("sessions", "list", "--json").out == ""
    assert command("sessions", "list", "--deleted", "--json").out == ""


def test_bench_beside_peers_is_the_repositorys_benchmark(command, monkeypatch):
    started = []
    monkeypatch.setattr(
        subprocess, "call", lambda program, **where: started.append((program, where)) or 0
    )
    assert command("bench", "--peers", "--json").code == 0
    [(program, where)] = started
    assert program[1:] == ["-m", "benchmarks", "--json"]
    assert where["cwd"] == EXAMPLES.parent


def test_bench_beside_peers_says_where_it_is(command, monkeypatch, tmp_path):
    monkeypatch.setattr("cosmosservice.cli.bench.REPOSITORY", tmp_path)
    shown = command("bench", "--peers")
    assert shown.code == 1
    assert "make bench" in shown.err


def test_emulator_serves_every_command(command, conversation, monkeypatch):
    server = subprocess.Popen(
        [sys.executable, "-m", "cosmosservice.cli", "emulator", "--port=0"],
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        for _ in range(3):
            export, setting = shlex.split(server.stdout.readline())
            assert export == "export"
            monkeypatch.setenv(*setting.split("=", 1))
        endpoint, key = os.environ["COSMOSDB_ENDPOINT"], os.environ["COSMOSDB_KEY"]
        assert command("init").code == 0
        assert command("doctor").code == 0
        over_http = f"cosmosdb://{endpoint.split('//')[1].strip('/')}/adk?protocol=http"
        assert command("migrate", "cosmosdb://embedded/store.db", over_http).code == 0
        assert "first" in command("sessions", "list").out
        assert len(command("sessions", "export").out.splitlines()) == 4
        monkeypatch.setenv("COSMOSDB_SOURCE_KEY", key)
        monkeypatch.setenv("COSMOSDB_KEY", "d3Jvbmc=")
        assert command("migrate", over_http, "cosmosdb://embedded/back.db").code == 0
        refused = command("doctor", "--json")
        assert refused.code == 1
        assert "primary key" in findings(refused)["connection"]["advice"]
    finally:
        server.terminate()
        server.wait(30)
        server.stdout.close()


def test_without_click_the_message_says_what_to_install(monkeypatch):
    monkeypatch.delitem(sys.modules, "cosmosservice.cli.commands", raising=False)
    monkeypatch.setitem(sys.modules, "click", None)
    with pytest.raises(SystemExit, match=r"pip install 'cosmosservice\[cli\]'"):
        package.main()


def test_an_adk_that_is_too_old_to_start_with_is_named(monkeypatch):
    monkeypatch.setattr(versions, "version", lambda name: "0.1")
    for name in ("commands", "setup"):
        monkeypatch.delitem(sys.modules, f"cosmosservice.cli.{name}", raising=False)
    monkeypatch.setitem(sys.modules, "cosmosservice.containers", None)
    with pytest.raises(SystemExit, match=r"google-adk 0\.1, .* not supported\. pip install '"):
        package.main()


def test_help_starts_fast_because_it_loads_no_service():
    code = "import sys, cosmosservice.cli.commands as _; print(*sys.modules)"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    heavy = {"cosmosservice.cosmos_session_service", "cosmosservice.data_converters"}
    assert not set(run.stdout.split()) & (heavy | {"azure.cosmos", "cosmos_emulator"})
