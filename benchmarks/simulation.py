"""`python -m benchmarks.simulation`: the turns of a million daily users, in virtual time.

Each request takes its measured charge from a physical partition, by the emulator's own rule
(cosmos_emulator.throughput): so many RU in each second, then 429 with a time to wait. A refused
request comes again after that time; after nine refusals the SDK gives up, and the turn ends.

Sampled: one in SAMPLE of the turns, on that part of the throughput, for SECONDS at the peak.
The requests are not sent through the SDK, which would take a day of processor time.
"""

from __future__ import annotations

import argparse
import asyncio
import heapq
import itertools
import math
import random
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from benchmarks.charges import Charges, of_a_turn
from benchmarks.lanes import EVENTS_OF_A_TURN
from cosmos_emulator.throughput import Partition

SAMPLE = 10
SECONDS = 60
TURNS = 350  # a second, at the peak of docs/scale.md
PROVISIONED = {"events": 12_000, "sessions": 8_000}  # RU/s, for the peak and some more
LARGEST = 10_000  # RU/s of a physical partition
FEWEST = 4  # physical partitions of a container: its data needs them
ROUND_TRIP = 0.005
THINKS = 1.0  # seconds that the model takes before each event
QUIET = 2.0  # seconds after the last event until the session document is written
REFUSALS = 9
# How many times the peak there is, and how many times the throughput.
RUNS = ((1, 1), (3, 1), (10, 1), (3, 3), (10, 10))
PLOT = Path(__file__).parent.parent / "docs" / "benchmarks" / "simulation.svg"
COLOURS = ("#2563eb", "#d97706", "#dc2626")

Where = tuple[str, int]  # a container, and one of its physical partitions


class Request(NamedTuple):
    turn: Turn
    where: Where
    charge: float
    sent: float
    refused: int = 0


class Turn:
    """A get, the appends one after the other, and the session document in the background."""

    def __init__(self, charges: Charges, app: Where, user: Where, session: Where) -> None:
        reads = [(app, charges.read), (user, charges.read), (user, charges.read)]
        append = (THINKS, [(session, charges.create)])
        self.steps: list[tuple[float, list[tuple[Where, float]]]] = [
            (0.0, [*reads, (session, charges.query)]),
            *[append] * EVENTS_OF_A_TURN,
            (QUIET, [(user, charges.replace)]),
        ]
        self.under_way = 0
        self.failed = False

    def answered(self) -> bool:
        """Whether the next step may begin."""
        self.under_way -= 1
        return not self.under_way and not self.failed and bool(self.steps)

    def next_step(self, now: float) -> Iterator[Request]:
        pause, requests = self.steps.pop(0)
        self.under_way = len(requests)
        for where, charge in requests:
            yield Request(self, where, charge, now + pause)


@dataclass
class Outcome:
    """What happened in a run."""

    load: int
    throughput: int
    app: Where  # where the app document is
    count: dict[str, int]  # physical partitions of each container
    served: int = 0
    turns: int = 0
    failed: int = 0  # turns
    refused: Counter[Where] = field(default_factory=Counter)
    used: dict[Where, float] = field(default_factory=dict)
    first: tuple[float, Where] | None = None
    waits: list[float] = field(default_factory=list)  # of served requests
    waiting: Counter[int] = field(default_factory=Counter)  # requests in each second

    def wait(self, part: float) -> float:
        return sorted(self.waits)[int(part * (len(self.waits) - 1))]

    def named(self, where: Where) -> str:
        name = f"{where[0]} {where[1] + 1} of {self.count[where[0]]}"
        return f"{name}, with the app document" if where == self.app else name


