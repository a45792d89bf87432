"""The figures of the long proofs, as the last run of each left them in docs/figures.json."""

from __future__ import annotations

import json

from docs.generate.pages import FOLDER, table

RUNS = {
    "model": ("`make model`", "{scenarios:,} scenarios, {states:,} states"),
    "sessions": ("`make crash-matrix`: sessions", "{cases:,} cases, with and without lag"),
    "memories": ("`make crash-matrix`: memories", "{cases:,} cases"),
    "together": (
        "`make crash-matrix`: the three services together",
        "{cases:,} cases, half of them with lag",
    ),
    "artifacts": ("`make artifacts-matrix`", "{cases:,} cases"),
    "blobs": ("`make test-blobs`: artifacts in Blob Storage", "{cases:,} cases"),
    "together with blobs": (
        "`make test-blobs`: the three services together",
        "{cases:,} cases, half of them with lag",
    ),
    "interleavings": (
        "`make interleavings`",
        "{cases:,} tests: worlds of concurrent processes, cancellations at every step, every lag,"
        " erasures under way, memory under lag, and histories of the three services together",
    ),
    "crash-processes": (
        "`make crash-processes`",
        "{kills:,} kills, half of them with lag; {acknowledged:,} events acknowledged",
    ),
    "soak": (
        "`make soak`",
        "{seconds:,} seconds: {appended:,} events, {requests:,} requests, {faults:,} faults",
    ),
    "long soak": (
        "`make endurance`: soak with more lag",
        "{seconds:,} seconds: {appended:,} events, {requests:,} requests, {faults:,} faults",
    ),
    "prompts": (
        "`make prompts`",
        "{histories:,} histories, with and without the events that summaries cover",
    ),
    "power-cut": ("`make power-cut`", "{cuts:,} cuts, {acknowledged:,} acknowledged writes"),
    "endurance": (
        "`make endurance`",
        "{sessions:,} sessions through one process; resident memory grew by {growth:.1%}",
    ),
}


def figures() -> str:
    found = json.loads((FOLDER / "figures.json").read_text("utf-8"))
    rows = [
        [command, what.format(**found[run]), str(found[run]["broken"] or "none")]
        for run, (command, what) in RUNS.items()
        if run in found
    ]
    return table(["run", "what", "broken"], rows)
