"""The machine and the versions that the figures were measured on."""

from __future__ import annotations

import os
import platform
import sys
from collections.abc import Iterable
from importlib.metadata import version
from pathlib import Path

import psutil

from benchmarks.servers import Server

PACKAGES = (
    "cosmosservice", "google-adk", "azure-cosmos", "aiohttp", "pydantic",
    "sqlalchemy", "asyncpg", "redis",
)  # fmt: skip


def processor() -> str:
    """The name of the processor model. platform.processor() is empty on many Linux systems."""
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()


def describe(servers: Iterable[Server]) -> dict[str, str]:
    """Machine and versions, without host names or paths."""
    memory = psutil.virtual_memory().total / 2**30
    cores = len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count()
    return {
        "machine": f"{processor()}, {cores} cores, {memory:.0f} GB",
        "system": f"{platform.system()} {platform.release().split('-')[0]}",
        "Python": platform.python_version(),
        "packages": ", ".join(f"{name} {version(name)}" for name in PACKAGES),
        "servers": ", ".join(f"{server.name} {server.version}" for server in servers),
    }
