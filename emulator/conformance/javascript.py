"""Run the specs of Microsoft's JavaScript SDK against the emulator, over HTTPS, with Node.

    python emulator/conformance/javascript.py CHECKOUT [spec …] [--partitions 4]

CHECKOUT is a work tree of azure-sdk-for-js. Its `sdk/cosmosdb/cosmos` is copied to
`.conformance/js`, where npm installs what it needs, and vitest runs `test/public`. The failures
with their reasons go to `.conformance/failures-js-<partitions>.txt`.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import shutil
import socket
import socketserver
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import figures
from server import WORK, serving

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


def main() -> None:
    parser = argparse.ArgumentParser(description="the JavaScript SDK's specs against the emulator")
    parser.add_argument("checkout", type=Path, help="a work tree of azure-sdk-for-js")
    parser.add_argument("specs", nargs="*", help="paths of specs; default: all")
    parser.add_argument("--partitions", type=int, default=1)
    parser.add_argument("--port", type=int, default=8081)
    options = parser.parse_args()
    version = prepare(options.checkout)
    results = WORK / f"outcomes-js-{options.partitions}.json"
    with serving(options.port, options.partitions) as account, forwarding(options.port):
        run(options.specs, results, account)
    passed, of = report(json.loads(results.read_text()), options.partitions)
    if not options.specs:
        suite = f"specs of the JavaScript SDK, {_ranges(options.partitions)}"
        figures.write({suite: (passed, of, f"@azure/cosmos {version}, Node {_node()}")})


@contextlib.contextmanager
def forwarding(port: int) -> Iterator[None]:
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


def prepare(checkout: Path) -> str:
    """Copies sources and specs, and installs what they need; returns the version of the SDK."""
    source = checkout / "sdk" / "cosmosdb" / "cosmos"
    if not (source / "test" / "public").is_dir():
        sys.exit(f"{checkout}: no work tree of azure-sdk-for-js, or one without sdk/cosmosdb")
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


def run(specs: list[str], results: Path, account: dict[str, str]) -> None:
    results.unlink(missing_ok=True)
    # The specs leave certificates unchecked for this name only.
    host = account["ACCOUNT_HOST"].replace("127.0.0.1", "localhost")
    environment = {
        **os.environ,
        **account,
        "ACCOUNT_HOST": host,
        "NODE_OPTIONS": "--dns-result-order=ipv4first --no-warnings",
    }
    command = ["npx", "vitest", "run", "--reporter=json", f"--outputFile={results}", *specs]
    subprocess.run(command, cwd=COSMOS, env=environment, check=False, stdout=subprocess.DEVNULL)
    if not results.exists():
        sys.exit("vitest has left no results")


def report(outcome: dict[str, Any], partitions: int) -> tuple[int, int]:
    total: Counter[str] = Counter()
    failures = []
    for file in outcome["testResults"]:
        name = file["name"].partition("/test/")[2]
        counted = Counter(test["status"] for test in file["assertionResults"])
        total += counted
        print(f"{name:66} {_share(counted):>9}")
        for test in file["assertionResults"]:
            if test["status"] == "failed":
                reason = " ".join("".join(test["failureMessages"][:1]).split())[:300]
                failures.append(f"{name}: {test['fullName']}\n    {reason}")
    print(f"{'all':66} {_share(total):>9}")
    (WORK / f"failures-js-{partitions}.txt").write_text("\n".join(failures) + "\n")
    return total["passed"], total["passed"] + total["failed"]


def _share(counted: Counter[str]) -> str:
    return f"{counted['passed']}/{counted['passed'] + counted['failed']}"


def _ranges(partitions: int) -> str:
    return "one range" if partitions == 1 else f"{partitions} ranges"


def _node() -> str:
    found = subprocess.run(["node", "--version"], check=True, capture_output=True, text=True)
    return found.stdout.strip().removeprefix("v")


if __name__ == "__main__":
    main()
