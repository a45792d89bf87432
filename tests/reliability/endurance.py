"""A hundred thousand sessions through one process, in bounded memory.

    python -m tests.reliability.endurance [--sessions N] [--cache-bytes N] [--json FILE]

The emulator runs in the same process, on a file, so that its data takes no memory. Resident memory
is measured after a fifth of the sessions, when the cache has long been full, and at the end.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import json
import pathlib
import sys
import tempfile
import time
from dataclasses import asdict, dataclass

from cosmos_emulator import Emulator
from cosmosservice import CosmosSessionService
from tests.reliability.load.soak import rss_in_use
from tests.support.adk import event, texts
from tests.support.figures import record

AT_ONCE = 16
ALLOWED = 0.10  # maximum growth of the resident memory


@dataclass
class Figures:
    """The figures of a run."""

    sessions: int = 0
    wrong: int = 0
    rss_mb_after_a_fifth: float = 0.0
    rss_mb_at_end: float = 0.0
    seconds: float = 0.0

    @property
    def growth(self) -> float:
        return self.rss_mb_at_end / self.rss_mb_after_a_fifth - 1

    @property
    def sound(self) -> bool:
        return not self.wrong and self.growth < ALLOWED


def run(sessions: int, cache_bytes: int) -> Figures:
    figures = Figures()
    began = time.monotonic()
    with (
        tempfile.TemporaryDirectory() as folder,
        Emulator(pathlib.Path(folder) / "endurance.db") as emulator,
    ):
        asyncio.run(_run(figures, emulator, sessions, cache_bytes))
    figures.seconds = time.monotonic() - began
    return figures


async def _run(figures: Figures, emulator: Emulator, sessions: int, cache_bytes: int) -> None:
    numbers = iter(range(sessions))
    async with CosmosSessionService.embedded(emulator, cache_bytes=cache_bytes) as service:
        for part in range(5):
            some = itertools.islice(numbers, sessions // 5)
            await asyncio.gather(*(_use(figures, service, some) for _ in range(AT_ONCE)))
            await service.flush()
            emulator.clear_requests()  # clears a log that would only grow
            rss = rss_in_use()
            print(f"{figures.sessions:7,} sessions  {rss:5.0f} MB", flush=True)
            if part == 0:
                figures.rss_mb_after_a_fifth = rss
            figures.rss_mb_at_end = rss


async def _use(figures: Figures, service: CosmosSessionService, numbers: itertools.islice) -> None:
    for number in numbers:
        who = {"app_name": "app", "user_id": f"user {number % 5_000}"}
        session = await service.create_session(**who, state={"number": number})
        for turn in ("question", "answer"):
            said = event(f"{turn} {number}", delta={"turn": turn, "user:last": number})
            await service.append_event(session, said)
        found = await service.get_session(**who, session_id=session.id)
        shown = texts(found) if found else []
        figures.wrong += shown != [f"question {number}", f"answer {number}"]
        figures.sessions += 1


SESSIONS = 100_000  # figures of fewer are not kept


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description="Many sessions through one process.")
    parser.add_argument("--sessions", type=int, default=SESSIONS)
    parser.add_argument("--cache-bytes", type=int, default=16 * 1024 * 1024)
    parser.add_argument("--json", type=pathlib.Path, help="write the figures to this file")
    given = parser.parse_args(arguments)
    figures = run(given.sessions, given.cache_bytes)
    print(figures)
    if given.sessions >= SESSIONS:
        record(
            "endurance",
            sessions=figures.sessions,
            growth=round(figures.growth, 4),
            broken=figures.wrong,
        )
    print(f"resident memory grew by {figures.growth:.1%}; {ALLOWED:.0%} is allowed")
    if given.json:
        given.json.write_text(json.dumps(asdict(figures), indent=2) + "\n")
    return 0 if figures.sound else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
