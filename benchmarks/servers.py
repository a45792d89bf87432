"""The servers of the peers, started on free loopback ports and stopped again."""

from __future__ import annotations

import glob
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

START_SECONDS = 30.0


class ServerMissing(Exception):
    """A server that the benchmark needs is not installed on this machine."""


@dataclass(frozen=True)
class Server:
    name: str
    version: str
    port: int


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def find(program: str, package: str) -> str:
    # Debian keeps PostgreSQL's programs off the path, in one folder per major version.
    found = shutil.which(program) or next(
        iter(sorted(glob.glob(f"/usr/lib/postgresql/*/bin/{program}"), reverse=True)), None
    )
    if found is None:
        raise ServerMissing(f"{program} was not found: apt-get install {package}")
    return found


def version_of(program: str) -> str:
    printed = subprocess.run([program, "--version"], capture_output=True, text=True, check=True)
    match = re.search(r"\d+(\.\d+)+", printed.stdout)
    return match.group() if match else "unknown"


def wait_for(port: int, process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline:
        if process.poll() is not None:
            raise RuntimeError(f"A server ended with code {process.returncode} while starting.")
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
            return
        except OSError:
            time.sleep(0.05)
    raise RuntimeError(f"A server did not answer within {START_SECONDS:.0f} s.")


@contextmanager
def running(command: list[str], port: int) -> Iterator[None]:
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        wait_for(port, process)
        yield
    finally:
        process.terminate()
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


@contextmanager
def scratch(owner: str | None = None) -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp(prefix="bench-"))
    try:
        if owner is not None:
            shutil.chown(folder, owner)
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def postgres() -> Iterator[Server]:
    """PostgreSQL with its default settings."""
    initdb, program = find("initdb", "postgresql"), find("postgres", "postgresql")
    port = free_port()
    # PostgreSQL refuses to run as root.
    root = os.geteuid() == 0
    become = ["runuser", "-u", "postgres", "--"] if root else []
    with scratch("postgres" if root else None) as folder:
        data = str(folder / "data")
        subprocess.run(
            [*become, initdb, "-D", data, "-U", "bench", "-A", "trust", "-E", "UTF8"],
            check=True,
            capture_output=True,
            cwd=folder,
        )
        command = [program, "-D", data, "-p", str(port), "-k", str(folder), "-h", "127.0.0.1"]
        with running([*become, *command], port):
            ready = [find("pg_isready", "postgresql"), "-q", "-h", "127.0.0.1"]
            subprocess.run([*ready, "-p", str(port), "-t", "20"], check=True)
            yield Server("PostgreSQL", version_of(program), port)


@contextmanager
def redis() -> Iterator[Server]:
    """redis-server with its default settings."""
    program = find("redis-server", "redis-server")
    port = free_port()
    with scratch() as folder:
        command = [program, "--port", str(port), "--bind", "127.0.0.1", "--dir", str(folder)]
        with running(command, port):
            yield Server("Redis", version_of(program), port)


@contextmanager
def emulator(path: Path | None = None) -> Iterator[Server]:
    """The Cosmos DB emulator's HTTP server, in a process of its own."""
    port = free_port()
    command = [sys.executable, "-m", "cosmos_emulator", "--port", str(port)]
    if path is not None:
        command += ["--path", str(path)]
    with running(command, port):
        yield Server("cosmos_emulator", "of this repository", port)
