"""The FastAPI example, served by two uvicorn workers, on an emulator over HTTP."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from cosmos_emulator import Emulator
from cosmos_emulator.serving import serving

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.fixture
def address():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with Emulator() as emulator, serving(emulator) as endpoint:
        server = subprocess.Popen(
            [sys.executable, "-m", "uvicorn", "fastapi_app:app", "--app-dir", EXAMPLES,
             "--workers", "2", "--port", str(port), "--log-level", "warning"],
            env=os.environ | {
                "COSMOSDB_ENDPOINT": endpoint,
                "COSMOSDB_KEY": emulator.key,
                "COSMOSDB_DATABASE": "chat",
                "GOOGLE_API_KEY": "",
            },
        )  # fmt: skip
        address = f"http://127.0.0.1:{port}/users/ada/sessions"
        try:
            for _ in range(100):
                try:
                    request(address)
                    break
                except urllib.error.URLError:
                    assert server.poll() is None
                    time.sleep(0.5)
            yield address
        finally:
            server.terminate()
            server.wait()


def request(address, body=None):
    data = None if body is None else json.dumps(body).encode()
    headers = {"content-type": "application/json"}
    with urllib.request.urlopen(urllib.request.Request(address, data, headers)) as answer:
        return json.load(answer)


def test_two_workers_serve_one_conversation(address):
    session = request(address, {})["session"]
    turns = f"{address}/{session}/turns"
    said = request(turns, {"text": "Take 146."})["said"]
    assert "146 reasons" in said[-1]
    workers = set()

    def ask():
        answer = request(turns, {"text": "Do you know my number?"})
        assert answer["said"] == ["Of course. You picked 146."]
        workers.add(answer["worker"])

    def others():
        while len(workers) < 2 and time.monotonic() < deadline:
            request(address)

    # An idle server gives every request to the same worker, so others are sent at the same time.
    deadline = time.monotonic() + 60
    with ThreadPoolExecutor(3) as pool:
        busy = [pool.submit(others) for _ in range(3)]
        while len(workers) < 2 and time.monotonic() < deadline:
            ask()
        for each in busy:
            each.result()
    assert len(workers) == 2


def test_of_simultaneous_turns_the_later_ones_get_a_conflict(address):
    session = request(address, {})["session"]

    def turn(number):
        try:
            request(f"{address}/{session}/turns", {"text": f"Take {number}."})
            return 200
        except urllib.error.HTTPError as error:
            return error.code

    with ThreadPoolExecutor(8) as pool:
        outcomes = list(pool.map(turn, range(24)))
    assert set(outcomes) <= {200, 409}
    assert 200 in outcomes
    assert request(f"{address}/{session}/turns", {"text": "Hello"})["said"]
