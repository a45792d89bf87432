"""The deployment templates create what the code would create."""

import json
import re
import shlex
from pathlib import Path

import pytest
import yaml

from cosmosservice.account.settings import Settings
from cosmosservice.cli import provision
from cosmosservice.containers import CONTAINERS
from cosmosservice.sessions.store.documents import EVENTS_CONTAINER, SESSIONS_CONTAINER

ROOT = Path(__file__).parents[2]
MAIN = (ROOT / "deploy/main.bicep").read_text()
DATABASE = (ROOT / "deploy/database.bicep").read_text()
SETTINGS = Settings(
    endpoint="https://contoso.documents.azure.com:443/",
    database="o'brien",
    session_container="chats",
    conversation_container="turns",
)


def test_containers_json_is_what_the_code_creates():
    text = (ROOT / "deploy/containers.json").read_text()
    assert text == provision.containers_json() + "\n", "run `make containers`"


@pytest.mark.parametrize(
    ("name", "definition"), [("sessions", SESSIONS_CONTAINER), ("events", EVENTS_CONTAINER)]
)
def test_containers_json_has_partition_key_indexing_and_ttl(name, definition):
    deployed = json.loads((ROOT / "deploy/containers.json").read_text())[name]
    assert deployed == {
        "partitionKey": {"paths": [definition.partition_key], "kind": "Hash", "version": 2},
        "indexingPolicy": definition.indexing_policy,
        "defaultTtl": -1,
    }


def test_every_container_is_deployed_under_its_default_name():
    deployed = json.loads((ROOT / "deploy/containers.json").read_text())
    assert set(deployed) == {each.default_name for each in CONTAINERS}
    assert "loadJsonContent('containers.json')" in DATABASE
    assert "for each in items(containers)" in DATABASE


def test_bicep_has_one_write_region():
    assert "enableMultipleWriteLocations: false" in MAIN


def test_bicep_passes_every_parameter_to_the_module():
    declared = set(re.findall(r"^param (\w+)", DATABASE, re.MULTILINE))
    handed = re.search(r"module database .*?params: \{(.*?)\n  \}", MAIN, re.DOTALL)[1]
    assert set(re.findall(r"^ +(\w+):", handed, re.MULTILINE)) == declared


def test_printed_bicep_is_complete_and_has_the_names_of_the_settings():
    text = provision.bicep(SETTINGS)
    assert "loadJsonContent" not in text
    assert "containers.json" not in text
    assert "param accountName string = 'contoso'\n" in text
    assert "param databaseName string = 'o\\'brien'\n" in text
    assert "param containerNames object = {\n  sessions: 'chats'\n  events: 'turns'\n}\n" in text
    assert "      '/session_id'\n" in text
    assert text.count("{") == text.count("}")


def test_printed_az_commands_name_the_same_things():
    commands = [shlex.split(line) for line in provision.az_commands(SETTINGS).splitlines()]

    def option(command, name):
        return command[command.index(name) + 1]

    _, _, database, *containers, role = commands
    assert option(database, "--name") == "o'brien"
    names = ["chats", "turns", "memories", "artifacts"]
    for command, name, definition in zip(containers, names, CONTAINERS, strict=True):
        assert option(command, "--account-name") == "contoso"
        assert option(command, "--name") == name
        made = {
            "partitionKey": {
                "paths": [option(command, "--partition-key-path")],
                "kind": "Hash",
                "version": int(option(command, "--partition-key-version")),
            },
            "indexingPolicy": json.loads(option(command, "--idx")),
            "defaultTtl": -1 if "--ttl=-1" in command else None,
        }
        if "--unique-key-policy" in command:
            made["uniqueKeyPolicy"] = json.loads(option(command, "--unique-key-policy"))
        assert made == definition.properties
    assert option(role, "--scope") == "/dbs/o'brien"


def test_workflow_runs_make_targets_that_exist():
    workflow = yaml.safe_load((ROOT / ".github/workflows/ci.yml").read_text())
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    for job in workflow["jobs"].values():
        for step in job["steps"]:
            if step.get("run", "").startswith("make "):
                assert set(step["run"].split()[1:]) <= targets
