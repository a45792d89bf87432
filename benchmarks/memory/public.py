"""Public sets of conversations with questions, read from files that whoever measures has fetched.

    LoCoMo        locomo10.json: ten conversations between two people, over months
    LongMemEval   longmemeval_*.json: for each question a user's chats with an assistant
    any other     conversations of your own, in this form:

        [{"sessions": [{"id": "s1", "turns": [{"id": "1", "author": "user", "text": "…"}]}],
          "questions": [{"text": "…", "answers": ["1"], "category": "…", "after": "s1"}]}]

One element for each user. Ids are unique for a user. An answer is the id of a turn, or of a
session, which means any of its turns. `category` and `after` may be left out; a question with
`after` is asked when that session and those before it have been added, and no later one.

None of these files is part of this repository. Conversations with an
even number were used for tuning; the others are held out.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from google.adk.events.event import Event
from google.adk.sessions.session import Session
from google.genai import types

from benchmarks.memory.material import APP, BEGINNING, HALVES, Question, User

# The numbers of LoCoMo's file, in the words of its paper.
LOCOMO_CATEGORIES = {
    1: "multi-hop",
    2: "temporal",
    3: "open-domain",
    4: "single-hop",
    5: "adversarial",
}


def locomo(path: Path) -> list[User]:
    """Questions whose evidence is not in the conversation are left out."""
    return [_locomo_user(number, each) for number, each in enumerate(_json(path))]


def _locomo_user(number: int, data: dict[str, Any]) -> User:
    user = User(f"locomo-{number}", "english")
    talk = data["conversation"]
    numbers = sorted(int(name[8:]) for name in talk if re.fullmatch(r"session_\d+", name))
    known: set[str] = set()
    for each in numbers:
        turns = [
            (turn["dia_id"], turn["speaker"], turn["text"]) for turn in talk[f"session_{each}"]
        ]
        user.sessions.append(_session(user, each, turns))
        known |= {name for name, _, _ in turns}
    for asked in data["qa"]:
        named = re.findall(r"D(\d+):0*(\d+)", " ".join(map(str, asked.get("evidence") or [])))
        evidence = {f"D{session}:{turn}" for session, turn in named} & known
        if evidence:
            ids = frozenset(f"{user.user_id}/{each}" for each in evidence)
            category = LOCOMO_CATEGORIES[asked["category"]]
            half = HALVES[number % 2]
            user.questions.append(Question(asked["question"], ids, half, "english", category))
    return user


def longmemeval(path: Path) -> list[User]:
    """One user for each question, with the sessions of its haystack."""
    return [
        _longmemeval_user(number, each)
        for number, each in enumerate(_json(path))
        if not each["question_id"].endswith("_abs")
    ]


def _longmemeval_user(number: int, data: dict[str, Any]) -> User:
    user = User(f"longmemeval-{number}", "english")
    evidence: set[str] = set()
    for at, turns in enumerate(data["haystack_sessions"]):
        named = [
            (f"{at}:{index}", turn["role"], turn["content"]) for index, turn in enumerate(turns)
        ]
        user.sessions.append(_session(user, at, named))
        evidence |= {f"{at}:{index}" for index, turn in enumerate(turns) if turn.get("has_answer")}
    if evidence:
        ids = frozenset(f"{user.user_id}/{each}" for each in evidence)
        category = data["question_type"]
        half = HALVES[number % 2]
        user.questions.append(Question(data["question"], ids, half, "english", category))
    return user


def conversations(path: Path) -> list[User]:
    """Of a file in the form above."""
    return [
        _any_user(f"{path.stem}-{number}", HALVES[number % 2], each)
        for number, each in enumerate(_json(path))
    ]


def _any_user(user_id: str, half: str, data: dict[str, Any]) -> User:
    user = User(user_id, "")
    meant: dict[str, set[str]] = {}  # the ids of turns that the id of a turn or a session means
    after: dict[str | None, int | None] = {None: None}
    for number, each in enumerate(data["sessions"]):
        turns = [(str(turn["id"]), turn["author"], turn["text"]) for turn in each["turns"]]
        user.sessions.append(_session(user, number, turns))
        ids = {name: f"{user_id}/{name}" for name, _, text in turns if text.strip()}
        meant |= {name: {made} for name, made in ids.items()}
        meant[str(each["id"])] = set(ids.values())
        after[str(each["id"])] = number + 1
    for asked in data["questions"]:
        answers = frozenset().union(*(meant[str(each)] for each in asked["answers"]))
        user.questions.append(
            Question(
                asked["text"],
                answers,
                half,
                "",
                asked.get("category", ""),
                after[asked.get("after")],
            )
        )
    return user


def _session(user: User, number: int, turns: Iterable[tuple[str, str, str]]) -> Session:
    events = [
        Event(
            id=f"{user.user_id}/{name}",
            author=author,
            timestamp=BEGINNING + number * 86_400.0 + 30.0 * index,
            content=types.Content(
                role="user" if author == "user" else "model", parts=[types.Part(text=text)]
            ),
        )
        for index, (name, author, text) in enumerate(turns)
        if text.strip()
    ]
    session_id = f"{user.user_id}-{number}"
    return Session(app_name=APP, user_id=user.user_id, id=session_id, events=events)


def _json(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))
