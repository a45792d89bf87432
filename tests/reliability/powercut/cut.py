"""Kills a writing process at a random moment and checks the content of its file."""

from __future__ import annotations

import pathlib
import random
import sqlite3
import subprocess
import sys
import time
from dataclasses import dataclass, field

from cosmos_emulator import Emulator
from tests.support.raw import raw_client

WRITER = pathlib.Path(__file__).with_name("writer.py")


@dataclass
class Cut:
    """What was acknowledged before the kill, and what is wrong with the file after it."""

    acknowledged: int = 0
    finished: bool = False  # before it could be killed
    problems: list[str] = field(default_factory=list)


class Ledger:
    """What the file must contain, according to everything that was acknowledged in all cuts so
    far."""

    def __init__(self) -> None:
        self._versions: dict[str, int] = {}
        self._gone: set[str] = set()
        self._batches: list[list[str]] = []

    def take(self, line: str) -> bool:
        kind, *rest = line.split()
        if kind == "+":
            self._versions[rest[0]] = int(rest[1])
        elif kind == "-":
            self._versions.pop(rest[0])
            self._gone.add(rest[0])
        elif kind == "=":
            self._batches.append(rest)
            self._versions |= dict.fromkeys(rest, 1)
        return kind in "+-="

    def check(self, stored: dict[str, int], running: int) -> list[str]:
        """`running` is the item that was being written at the end: it may be newer."""
        problems = []
        for name, version in self._versions.items():
            found = stored.get(name)
            ahead = name == str(running) and (found is None or found > version)
            if found != version and not ahead:
                problems.append(f"{name}: version {found} instead of {version}")
        problems += [f"{name}: is back" for name in self._gone & stored.keys()]
        known = self._versions.keys() | self._gone | {str(running), str(running + 1)}
        parts = [f"{running}-{part}" for part in range(3)]
        if any(part in stored for part in parts) != all(part in stored for part in parts):
            problems.append(f"{running}: half of a batch")
        problems += [f"{name}: a stranger" for name in stored.keys() - known - set(parts)]
        # Writes that were under way are known from now on.
        for name in (str(running), str(running + 1), *parts):
            if name in stored:
                self._versions[name] = stored[name]
            elif self._versions.pop(name, None) is not None:
                self._gone.add(name)
        return problems


def cut(path: pathlib.Path, ledger: Ledger, first: int, writes: int, rng: random.Random) -> Cut:
    """Runs the writer once and ends it with kill -9."""
    result = Cut()
    wanted = rng.randint(1, writes)
    process = subprocess.Popen(
        [sys.executable, str(WRITER), str(path), str(first), str(writes)],
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    with process.stdout as lines:
        running = first
        for line in lines:
            if line.strip() == "done":
                result.finished = True
            elif ledger.take(line):
                result.acknowledged += 1
                running = int(line.split()[1].partition("-")[0])
            if result.acknowledged == wanted:
                time.sleep(rng.random() * 0.002)
                process.kill()
                wanted = -1
        process.wait()
    result.problems = check_file(path, ledger, running)
    return result


def check_file(path: pathlib.Path, ledger: Ledger, running: int) -> list[str]:
    """Opens the file as the next start would."""
    with (
        Emulator(path) as emulator,
        raw_client(emulator) as client,
    ):
        container = client.get_database_client("db").get_container_client("c")
        found = container.query_items(
            "SELECT c.id, c.version FROM c", enable_cross_partition_query=True
        )
        stored = {body["id"]: body["version"] for body in found}
        problems = ledger.check(stored, running)
        container.upsert_item({"id": "alive", "pk": "p", "version": 1})
        container.delete_item("alive", "p")
    with sqlite3.connect(path) as connection:
        (verdict,) = connection.execute("PRAGMA integrity_check").fetchone()
    connection.close()
    return problems + ([] if verdict == "ok" else [f"integrity check: {verdict}"])
