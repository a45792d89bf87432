"""A Cosmos DB emulator that runs inside the Python process."""

from .auth import EMULATOR_KEY
from .clock import Clock
from .emulator import Emulator
from .errors import ForeignFile, StorageError
from .faults import Faults
from .replicas import Replicas
from .requests_log import RequestLog, RequestRecord

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
]
