"""`python -m benchmarks`: runs the workloads, prints the figures, and writes docs/benchmarks.md
after a full run."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import dataclasses
import json
import logging
import os
import signal
import sys
import warnings
from collections.abc import Iterator

from rich.console import Console

from benchmarks import machine, report
from benchmarks.measure import precise_loop
from benchmarks.results import Result
from benchmarks.servers import ServerMissing
from benchmarks.stand import Stand
from benchmarks.workloads import WORKLOADS

BUSY = 0.5  # load per core


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks", description="The session service beside its peers."
    )
    parser.add_argument(
        "--quick", action="store_true", help="small sizes, few runs; does not write the docs"
    )
    parser.add_argument(
        "--only",
        action="append",
        choices=list(WORKLOADS),
        metavar="NAME",
        help=f"one workload (may be repeated; does not write the docs): {', '.join(WORKLOADS)}",
    )
    parser.add_argument("--json", action="store_true", help="print the figures as JSON")
    parser.add_argument(
        "--profile",
        action="store_true",
        help="print where this process's time goes (slows it down; does not write the docs)",
    )
    return parser.parse_args()


@contextlib.contextmanager
def profile(options: argparse.Namespace, console: Console) -> Iterator[None]:
    if not options.profile:
        yield
        return
    from pyinstrument import Profiler

    # One stack for everything. Otherwise tasks that await one another would be counted as waiting.
    profiler = Profiler(async_mode="disabled")
    with profiler:
        yield
    console.print(profiler.output_text(), highlight=False, markup=False)


async def run(options: argparse.Namespace, console: Console) -> tuple[dict[str, str], list[Result]]:
    names = options.only or list(WORKLOADS)
    results = []
    async with Stand(quick=options.quick) as stand:
        for number, name in enumerate(names, 1):
            with console.status(f"{number} of {len(names)}: {name}"), profile(options, console):
                result = await WORKLOADS[name](stand)
            report.print_result(console, result)
            results.append(result)
        return machine.describe(stand.started.values()), results


def main() -> int:
    options = parse()
    # On SIGTERM the servers are stopped too, and their files removed.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    # Warnings and logs of the peers' libraries would also cost them time.
    warnings.simplefilter("ignore")
    logging.disable(logging.WARNING)
    console = Console(stderr=options.json)
    if os.getloadavg()[0] > BUSY * (os.cpu_count() or 1):
        console.print("[yellow]The machine is busy with other work: times will be off.[/]")
    try:
        with asyncio.Runner(loop_factory=precise_loop) as runner:
            described, results = runner.run(run(options, console))
    except KeyboardInterrupt:
        console.print("Interrupted.")
        return 130
    except ModuleNotFoundError as missing:
        console.print(f"[red]{missing.name} is missing: pip install -r requirements-bench.lock[/]")
        return 1
    except ServerMissing as missing:
        console.print(f"[red]{missing}[/]")
        return 1
    for what, value in described.items():
        console.print(f"{what}: {value}", highlight=False)
    if options.json:
        figures = {
            "machine": described,
            "workloads": [dataclasses.asdict(result) for result in results],
        }
        json.dump(figures, sys.stdout, indent=2, ensure_ascii=False)
        print()
    if not (options.quick or options.only or options.profile):
        report.write_docs(described, results)
        console.print(f"Written: docs/{report.PAGE.name}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
