"""How well memories are found, as `make bench-memory` left it in docs/memory.json."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from typing import Any

from docs.generate.pages import FOLDER, table

OWN = {"own": "short histories", "long": "long histories"}
PUBLIC = {
    "locomo": "[LoCoMo](https://github.com/snap-research/locomo), two people",
    "realtalk": "[REALTALK](https://github.com/danny911kr/REALTALK), two people",
    "realmem": "[RealMem](https://github.com/AvatarMemory/RealMemBench), long answers",
    "beam100K": "[BEAM](https://github.com/mohammadtavakoli78/BEAM) 100K, long answers",
    "longmemeval": "[LongMemEval](https://github.com/xiaowu0162/LongMemEval), long answers",
}
RANKINGS = ("words", "words and all-MiniLM-L6-v2")
OURS = "CosmosMemoryService"
MEMPALACE = "https://github.com/MemPalace/mempalace/blob/main/benchmarks/BENCHMARKS.md"
PGMNEMO = "https://pgxn.org/dist/pgmnemo/0.4.0/README.html"
AGENTMEMORY = "https://github.com/rohitg00/agentmemory/blob/main/benchmark/LONGMEMEVAL.md"

Figures = Mapping[str, Any]


@cache
def _measured() -> Any:
    return json.loads((FOLDER / "memory.json").read_text("utf-8"))


def _services(name: str) -> dict[str, Any]:
    """Ours after the others."""
    found = _measured()[name]["services"]
    return {each: found[each] for each in sorted(found, key=lambda n: (n.startswith(OURS), n))}


def sets() -> str:
    rows = [
        [
            what,
            f"{found['users']}",
            f"{found['turns']:,}",
            f"{found['questions']:,}",
            f"{found['services'][OURS]['held out']['questions']:,}",
        ]
        for name, what in OWN.items()
        for found in [_measured()[name]]
    ]
    return table(["own set", "users", "turns", "questions", "held out"], rows)


def own(name: str) -> str:
    """The held-out half."""
    services = _services(name)
    rows = [[service, *_row(found["held out"])] for service, found in services.items()]
    return table(["service", "hit@5", "hit@10", "hit@20", "MRR@10"], rows)


def _row(scores: Figures) -> list[str]:
    hits = [_of(scores, depth, "hit") for depth in (5, 10, 20)]
    return [*hits, _of(scores, 10, "mrr")]


def parts_of(name: str, by: str) -> str:
    services = _services(name)
    columns = list(services[OURS][by])
    head = [f"{each} ({services[OURS][by][each]['questions']})" for each in columns]
    rows = [
        [service, *(_of(found[by][each], 10, "hit") for each in columns)]
        for service, found in services.items()
    ]
    return table(["hit@10", *head], rows)


def without() -> str:
    found = _measured()["without"]
    names = sorted(found, key=lambda name: (name != "everything", name))
    rows = [[name, *_row(found[name])] for name in names]
    return table([OURS, "hit@5", "hit@10", "hit@20", "MRR@10"], rows)


def public() -> str:
    """hit@10 of every service, on the conversations that weights were tuned on and the others."""
    names = list(_services("locomo"))
    rows = []
    for name, what in PUBLIC.items():
        if name in _measured():
            found = _measured()[name]
            for half in ("tuned on", "held out"):
                of_half = {s: each[half] for s, each in found["services"].items()}
                turns = f"{found['turns']:,}" if half == "tuned on" else ""
                rows.append(
                    [
                        what if half == "tuned on" else "",
                        turns,
                        f"{of_half[OURS]['questions']:,}",
                        half,
                        *(_of(of_half[s], 10, "hit") if s in of_half else "" for s in names),
                    ]
                )
    return table(["set", "turns", "questions", "", *names], rows)


def ranking() -> str:
    """Of all turns, without the service."""
    rows = [
        [
            PUBLIC.get(name, name),
            half,
            *(f"{found[how][half]:.3f}" if how in found else "" for how in RANKINGS),
        ]
        for name, found in _measured()["ranking"].items()
        for half in ("tuned on", "held out")
    ]
    return table(["hit@10 of the ranking", "", *RANKINGS], rows)


def depths() -> str:
    """All questions of LoCoMo."""
    rows = []
    for by in ("all", "by session"):
        for service, found in _services("locomo").items():
            scores = found[by]
            rows.append(
                [
                    service,
                    "turn" if by == "all" else "session",
                    *(_of(scores, depth, "hit") for depth in (5, 10, 20)),
                    *(_of(scores, depth, "recall") for depth in (5, 10, 20)),
                    *(_of(scores, depth, "all") for depth in (10, 20)),
                    _of(scores, 10, "mrr"),
                ]
            )
    head = [f"{what}@{depth}" for what in ("hit", "recall") for depth in (5, 10, 20)]
    return table(["LoCoMo", "by", *head, "all@10", "all@20", "MRR@10"], rows)


def whole() -> str:
    """All the evidence of a question, by category of LoCoMo."""
    services = _services("locomo")
    columns = list(services[OURS]["by category"])
    rows = [
        [service, *(_of(found["by category"][each], 10, "all") for each in columns)]
        for service, found in services.items()
    ]
    return table(["all evidence@10", *columns], rows)


def published() -> str:
    """Ours beside what others have published."""
    turns = _measured()["locomo"]["services"][OURS]["all"]
    sessions = _measured()["locomo"]["services"][OURS]["by session"]
    both = [f"{_of(each, 10, 'hit')}, {_of(each, 10, 'recall')}" for each in (turns, sessions)]
    rows = [
        [f"{OURS}, words", "LoCoMo", "evidence among 10 turns: hit, recall", both[0]],
        ["the same, by session", "LoCoMo", "evidence among 10 sessions: hit, recall", both[1]],
        [
            f"[MemPalace]({MEMPALACE}), all-MiniLM-L6-v2, no reranking",
            "LoCoMo",
            "evidence among 10 turns",
            "0.480",
        ],
        ["the same, by session", "LoCoMo", "evidence among 10 sessions", "0.603"],
        [
            "MemPalace, hybrid v5 without a language model",
            "LoCoMo",
            "evidence among 10 sessions",
            "0.889",
        ],
        [f"[pgmnemo 0.4.0]({PGMNEMO}), hybrid", "LoCoMo", "recall among 10 sessions", "0.841"],
        ["the same, BM25", "LongMemEval", "recall among 10 sessions", "0.982"],
        [f"[agentmemory]({AGENTMEMORY}), BM25", "LongMemEval-S", "a session among 10", "0.946"],
        ["the same, with all-MiniLM-L6-v2", "LongMemEval-S", "a session among 10", "0.986"],
    ]
    return table(["", "set", "what is found", "figure"], rows)


def prices() -> str:
    sets = {
        "own": "own, short histories",
        "long": "own, long histories",
        "locomo": "LoCoMo",
        "realmem": "RealMem",
    }
    rows = [
        [
            what,
            f"{each['results']}",
            f"{each['units']:.2f}",
            f"{each['tokens']:,}",
            f"{each['hit']:.3f}",
        ]
        for name, what in sets.items()
        if name in _measured()
        for each in _measured()[name]["prices"]
    ]
    return table(["set", "`results`", "RU of a search", "tokens", "hit"], rows)


def costs() -> str:
    rows = [
        [
            f"{each['memories']:,}",
            f"{each['add_units']:.1f}",
            f"{each['requests']:.1f}",
            f"{each['median_units']:.1f}",
            f"{each['largest_units']:.1f}",
            f"{each['median_ms']:.1f}",
            f"{each['cold_ms']:.1f}",
        ]
        for each in _measured()["costs"]
    ]
    head = ["memories of the user", "RU to add one", "requests of a search", "median RU"]
    return table([*head, "most RU", "median ms of the processor", "the first of a process"], rows)


def _of(scores: Figures, depth: int, what: str) -> str:
    return f"{scores[f'{depth}'][what]:.3f}"
