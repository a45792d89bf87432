"""The database and containers as `az` commands and as Bicep, from the definitions of the services.

`python -m cosmosservice.cli.provision` prints `deploy/containers.json`, which the Bicep files load.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from cosmosservice.account.definitions import ContainerDefinition
from cosmosservice.account.settings import Settings
from cosmosservice.containers import CONTAINERS
from cosmosservice.memory.definition import MEMORIES_CONTAINER, with_vectors

DATA_CONTRIBUTOR = "00000000-0000-0000-0000-000000000002"
LOADED = "loadJsonContent('containers.json')"


def definitions(vectors: int = 0) -> list[ContainerDefinition]:
    """All containers; that of memories with a policy for vectors of so many dimensions."""
    memories = with_vectors(vectors) if vectors else MEMORIES_CONTAINER
    return [memories if each is MEMORIES_CONTAINER else each for each in CONTAINERS]


def containers_json() -> str:
    """The properties for Azure Resource Manager, by default name and without the actual name;
    and what memories have in addition if there is an embedder."""
    embedded = with_vectors(1)
    assert embedded.vector_embedding_policy is not None
    (vector,) = embedded.vector_embedding_policy["vectorEmbeddings"]
    found = {
        "plain": {each.default_name: each.properties for each in CONTAINERS},
        "vectors": {
            "indexingPolicy": embedded.indexing_policy,
            "vectorEmbedding": {k: v for k, v in vector.items() if k != "dimensions"},
        },
    }
    return json.dumps(found, indent=2)


def bicep(settings: Settings, *, vectors: int = 0) -> str:
    """`deploy/database.bicep` with the containers in it and the settings as its defaults."""
    names = {each.default_name: each.name(settings) for each in CONTAINERS}
    defaults: dict[str, Any] = {
        "accountName": account_name(settings),
        "databaseName": settings.database,
        "containerNames": {default: name for default, name in names.items() if default != name},
        "vectorDimensions": vectors,
    }

    def parameter(declared: re.Match[str]) -> str:
        name, kind = declared[1], declared[2]
        if name not in defaults:
            return declared[0]
        return f"param {name} {kind} = {_literal(defaults[name])}"

    text = _template().replace(LOADED, _literal(json.loads(containers_json())))
    text = re.sub(r"\n//\n// containers\.json .*", "", text)
    return re.sub(r"param (\w+) (string|object|int)\b.*", parameter, text).rstrip()


def az_commands(settings: Settings, *, update: bool = False, vectors: int = 0) -> str:
    """Creates everything or, with `update`, repairs existing containers."""
    account = f'--account-name {shlex.quote(account_name(settings))} --resource-group "$GROUP"'
    database = shlex.quote(settings.database)
    lines = [
        "GROUP='resource group of the account'",
        "PRINCIPAL_ID='object id of the identity that reads and writes'",
        f"az cosmosdb sql database create {account} --name {database}",
    ]
    for definition in definitions(vectors):
        name = shlex.quote(definition.name(settings))
        fixed = f" --partition-key-path {definition.partition_key} --partition-key-version 2"
        if definition.unique_key is not None:
            fixed += f" --unique-key-policy {_argument(definition.unique_key_policy)}"
        if definition.vector_embedding_policy is not None:
            fixed += f" --vector-embeddings {_argument(definition.vector_embedding_policy)}"
        lines.append(
            f"az cosmosdb sql container {'update' if update else 'create'} {account}"
            f" --database-name {database} --name {name}{'' if update else fixed}"
            f" --ttl={definition.default_ttl} --idx {_argument(definition.indexing_policy)}"
        )
    if update:
        return "\n".join([lines[0], *lines[3:]])
    scope = shlex.quote("/dbs/" + settings.database)
    lines.append(
        f"az cosmosdb sql role assignment create {account}"
        f' --role-definition-id {DATA_CONTRIBUTOR} --scope {scope} --principal-id "$PRINCIPAL_ID"'
    )
    return "\n".join(lines)


def _argument(value: Mapping[str, Any]) -> str:
    return shlex.quote(json.dumps(value, separators=(",", ":")))


def account_name(settings: Settings) -> str:
    return (urlsplit(settings.endpoint).hostname or "").split(".")[0]


def _template() -> str:
    here = Path(__file__).parent
    installed, checkout = here / "database.bicep", here.parents[1] / "deploy" / "database.bicep"
    return (installed if installed.exists() else checkout).read_text(encoding="utf-8")


def _literal(value: Any, indent: str = "") -> str:
    """JSON as Bicep writes it: no commas, single quotes, bare keys."""
    deeper = indent + "  "
    match value:
        case dict():
            inner = [f"{deeper}{key}: {_literal(each, deeper)}\n" for key, each in value.items()]
            return "{\n" + "".join(inner) + indent + "}"
        case list():
            inner = [f"{deeper}{_literal(each, deeper)}\n" for each in value]
            return "[\n" + "".join(inner) + indent + "]"
        case str():
            escaped = value.replace("\\", "\\\\").replace("'", "\\'").replace("${", "\\${")
            return f"'{escaped}'"
        case _:
            return json.dumps(value)


if __name__ == "__main__":
    print(containers_json())
