"""`python -m tests.reliability.load`: run the soak and print its figures."""

from __future__ import annotations

import argparse
import dataclasses
import json
import pathlib
import sys

from tests.reliability.load.soak import Figures, Soak
from tests.support.figures import record

SECONDS = 180  # figures of shorter runs are not kept


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.reliability.load")
    parser.add_argument("--seconds", type=float, default=SECONDS)
    parser.add_argument("--sessions", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument(
        "--lag", type=float, default=0.3, help="seconds by which replicas may lag; 0: none"
    )
    parser.add_argument("--record-as", default="soak", help="the run's name in docs/figures.json")
    parser.add_argument("--json", type=pathlib.Path, help="write the figures to this file")
    given = parser.parse_args()
    print(f"{given.sessions} sessions for {given.seconds:.0f} seconds, seed {given.seed}")
    soak = Soak(
        seconds=given.seconds,
        sessions=given.sessions,
        seed=given.seed,
        lag=given.lag,
        progress=lambda line: print(line, flush=True),
    )
    figures = soak.run()
    show(figures)
    if given.seconds >= SECONDS:
        record(
            given.record_as,
            seconds=round(figures.seconds),
            appended=figures.events,
            requests=figures.requests,
            faults=sum(figures.faults.values()),
            broken=figures.lost + figures.duplicated + figures.out_of_order + figures.wrong_states,
        )
    if given.json:
        body = dataclasses.asdict(figures) | {"memory_flat": figures.memory_flat}
        given.json.write_text(json.dumps(body, indent=2) + "\n")
    return 0 if figures.sound and figures.memory_flat is not False else 1


def show(figures: Figures) -> None:
    for name, value in dataclasses.asdict(figures).items():
        label = name.replace("_", " ")
        if isinstance(value, dict):
            print(f"{label}:")
            for each, count in sorted(value.items()):
                print(f"    {each:<26}{count:>10,}")
        elif isinstance(value, list):
            print(f"{label}: {len(value)}")
            for each in value[:10]:
                print(f"    {each}")
        else:
            print(
                f"{label:<30}{value:>10,.3f}"
                if isinstance(value, float)
                else f"{label:<30}{value:>10,}"
            )
    verdict = "sound" if figures.sound else "NOT SOUND"
    memory = {True: "flat", False: "GREW", None: "not judged, the run was too short"}
    print(f"{verdict}; memory {memory[figures.memory_flat]}")


if __name__ == "__main__":
    sys.exit(main())
