"""The specs of Microsoft's JavaScript SDK, with Node: vitest runs `test/public` over HTTPS.

`sdk/cosmosdb/cosmos` of a checkout is copied to `.conformance/js`, where npm installs what it
needs.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import socket
import socketserver
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from outcomes import Outcome
from server import PORT, WORK, serving
from sources import LeftOut, checkout

COMPUTE_GATEWAY = 8903
FOLDER = WORK / "js"
COSMOS = FOLDER / "cosmos"
# What sources and specs import, and what runs them.
PACKAGES = (
    "vitest@^4.1.2", "nock@^13.5.6", "dotenv@^16.6.1", "assertion-error@^2", "proxy-agent@^6",
    "@azure/abort-controller@^2", "@azure/core-auth@^1", "@azure/core-rest-pipeline@^1",
    "@azure/core-tracing@^1", "@azure/core-util@^1", "@azure/identity@^4",
    "@azure/keyvault-keys@^4", "@azure/logger@^1", "fast-json-stable-stringify@^2",
    "priorityqueuejs@^2", "semaphore@^1", "tslib@^2",
)  # fmt: skip
# As the SDK's own configuration, without the tools of its repository.
CONFIG = """
import { resolve } from "node:path";
import { defineConfig } from "vitest/config";

const root = process.cwd();

export default defineConfig({
  test: {
    testTimeout: 120000,
    hookTimeout: 120000,
    fileParallelism: false,
    watch: false,
    fakeTimers: { toFake: ["setTimeout", "Date"] },
    include: ["test/public/**/*.spec.ts"],
    alias: [
      { find: "@azure/cosmos/package.json", replacement: resolve(root, "package.json") },
      { find: "@azure/cosmos", replacement: resolve(root, "src/index.ts") },
      { find: /^\\$internal\\/(.*)$/, replacement: resolve(root, "src/$1") },
    ],
  },
});
"""


def run(partitions: int, only: list[str], expression: str) -> Outcome:
    source = checkout("AZURE_SDK_FOR_JS", "Azure/azure-sdk-for-js", "sdk/cosmosdb/cosmos")
    if shutil.which("npx") is None:
        raise LeftOut("install Node, with npm")
    version = _prepare(source)
    options = [*only, *(["--testNamePattern", expression] if expression else [])]
    with serving(partitions=partitions) as account, _forwarding(PORT):
        files = _run(options, account)["testResults"]
    total = Outcome(f"@azure/cosmos {version}, Node {_node()}")
    for file in files:
        total.add(file["name"].partition("/test/")[2], _outcome(file))
    return total


@contextlib.contextmanager
def _forwarding(port: int) -> Iterator[None]:
    """Some specs talk to the compute gateway, which Microsoft's emulator has on a port of its own:
    what they send there goes to the same server."""

    class Forwarder(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            with socket.create_connection(("127.0.0.1", port)) as onwards:
                answers = threading.Thread(target=_copy, args=(onwards, self.request))
                answers.start()
                _copy(self.request, onwards)
                answers.join()

    with socketserver.ThreadingTCPServer(("127.0.0.1", COMPUTE_GATEWAY), Forwarder) as server:
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield
        server.shutdown()


def _copy(source: socket.socket, target: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while data := source.recv(65536):
            target.sendall(data)
        target.shutdown(socket.SHUT_WR)


def _prepare(source: Path) -> str:
    """Copies sources and specs, and installs what they need; returns the version of the SDK."""
    shutil.rmtree(COSMOS, ignore_errors=True)
    COSMOS.mkdir(parents=True)
    for name in ("src", "test"):
        shutil.copytree(source / name, COSMOS / name)
    shutil.copy(source / "package.json", COSMOS)
    (COSMOS / "tsconfig.json").write_text('{"compilerOptions":{"target":"es2022"}}\n')
    (COSMOS / "vitest.config.ts").write_text(CONFIG)
    if not (FOLDER / "node_modules").is_dir():
        (FOLDER / "package.json").write_text('{"private":true,"type":"module"}\n')
        command = ["npm", "install", "--no-audit", "--no-fund", "--silent", *PACKAGES]
        subprocess.run(command, cwd=FOLDER, check=True)
    return str(json.loads((source / "package.json").read_text())["version"])


def _run(options: list[str], account: dict[str, str]) -> dict[str, Any]:
    results = WORK / "outcomes" / "javascript.json"
    results.parent.mkdir(exist_ok=True)
    results.unlink(missing_ok=True)
    # The specs leave certificates unchecked for this name only.
    host = account["ACCOUNT_HOST"].replace("127.0.0.1", "localhost")
    environment = {
        **os.environ,
        **account,
        "ACCOUNT_HOST": host,
        "NODE_OPTIONS": "--dns-result-order=ipv4first --no-warnings",
    }
    command = ["npx", "vitest", "run", "--reporter=json", f"--outputFile={results}", *options]
    subprocess.run(command, cwd=COSMOS, env=environment, check=False, stdout=subprocess.DEVNULL)
    found: dict[str, Any] = json.loads(results.read_text())
    return found


def _outcome(file: dict[str, Any]) -> Outcome:
    outcome = Outcome()
    for test in file["assertionResults"]:
        outcome.passed += test["status"] == "passed"
        if test["status"] == "failed":
            reason = " ".join("".join(test["failureMessages"][:1]).split())[:300]
            outcome.failures.append(f"{test['fullName']}\n    {reason}")
    return outcome


def _node() -> str:
    found = subprocess.run(["node", "--version"], check=True, capture_output=True, text=True)
    return found.stdout.strip().removeprefix("v")