def simulate(charges: Charges, load: int, throughput: int, seed: int = 1) -> Outcome:
    chance, order = random.Random(seed), itertools.count()
    rates = {name: rate * throughput for name, rate in PROVISIONED.items()}
    count = {name: max(FEWEST, math.ceil(rate / LARGEST)) for name, rate in rates.items()}
    partitions = {
        (name, number): Partition(rates[name] / count[name] / SAMPLE)
        for name in rates
        for number in range(count[name])
    }

    def somewhere(name: str) -> Where:
        return name, chance.randrange(count[name])

    outcome = Outcome(load, throughput, somewhere("sessions"), count)
    outcome.used = dict.fromkeys(partitions, 0.0)
    queue: list[tuple[float, int, Request]] = []

    def send(requests: Iterator[Request]) -> None:
        for each in requests:
            heapq.heappush(queue, (each.sent, next(order), each))

    begins = 0.0
    while (begins := begins + chance.expovariate(TURNS * load / SAMPLE)) < SECONDS:
        turn = Turn(charges, outcome.app, somewhere("sessions"), somewhere("events"))
        outcome.turns += 1
        send(turn.next_step(begins))
    while queue:
        now, _, request = heapq.heappop(queue)
        partition, turn = partitions[request.where], request.turn
        wait = partition.wait(now)
        if not wait:
            partition.used += request.charge
            outcome.served += 1
            outcome.waits.append(now - request.sent)
            if now < SECONDS:
                outcome.used[request.where] += request.charge * SAMPLE
            if turn.answered():
                send(turn.next_step(now + ROUND_TRIP))
            continue
        outcome.refused[request.where] += 1
        outcome.first = outcome.first or (now, request.where)
        if request.refused == REFUSALS:
            outcome.failed += not turn.failed
            turn.failed = True
            continue
        for second in range(int(now), int(now + wait) + 1):
            outcome.waiting[second] += 1
        again = request._replace(refused=request.refused + 1)
        heapq.heappush(queue, (now + wait, next(order), again))
    return outcome


def plot(outcomes: list[Outcome]) -> str:
    """The requests that wait in each second, a line for each run."""
    width, left, top, bottom = 820, 80, 52, 280
    most = max(max(each.waiting.values(), default=0) for each in outcomes) or 1
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {bottom + 40}"'
        ' font-family="system-ui, sans-serif" font-size="14" fill="#1e293b">',
        f'<rect width="{width}" height="{bottom + 40}" fill="#ffffff"/>',
        '<text x="16" y="26" font-size="16" font-weight="600">'
        "Requests that wait after a 429, throughput for the peak</text>",
        f'<text x="{left - 8}" y="{bottom}" text-anchor="end">0</text>',
        f'<text x="{left - 8}" y="{top}" text-anchor="end">{most * SAMPLE:,}</text>',
        f'<text x="{width - 20}" y="{bottom + 24}" text-anchor="end">{SECONDS} s</text>',
        f'<line x1="{left}" y1="{bottom}" x2="{width - 20}" y2="{bottom}" stroke="#94a3b8"/>',
    ]
    for number, (each, colour) in enumerate(zip(outcomes, COLOURS, strict=True)):
        points = " ".join(
            f"{left + second * (width - 20 - left) / (SECONDS - 1):.0f},"
            f"{bottom - each.waiting[second] / most * (bottom - top):.0f}"
            for second in range(SECONDS)
        )
        label = "the peak" if each.load == 1 else f"{each.load} × the peak"
        lines += [
            f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="2"/>',
            f'<text x="{left + 12 + 130 * number}" y="{bottom + 24}" fill="{colour}">'
            f"{label}</text>",
        ]
    return "\n".join([*lines, "</svg>", ""])


def describe(each: Outcome) -> None:
    refused = sum(each.refused.values())
    print(f"\n{each.load} × the peak, throughput for {each.throughput} ×: {each.turns:,} turns")
    print(f"  answered with 429: {refused:,} of {each.served + refused:,} requests")
    print(f"  turns that failed: {each.failed:,}, {each.failed / each.turns:.1%}")
    if each.first:
        print(f"  first: {each.named(each.first[1])}, after {each.first[0]:.1f} s")
    print(f"  most that wait in one second: {max(each.waiting.values(), default=0) * SAMPLE:,}")
    print(f"  served after: p50 {each.wait(0.5):.2f} s, p99 {each.wait(0.99):.2f} s")
    for where, units in sorted(each.used.items(), key=lambda pair: -pair[1])[:3]:
        share = PROVISIONED[where[0]] * each.throughput / each.count[where[0]]
        rate = units / SECONDS
        print(f"  {each.named(where)}: {rate:,.0f} RU/s, {rate / share:.0%} of its share")


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.simulation", description=__doc__)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    charges = asyncio.run(of_a_turn())
    print(f"a turn, measured: {charges.turn:.1f} RU, {charges}")
    outcomes = []
    for run in RUNS:
        outcomes.append(simulate(charges, *run, seed=options.seed))
        describe(outcomes[-1])
    PLOT.write_text(plot(outcomes[: len(COLOURS)]), encoding="utf-8")


if __name__ == "__main__":
    main()
