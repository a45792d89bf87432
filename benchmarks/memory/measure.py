"""Asks every service every question, and counts how often the answer was among the hits."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from google.adk.memory import BaseMemoryService

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


async def ask(service: BaseMemoryService, user: User) -> list[Answered]:
    answered = []
    for question in user.questions:
        response = await service.search_memory(
            app_name=APP, user_id=user.user_id, query=question.text
        )
        found = tuple(event_id(memory) for memory in response.memories[:HITS])
        answered.append(Answered(question, found))
    return answered


async def measure(opened: Open, users: Sequence[User]) -> list[Answered]:
    answered: list[Answered] = []
    async with opened() as service:
        for user in users:
            for session in user.sessions:
                await service.add_session_to_memory(session)
            answered += await ask(service, user)
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
        question = Question(
            each.question.text,
            wanted,
            each.question.half,
            each.question.language,
            each.question.category,
        )
        found = tuple(dict.fromkeys(session_of[hit] for hit in each.found if hit in session_of))
        made.append(Answered(question, found))
    return made


def of_half(answered: Iterable[Answered], half: str) -> list[Answered]:
    return [each for each in answered if each.question.half == half]
