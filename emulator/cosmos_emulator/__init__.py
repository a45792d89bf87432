"""A Cosmos DB emulator that runs inside the Python process."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from cosmos_emulator.version import __version__

if TYPE_CHECKING:
    from cosmos_emulator.auth import EMULATOR_KEY
    from cosmos_emulator.clock import Clock
    from cosmos_emulator.emulator import Emulator
    from cosmos_emulator.errors import ForeignFile, StorageError
    from cosmos_emulator.faults import Faults
    from cosmos_emulator.replicas import Replicas
    from cosmos_emulator.requests_log import RequestLog, RequestRecord

__all__ = [
    "EMULATOR_KEY",
    "Clock",
    "Emulator",
    "Faults",
    "ForeignFile",
    "Replicas",
    "RequestLog",
    "RequestRecord",
    "StorageError",
    "__version__",
]

# Loaded when they are first used: pytest loads this package at every start, for its fixtures.
_MODULES = {
    "EMULATOR_KEY": "auth",
    "Clock": "clock",
    "Emulator": "emulator",
    "Faults": "faults",
    "ForeignFile": "errors",
    "Replicas": "replicas",
    "RequestLog": "requests_log",
    "RequestRecord": "requests_log",
    "StorageError": "errors",
}


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f".{_MODULES[name]}", __name__), name)
