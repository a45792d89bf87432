"""`python -m benchmarks.check`: has an append or a get become more expensive?

Counts the instructions of the Python interpreter, on all threads, that an operation takes, and
compares them with those of bare requests of the SDK in the same run. Unlike times, these counts are
the same on a busy machine and on every processor. They do not show work inside C functions.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import logging
import sys
import threading
import warnings
from collections.abc import Awaitable, Callable
from pathlib import Path
from types import FrameType
from typing import Any

from benchmarks.cosmos import Bare, InProcess, in_process
from benchmarks.material import event, history

KEPT = Path(__file__).with_name("check.json")
WORSE = 1.15  # times the kept ratio
SAMPLES = 8

Work = Callable[[], Awaitable[object]]


class Counter:
    """Counts the instructions of every thread that starts after `install`, and of this one."""

    def __init__(self) -> None:
        self.count = 0
        self._on = False

    def install(self) -> None:
        threading.settrace(self._called)
        sys.settrace(self._called)

    def remove(self) -> None:
        threading.settrace(None)  # type: ignore[arg-type]
        sys.settrace(None)

    async def of(self, work: Awaitable[object]) -> int:
        self.count, self._on = 0, True
        await work
        self._on = False
        return self.count

    def _called(self, frame: FrameType, _: str, __: Any) -> Any:
        if not self._on:
            return None
        frame.f_trace_lines, frame.f_trace_opcodes = False, True
        return self._executed

    def _executed(self, _: FrameType, what: str, __: Any) -> Any:
        if what == "opcode" and self._on:
            self.count += 1
        return self._executed


async def count() -> dict[str, float]:
    """Instructions of each operation: the least of the samples. Background work, which is due after
    so many seconds, is in some of the others on a busy machine."""
    counter = Counter()
    counter.install()
    try:
        block, default = InProcess("block", block=True), InProcess("default")
        for peer in (block, default):
            await peer.open()
            await peer.seed("written", history(20))
            await peer.seed("short", history(20))
            await peer.seed("long", history(1000))
        bare = Bare(in_process(block.emulator))
        await bare.open()
        document = (await block.stored("events"))[0]
        [kept] = [
            each for each in await block.stored("sessions") if each.get("session_id") == "short"
        ]
        await bare.sessions.upsert_item(kept)
        lanes: dict[str, Work] = {
            "bare create": lambda: bare.create(dict(document)),
            "bare read": lambda: bare.sessions.read_item(kept["id"], kept["user_id"]),
        }
        for name, peer in (("", block), (", no block", default)):
            session = await peer.get("written")
            lanes[f"append{name}"] = _append(peer, session)
            lanes[f"get of 20 events, warm{name}"] = lambda peer=peer: peer.get("short")  # type: ignore[misc]
            lanes[f"get of 1,000 events, warm{name}"] = lambda peer=peer: peer.get("long")  # type: ignore[misc]
        found: dict[str, list[int]] = {name: [] for name in lanes}
        for sample in range(SAMPLES + 2):
            for name, work in lanes.items():
                ready = work()
                spent = await counter.of(ready)
                if sample >= 2:  # the first ones fill caches
                    found[name].append(spent)
        await bare.close()
        for peer in (block, default):
            await peer.close()
    finally:
        counter.remove()
    return {name: min(samples) for name, samples in found.items()}


def _append(peer: InProcess, session: Any) -> Work:
    return lambda: peer.service.append_event(session, event())


def ratios(counts: dict[str, float]) -> dict[str, float]:
    """By a bare create for an append, by a bare read for a get."""
    return {
        name: round(spent / counts["bare create" if name.startswith("append") else "bare read"], 3)
        for name, spent in counts.items()
        if not name.startswith("bare")
    }


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.check", description=__doc__)
    parser.add_argument("--keep", action="store_true", help=f"write the ratios to {KEPT.name}")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    logging.disable(logging.WARNING)
    counts = asyncio.run(count())
    measured = ratios(counts)
    if options.keep:
        KEPT.write_text(json.dumps(measured, indent=2) + "\n", encoding="utf-8")
    kept = json.loads(KEPT.read_text(encoding="utf-8"))
    worse = [name for name, ratio in measured.items() if ratio > kept[name] * WORSE]
    for name, spent in counts.items():
        line = f"{name:36} {spent:10,.0f}"
        if name in measured:
            line += f"  {measured[name]:6.3f} ×, kept {kept[name]:6.3f} ×"
        print(line + ("  WORSE" if name in worse else ""))
    if worse:
        limit = round((WORSE - 1) * 100)
        print(f"More than {limit} % worse: {', '.join(worse)}. If that is meant: --keep.")
    return 1 if worse else 0


if __name__ == "__main__":
    sys.exit(main())
