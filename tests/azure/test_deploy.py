"""The deployment templates create what the code would create."""

import json
import re
import shlex
from pathlib import Path

import pycep
import pytest
import yaml
from lark.exceptions import ParseError

from cosmosservice.account.settings import Settings
from cosmosservice.cli import provision
from cosmosservice.containers import CONTAINERS
from cosmosservice.memory.definition import with_vectors
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


TEMPLATES = {path.name: path.read_text() for path in sorted((ROOT / "deploy").glob("*.bicep"))}
TEMPLATES["printed"] = provision.bicep(SETTINGS)
TEMPLATES["printed, with vectors"] = provision.bicep(SETTINGS, vectors=768)


@pytest.mark.parametrize("text", TEMPLATES.values(), ids=TEMPLATES)
def test_bicep_keeps_to_its_grammar(text):
    """The workflow compiles the templates; here there is only a parser."""
    assert pycep.BicepParser().parse(text=text)["resources"] or "module" in text


@pytest.mark.parametrize("at", ["\nparam ", " = {\n", "\n}\n"])
def test_the_grammar_refuses_what_is_no_bicep(at):
    with pytest.raises(ParseError):
        pycep.BicepParser().parse(text=MAIN.replace(at, " ", 1))


def test_containers_json_is_what_the_code_creates():
    text = (ROOT / "deploy/containers.json").read_text()
    assert text == provision.containers_json() + "\n", "run `make containers`"


@pytest.mark.parametrize(
    ("name", "definition"), [("sessions", SESSIONS_CONTAINER), ("events", EVENTS_CONTAINER)]
)
def test_containers_json_has_partition_key_indexing_and_ttl(name, definition):
    deployed = json.loads((ROOT / "deploy/containers.json").read_text())["plain"][name]
    assert deployed == {
        "partitionKey": {"paths": [definition.partition_key], "kind": "Hash", "version": 2},
        "indexingPolicy": definition.indexing_policy,
        "defaultTtl": -1,
    }


def test_every_container_is_deployed_under_its_default_name():
    deployed = json.loads((ROOT / "deploy/containers.json").read_text())["plain"]
    assert set(deployed) == {each.default_name for each in CONTAINERS}
    assert "loadJsonContent('containers.json')" in DATABASE
    assert "for each in items(containers.plain)" in DATABASE


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


def test_containers_json_has_what_vectors_need():
    found = json.loads((ROOT / "deploy/containers.json").read_text())
    wanted = with_vectors(768)
    memories = found["plain"]["memories"] | {
        "indexingPolicy": found["vectors"]["indexingPolicy"],
        "vectorEmbeddingPolicy": {
            "vectorEmbeddings": [found["vectors"]["vectorEmbedding"] | {"dimensions": 768}]
        },
    }
    assert memories == wanted.properties


def test_vectors_have_throughput_of_their_own_and_their_capability():
    """Azure refuses a vector policy on a container that shares the throughput of its database."""
    assert "options: each.key == 'memories' ? memoryOptions : {}" in DATABASE
    assert "vectorDimensions > 0 ? [{ name: 'EnableNoSQLVectorSearch' }] : []" in MAIN
    assert "serverless ? [{ name: 'EnableServerless' }] : []" in MAIN


def test_printed_az_commands_and_bicep_create_vectors_on_request():
    text = provision.az_commands(SETTINGS, vectors=768)
    (line,) = [shlex.split(each) for each in text.splitlines() if "--vector-embeddings" in each]
    policy = json.loads(line[line.index("--vector-embeddings") + 1])
    assert policy == with_vectors(768).vector_embedding_policy
    assert json.loads(line[line.index("--idx") + 1]) == with_vectors(768).indexing_policy
    assert "param vectorDimensions int = 768\n" in provision.bicep(SETTINGS, vectors=768)
    assert "param vectorDimensions int = 0\n" in provision.bicep(SETTINGS)


@pytest.mark.parametrize("path", sorted((ROOT / "deploy").glob("*.bicep")), ids=lambda p: p.name)
def test_modules_are_given_parameters_that_they_declare_and_all_that_have_no_default(path):
    text = path.read_text()
    for file, given in re.findall(
        r"^module \w+ '(.+?)' = \{.*?params: \{(.*?)\n  \}", text, re.M | re.S
    ):
        module = (ROOT / "deploy" / file).read_text()
        declared = dict(re.findall(r"^param (\w+) [\w\[\]]+( =)?", module, re.M))
        names = set(re.findall(r"^    (\w+):", given, re.M))
        assert names <= set(declared), file
        assert {name for name, default in declared.items() if not default} <= names, file
    for name, output in re.findall(r"\b(\w+)\.outputs\.(\w+)", text):
        file = re.search(rf"^module {name} '(.+?)'", text, re.M)[1]
        assert f"output {output} " in (ROOT / "deploy" / file).read_text()


@pytest.mark.parametrize("path", sorted((ROOT / "deploy").glob("*.bicep")), ids=lambda p: p.name)
def test_role_assignments_are_made_one_after_the_other_and_say_for_what(path):
    text = path.read_text()
    for kind, loop in re.findall(
        r"(@batchSize\(1\)\n)?resource \w+ '[^']*[rR]oleAssignments@[^']*' = (\[for)?", text
    ):
        assert bool(kind) == bool(loop)
    roles = re.findall(r"Microsoft.Authorization/roleAssignments@.*?\n\}", text, re.S)
    assert all("principalType" in each for each in roles)


def test_azd_deploys_the_agent_from_files_that_exist():
    project = yaml.safe_load((ROOT / "azure.yaml").read_text())
    assert (ROOT / project["infra"]["path"] / (project["infra"]["module"] + ".bicep")).exists()
    agent = project["services"]["agent"]
    dockerfile = (ROOT / agent["docker"]["path"]).read_text()
    for path in re.findall(r"^COPY (?!--)(\S+)", dockerfile, re.M):
        assert (ROOT / path).exists()
    template = (ROOT / "deploy/azd.bicep").read_text()
    given = json.loads((ROOT / "deploy/azd.parameters.json").read_text())["parameters"]
    assert set(given) <= set(re.findall(r"^param (\w+)", template, re.M))
    assert "'azd-service-name': 'agent'" in (ROOT / "deploy/agent-app.bicep").read_text()
    assert "AZURE_CONTAINER_REGISTRY_ENDPOINT" in template  # where azd pushes


def test_the_workflow_compiles_every_template():
    workflow = (ROOT / ".github/workflows/ci.yml").read_text()
    for name in ("azd", "main", "storage"):  # and the modules that they name
        assert f"az bicep build --file deploy/{name}.bicep" in workflow


@pytest.mark.parametrize("name", ["ci.yml", "weekly.yml"])
def test_workflow_runs_make_targets_that_exist(name):
    workflow = yaml.safe_load((ROOT / ".github/workflows" / name).read_text())
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    for job in workflow["jobs"].values():
        assert set(job.get("strategy", {}).get("matrix", {}).get("target", [])) <= targets
        for step in job["steps"]:
            if step.get("run", "").startswith("make ") and "matrix." not in step["run"]:
                assert set(step["run"].split()[1:]) <= targets
