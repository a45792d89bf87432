"""Users, their conversations, and questions with the turns that answer them.

The facts are written by hand (facts/*.txt). Each user has all facts of a language, with names of
their own. The facts are spread over sessions, between small talk and turns that contain the words
of a question but not its answer. Every run uses the same material.
"""

from __future__ import annotations

import random
import re
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from google.adk.events.event import Event
from google.adk.sessions.session import Session
from google.genai import types

FOLDER = Path(__file__).parent / "facts"
APP = "memory_bench"
USERS = {"english": 3, "german": 2, "spanish": 2, "french": 2, "japanese": 2}
AUTHORS = {"U": "user", "A": "assistant", "C": "chef", "D": "doctor", "T": "travel_guide"}
FACTS_OF_A_SESSION = 3
HALVES = ("tune", "report")
BEGINNING = 1_700_000_000.0


@dataclass(frozen=True)
class Fact:
    """Some turns, which of them are answers, and a question that somebody may ask later."""

    turns: tuple[tuple[str, str], ...]  # speaker, text
    answers: frozenset[int]
    question: str
    distraction: tuple[str, str] | None
    half: str


@dataclass(frozen=True)
class Question:
    """`half` is "tune" or "report". The facts are divided between the two, not the users."""

    text: str
    answers: frozenset[str]  # ids of events
    half: str
    language: str
    category: str = ""
    after: int | None = None  # asked when this many sessions were added; None: after all of them


@dataclass
class User:
    """Everything that one user said and heard, and the questions about it."""

    user_id: str
    language: str
    sessions: list[Session] = field(default_factory=list)
    questions: list[Question] = field(default_factory=list)


def users() -> list[User]:
    return [_user(language, number) for language, count in USERS.items() for number in range(count)]


def _user(language: str, number: int) -> User:
    user = User(f"{language}-{number}", language)
    chance = random.Random(user.user_id)
    facts = _facts(language, number)
    chance.shuffle(facts)
    distractions = [fact.distraction for fact in facts if fact.distraction]
    chance.shuffle(distractions)
    small_talk = _small_talk(language)
    for start in range(0, len(facts), FACTS_OF_A_SESSION):
        session = Conversation(user, len(user.sessions))
        session.say(small_talk[: 2 * chance.randint(0, 1)])
        for fact in facts[start : start + FACTS_OF_A_SESSION]:
            ids = session.say(fact.turns)
            answers = frozenset(ids[at] for at in fact.answers)
            user.questions.append(Question(fact.question, answers, fact.half, language))
            for _ in range(chance.randint(1, 2)):
                pair = 2 * chance.randrange(len(small_talk) // 2)
                session.say(small_talk[pair : pair + 2])
            if distractions:
                session.say([distractions.pop()])
        user.sessions.append(session.session)
    return user


class Conversation:
    def __init__(self, user: User, number: int) -> None:
        self._began = BEGINNING + number * 86_400.0
        self.session = Session(
            app_name=APP, user_id=user.user_id, id=f"{user.user_id}-{number}", events=[]
        )

    def say(self, turns: object) -> list[str]:
        ids = []
        for speaker, text in turns:  # type: ignore[attr-defined]
            number = len(self.session.events)
            said = Event(
                id=f"{self.session.id}-{number}",
                author=AUTHORS[speaker],
                timestamp=self._began + 30.0 * number,
                content=types.Content(
                    role="user" if speaker == "U" else "model", parts=[types.Part(text=text)]
                ),
            )
            self.session.events.append(said)
            ids.append(said.id)
        return ids


def _facts(language: str, number: int) -> list[Fact]:
    lines = (FOLDER / f"{language}.txt").read_text(encoding="utf-8").splitlines()
    names: dict[str, str] = {}
    for line in lines:
        if line.startswith("%%"):
            name, _, values = line.removeprefix("%%").partition(":")
            names[name.strip()] = values.split(";")[number].strip()
    return [fact_of(line, names) for line in lines if line and line[0] not in "#%"]


def fact_of(template: str, names: Mapping[str, str]) -> Fact:
    line = template.format(**names)
    turns, _, rest = line.partition(" || ")
    question, _, distraction = rest.partition(" ## ")
    split = [turn_of(turn) for turn in turns.split(" | ")]
    return Fact(
        turns=tuple((speaker, text) for speaker, _, text in split),
        answers=frozenset(at for at, (_, answers, _) in enumerate(split) if answers),
        question=question.strip(),
        distraction=(turn_of(distraction)[0], turn_of(distraction)[2]) if distraction else None,
        half=half_of(template),
    )


def half_of(template: str) -> str:
    return HALVES[zlib.crc32(template.encode()) % 2]


def turn_of(text: str) -> tuple[str, bool, str]:
    found = re.fullmatch(r"\s*([UACDT])(\*?): (.*?)\s*", text)
    assert found is not None, text
    return found[1], bool(found[2]), found[3]


def _small_talk(language: str) -> list[tuple[str, str]]:
    lines = (FOLDER / "fillers.txt").read_text(encoding="utf-8").splitlines()
    line = next(each for each in lines if each.startswith(f"{language}|"))
    return [(speaker, text) for speaker, _, text in map(turn_of, line.split("|")[1:])]
