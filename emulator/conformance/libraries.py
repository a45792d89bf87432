"""Run the tests of libraries that store what agents keep on Cosmos DB, against the emulator.

    python emulator/conformance/libraries.py LANGCHAIN_AZURE AGENT_FRAMEWORK

Both are checkouts: of langchain-ai/langchain-azure and of microsoft/agent-framework, whose tests
are not in what PyPI has. Those of langgraph-checkpoint-cosmosdb are in its source distribution.
The libraries themselves come from PyPI, into an environment of their own in
`.conformance/libraries`. Counted are tests that talk to the server; those that want a model's
endpoint are left out. The output is in `.conformance/outcomes`.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tarfile
import venv
from collections import Counter
from pathlib import Path

import figures
from server import WORK, serving

HERE = Path(__file__).resolve().parent
FOLDER = WORK / "libraries"
PYTHON = FOLDER / "bin" / "python"
LANGCHAIN, LANGGRAPH = "langchain-azure-cosmosdb", "langgraph-checkpoint-cosmosdb"
AGENTS = "agent-framework-azure-cosmos"
# The tests need more than the libraries do.
PACKAGES = (
    LANGCHAIN, LANGGRAPH, AGENTS, "langgraph-checkpoint-conformance", "langchain-tests",
    "agentstate-reducer",
    "aiohttp", "pytest", "pytest-asyncio", "pytest-timeout",
)  # fmt: skip
DATABASES = ("langgraph", "test_langgraph", "langgraph_test")


def main() -> None:
    parser = argparse.ArgumentParser(description="libraries' own tests against the emulator")
    parser.add_argument("langchain_azure", type=Path, help="a checkout")
    parser.add_argument("agent_framework", type=Path, help="a checkout")
    options = parser.parse_args()
    install()
    tests = {
        LANGCHAIN: options.langchain_azure / "libs" / "azure-cosmosdb" / "tests",
        LANGGRAPH: source_of(LANGGRAPH) / "tests",
        AGENTS: options.agent_framework / "python/packages/azure-cosmos/tests",
    }
    rows = {}
    with serving() as account:
        prepare(account)
        for library, folder in tests.items():
            if not folder.is_dir():
                sys.exit(f"{folder}: no such folder")
            found = run(library, folder, account)
            rows[f"{library}'s own tests"] = (*found, f"{library} {version_of(library)}")
            print(f"{library:40} {found[0]}/{found[1]}", flush=True)
    figures.write(rows)


def install() -> None:
    if not PYTHON.exists():
        WORK.mkdir(exist_ok=True)
        venv.create(FOLDER, with_pip=True)
    subprocess.run([PYTHON, "-m", "pip", "install", "-q", *PACKAGES], check=True)


def source_of(library: str) -> Path:
    version, name = version_of(library), library.replace("-", "_")
    folder = WORK / f"{name}-{version}"
    if not folder.exists():
        command = [PYTHON, "-m", "pip", "download", "-q", "--no-deps", "--dest", WORK]
        subprocess.run([*command, "--no-binary", library, f"{library}=={version}"], check=True)
        with tarfile.open(WORK / f"{folder.name}.tar.gz") as archive:
            archive.extractall(WORK, filter="data")
    return folder


def version_of(library: str) -> str:
    code = f"import importlib.metadata as m; print(m.version({library!r}))"
    found = subprocess.run([PYTHON, "-c", code], check=True, capture_output=True, text=True)
    return found.stdout.strip()


def prepare(account: dict[str, str]) -> None:
    """Makes the databases that tests expect."""
    code = (
        "import sys; from azure.cosmos import CosmosClient\n"
        "client = CosmosClient(sys.argv[1], sys.argv[2])\n"
        "for name in sys.argv[3:]: client.create_database_if_not_exists(name)\n"
    )
    host, key = account["ACCOUNT_HOST"], account["ACCOUNT_KEY"]
    subprocess.run([PYTHON, "-c", code, host, key, *DATABASES], check=True)


def run(library: str, folder: Path, account: dict[str, str]) -> tuple[int, int]:
    outcomes = WORK / "outcomes" / f"{library}.jsonl"
    outcomes.parent.mkdir(exist_ok=True)
    outcomes.unlink(missing_ok=True)
    host, key = account["ACCOUNT_HOST"], account["ACCOUNT_KEY"]
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([str(HERE), str(folder.parent)]),
        "OUTCOMES": str(outcomes),
        "COSMOSDB_ENDPOINT": host,
        "COSMOSDB_KEY": key,
        "COSMOSDB_CONN_STRING": f"AccountEndpoint={host};AccountKey={key};",
        "AZURE_COSMOS_ENDPOINT": host,
        "AZURE_COSMOS_KEY": key,
        "AZURE_COSMOS_DATABASE_NAME": "agents",
        "AZURE_COSMOS_CONTAINER_NAME": "agents",
    }
    command = [
        PYTHON, "-m", "pytest", "-q", "-p", "recorder", "-p", "no:cacheprovider",
        "-o", "asyncio_mode=auto", "--timeout=180", "--tb=native",
        "--continue-on-collection-errors", "-c", os.devnull,
        "--import-mode=importlib", "--rootdir", folder, folder,
    ]  # fmt: skip
    done = subprocess.run(
        command, cwd=folder.parent, env=environment, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False,
    )  # fmt: skip
    outcomes.with_suffix(".log").write_text(done.stdout)
    lines = outcomes.read_text().splitlines() if outcomes.exists() else []
    tests = [test for line in lines if (test := json.loads(line))["touched"]]
    counted = Counter(test["outcome"] for test in tests)
    for test in tests:
        if test["outcome"] == "failed":
            print(f"  {test['name']}\n    {test['reason']}")
    return counted["passed"], counted["passed"] + counted["failed"]


if __name__ == "__main__":
    main()
