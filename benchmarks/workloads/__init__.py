"""One function for each promise. The order is the report's."""

from collections.abc import Awaitable, Callable

from benchmarks.results import Result
from benchmarks.stand import Stand
from benchmarks.workloads.gets import get_cold
from benchmarks.workloads.lists import list_sessions
from benchmarks.workloads.turns import turn, turn_long

Workload = Callable[[Stand], Awaitable[Result]]

WORKLOADS: dict[str, Workload] = {
    workload.__name__: workload for workload in (turn, get_cold, turn_long, list_sessions)
}
