"""Asks every service every question, and counts how often the answer was among the hits."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from google.adk.memory import BaseMemoryService
from google.adk.memory.memory_entry import MemoryEntry

from benchmarks.memory.material import APP, Question, User
from benchmarks.memory.peers import HITS, Open, event_id


@dataclass(frozen=True)
class Score:
    """For a set of questions and the first hits of each: the share with an answer among them, the
    share of all answers among them, the share of questions with all their answers among them, and
    the mean reciprocal rank of the first answer."""

    questions: int
    hit: float
    recall: float
    whole: float
    mrr: float


@dataclass(frozen=True)
class Answered:
    question: Question
    found: tuple[str, ...]  # ids of events, best first
    characters: tuple[int, ...] = ()  # of each, as ADK's PreloadMemoryTool hands it to the model


async def ask(
    service: BaseMemoryService, user: User, questions: Iterable[Question]
) -> list[Answered]:
    answered = []
    for question in questions:
        response = await service.search_memory(
            app_name=APP, user_id=user.user_id, query=question.text
        )
        hits = response.memories[:HITS]
        found = tuple(event_id(memory) for memory in hits)
        answered.append(Answered(question, found, tuple(map(_characters, hits))))
    return answered


def _characters(memory: MemoryEntry) -> int:
    text = " ".join(part.text or "" for part in memory.content.parts or [])
    return len(f"Time: {memory.timestamp}\n{memory.author}: {text}\n")


async def measure(opened: Open, users: Iterable[User]) -> list[Answered]:
    answered: list[Answered] = []
    async with opened() as service:
        for user in users:
            for number, session in enumerate(user.sessions):
                due = [each for each in user.questions if each.after == number and number]
                answered += await ask(service, user, due)
                await service.add_session_to_memory(session)
            last = [e for e in user.questions if e.after in (None, len(user.sessions))]
            answered += await ask(service, user, last)
    return answered


def score(answered: Iterable[Answered], count: int = 10) -> Score:
    """Of the first `count` hits."""
    chosen = [(each.question.answers, each.found[:count]) for each in answered]
    total = len(chosen) or 1
    ranks = [
        next((rank for rank, each in enumerate(found, 1) if each in answers), None)
        for answers, found in chosen
    ]
    shares = [len(answers.intersection(found)) / len(answers) for answers, found in chosen]
    return Score(
        questions=len(chosen),
        hit=sum(rank is not None for rank in ranks) / total,
        recall=sum(shares) / total,
        whole=sum(share == 1 for share in shares) / total,
        mrr=sum(1 / rank for rank in ranks if rank is not None) / total,
    )


def by_session(answered: Iterable[Answered], session_of: Mapping[str, str]) -> list[Answered]:
    """The same, where any turn of the right session counts as found."""
    made = []
    for each in answered:
        wanted = frozenset(session_of[answer] for answer in each.question.answers)
        question = dataclasses.replace(each.question, answers=wanted)
        found = tuple(dict.fromkeys(session_of[hit] for hit in each.found if hit in session_of))
        made.append(Answered(question, found))
    return made


def of_half(answered: Iterable[Answered], half: str) -> list[Answered]:
    return [each for each in answered if each.question.half == half]
