"""One function for each promise, in the order of the report."""

from collections.abc import Awaitable, Callable

from benchmarks.results import Result
from benchmarks.stand import Stand
from benchmarks.workloads.appends import append_deltas, append_plain
from benchmarks.workloads.costs import cpu, growth, request_units, throughput
from benchmarks.workloads.gets import get_cold, get_recent, get_warm
from benchmarks.workloads.lists import list_sessions
from benchmarks.workloads.memory import memory
from benchmarks.workloads.moments import burst, closing, start, tail
from benchmarks.workloads.runner import runner, runner_long
from benchmarks.workloads.tenfold import tenfold
from benchmarks.workloads.turns import turn, turn_long

Workload = Callable[[Stand], Awaitable[Result]]

WORKLOADS: dict[str, Workload] = {
    workload.__name__: workload
    for workload in (
        runner,
        runner_long,
        append_plain,
        append_deltas,
        turn,
        get_cold,
        get_warm,
        turn_long,
        tail,
        burst,
        get_recent,
        list_sessions,
        throughput,
        cpu,
        request_units,
        memory,
        growth,
        tenfold,
        start,
        closing,
    )
}
