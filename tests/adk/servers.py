"""The real `adk` command, started as a user would start it."""

import contextlib
import json
import os
import shutil
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

ADK = Path(sys.executable).parent / "adk"
AGENTS = Path(__file__).parents[2] / "examples" / "agents"
SERVICES_YAML = """\
services:
  - scheme: cosmosdb
    type: session
    class: cosmosservice.adk.session_service
"""


def clean_environment() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if not name.startswith("COSMOSDB_")}


def agents_folder(folder: Path, *, services_yaml: bool = False) -> Path:
    """A copy of the example agents, registered by services.py or by services.yaml."""
    shutil.copytree(AGENTS, folder, ignore=shutil.ignore_patterns("__pycache__", ".adk"))
    if services_yaml:
        folder.joinpath("services.py").unlink()
        folder.joinpath("services.yaml").write_text(SERVICES_YAML)
    return folder


class AdkServer:
    def __init__(self, command: str, uri: str, agents: Path, *options: str) -> None:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        self.url = f"http://127.0.0.1:{port}"
        self.log = agents.parent / f"{command}-{port}.log"
        with self.log.open("wb") as log:
            self._process = subprocess.Popen(
                [ADK, command, f"--port={port}", f"--session_service_uri={uri}", *options, agents],
                cwd=agents.parent,
                env=clean_environment(),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
            )

    def __enter__(self) -> "AdkServer":
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline and self._process.poll() is None:
            with contextlib.suppress(urllib.error.URLError, ConnectionError):
                self.get("/list-apps")
                return self
            time.sleep(0.1)
        self.__exit__()
        raise AssertionError("adk did not start:\n" + self.log.read_text())

    def __exit__(self, *_: object) -> None:
        self._process.terminate()
        self._process.wait(30)

    def get(self, path: str):
        return self._call(urllib.request.Request(self.url + path))

    def post(self, path: str, body: dict):
        headers = {"Content-Type": "application/json"}
        return self._call(
            urllib.request.Request(self.url + path, json.dumps(body).encode(), headers)
        )

    def run(self, session_id: str, text: str):
        message = {"role": "user", "parts": [{"text": text}]}
        return self.post(
            "/run",
            {
                "app_name": "greeter",
                "user_id": "user",
                "session_id": session_id,
                "new_message": message,
            },
        )

    def _call(self, request: urllib.request.Request):
        try:
            with urllib.request.urlopen(request, timeout=30) as response:
                return json.load(response)
        except urllib.error.HTTPError as error:
            text = error.read().decode()
            raise AssertionError(f"{error}: {text}\n{self.log.read_text()}") from None


def texts(events: list[dict]) -> list[str]:
    parts = [part for event in events for part in event.get("content", {}).get("parts", [])]
    return [part["text"] for part in parts if "text" in part]
