"""Asks every service every question, and counts how often the answer was among the hits."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from google.adk.memory import BaseMemoryService

from benchmarks.memory.material import APP, Question, User
from benchmarks.memory.peers import HITS, Open, event_id


@dataclass(frozen=True)
class Score:
    """For a set of questions: the share with an answer among the first ten hits, the share of all
    answers among them, and the mean reciprocal rank of the first answer."""

    questions: int
    hit: float
    recall: float
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
        for user in users:
            answered += await ask(service, user)
    return answered


def score(answered: Iterable[Answered]) -> Score:
    chosen = list(answered)
    count = len(chosen)
    ranks = [_rank(each) for each in chosen]
    return Score(
        questions=count,
        hit=sum(rank is not None for rank in ranks) / count,
        recall=sum(
            len(each.question.answers.intersection(each.found)) / len(each.question.answers)
            for each in chosen
        )
        / count,
        mrr=sum(1 / rank for rank in ranks if rank is not None) / count,
    )


def _rank(answered: Answered) -> int | None:
    for rank, found in enumerate(answered.found, 1):
        if found in answered.question.answers:
            return rank
    return None


def of_half(answered: Iterable[Answered], half: str) -> list[Answered]:
    return [each for each in answered if each.question.half == half]
