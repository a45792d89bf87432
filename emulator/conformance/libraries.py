"""The tests of libraries that keep on Cosmos DB what agents keep.

The libraries come from PyPI, into an environment of their own in `.conformance/libraries`. Left out
are tests that want a model's endpoint: they skip themselves.
"""

from __future__ import annotations

import subprocess
import venv
from functools import cache

import pytests
from outcomes import Outcome
from server import WORK, serving
from sources import checkout, distribution, version_of

FOLDER = WORK / "libraries"
PYTHON = FOLDER / "bin" / "python"
LANGCHAIN, LANGGRAPH = "langchain-azure-cosmosdb", "langgraph-checkpoint-cosmosdb"
AGENTS = "agent-framework-azure-cosmos"
# The source distributions of these have no tests.
CHECKOUTS = {
    LANGCHAIN: ("LANGCHAIN_AZURE", "langchain-ai/langchain-azure", "libs/azure-cosmosdb/tests"),
    AGENTS: ("AGENT_FRAMEWORK", "microsoft/agent-framework", "python/packages/azure-cosmos/tests"),
}
# The tests need more than the libraries do.
PACKAGES = (
    LANGCHAIN, LANGGRAPH, AGENTS, "langgraph-checkpoint-conformance", "langchain-tests",
    "agentstate-reducer", "aiohttp", "pytest", "pytest-asyncio", "pytest-timeout",
)  # fmt: skip
DATABASES = ("langgraph", "test_langgraph", "langgraph_test")  # the tests expect them


def run(library: str, only: list[str], expression: str) -> Outcome:
    if library in CHECKOUTS:
        tests = checkout(*CHECKOUTS[library])
        _install()
    else:
        _install()
        tests = distribution(library, PYTHON) / "tests"
    with serving() as account:
        return pytests.run(
            [file for file in tests.rglob("test*.py") if file.stem in only] or [tests],
            *("-k", expression, "--import-mode=importlib", "--continue-on-collection-errors"),
            environment=_environment(account["ACCOUNT_HOST"], account["ACCOUNT_KEY"]),
            paths=[tests.parent],
            python=PYTHON,
            using=f"{library} {version_of(library, PYTHON)}",
        )


@cache
def _install() -> None:
    if not PYTHON.exists():
        WORK.mkdir(exist_ok=True)
        venv.create(FOLDER, with_pip=True)
    subprocess.run([PYTHON, "-m", "pip", "install", "-q", *PACKAGES], check=True)


def _environment(host: str, key: str) -> dict[str, str]:
    code = (
        "import sys; from azure.cosmos import CosmosClient\n"
        "client = CosmosClient(sys.argv[1], sys.argv[2])\n"
        "for name in sys.argv[3:]: client.create_database_if_not_exists(name)\n"
    )
    subprocess.run([PYTHON, "-W", "ignore", "-c", code, host, key, *DATABASES], check=True)
    return {
        "COSMOSDB_ENDPOINT": host,
        "COSMOSDB_KEY": key,
        "COSMOSDB_CONN_STRING": f"AccountEndpoint={host};AccountKey={key};",
        "AZURE_COSMOS_ENDPOINT": host,
        "AZURE_COSMOS_KEY": key,
        "AZURE_COSMOS_DATABASE_NAME": "agents",
        "AZURE_COSMOS_CONTAINER_NAME": "agents",
    }
