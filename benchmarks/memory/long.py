"""Users with long histories: thousands of turns, of which a few are asked for.

Made from facts/long/*.txt, the same in every run. Every fact is told several times with other
names, so that each is the wrong answer to the questions of the others, and what is said in between
has the words of the questions.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterator, Mapping

from benchmarks.memory.material import (
    FOLDER,
    Conversation,
    Fact,
    Question,
    User,
    fact_of,
    half_of,
    turn_of,
)

LANGUAGES = ("english", "german", "japanese")
TURNS = 5_000
COPIES = 6  # of every fact, with other names
TURNS_OF_A_SESSION = 20
OLD = 10  # facts that are "old" are in the first tenth


def long_users(turns: int = TURNS) -> list[User]:
    return [_user(language, turns) for language in LANGUAGES]


class _File:
    def __init__(self, language: str) -> None:
        text = (FOLDER / "long" / f"{language}.txt").read_text(encoding="utf-8")
        lines = [line for line in text.splitlines() if line and line[0] != "#"]
        self.exchanges = [line[2:] for line in lines if line.startswith("- ")]
        self.sentences = [line[2:] for line in lines if line.startswith("+ ")]
        self.facts = [
            (found[1], found[2]) for line in lines if (found := re.match(r"(\w+)> (.*)", line))
        ]
        self.lists = {
            name.strip(): [each.strip() for each in values.split(";")]
            for name, _, values in (line[3:].partition(":") for line in lines if line[0] == "%")
        }


def _user(language: str, turns: int) -> User:
    file = _File(language)
    user = User(f"{language}-long", language)
    chance = random.Random(user.user_id)
    count = turns // TURNS_OF_A_SESSION
    facts_of: list[list[tuple[str, Fact]]] = [[] for _ in range(count)]
    for kind, fact in _facts(file, chance):
        facts_of[chance.randrange(count // OLD if kind == "old" else count)].append((kind, fact))
    for number in range(count):
        conversation = Conversation(user, number)
        for kind, fact in facts_of[number]:
            _exchange(conversation, file, chance)
            ids = conversation.say(fact.turns)
            answers = frozenset(ids[at] for at in fact.answers)
            user.questions.append(Question(fact.question, answers, fact.half, language, kind))
        while len(conversation.session.events) < TURNS_OF_A_SESSION:
            _exchange(conversation, file, chance)
        user.sessions.append(conversation.session)
    return user


def _facts(file: _File, chance: random.Random) -> Iterator[tuple[str, Fact]]:
    """No two copies of a fact have a word in the same place."""
    for kind, template in file.facts:
        lists = {name: chance.sample(values, len(values)) for name, values in file.lists.items()}
        for copy in range(COPIES):
            names = {name: values[copy] for name, values in lists.items()}
            names["person2"] = lists["person"][-1 - copy]
            filled = _filled(template, names, lambda: _talk(file, chance))
            fact = fact_of(filled, {})
            yield kind, Fact(fact.turns, fact.answers, fact.question, None, half_of(template))


def _exchange(conversation: Conversation, file: _File, chance: random.Random) -> None:
    line = _filled(chance.choice(file.exchanges), _any(file, chance), lambda: _talk(file, chance))
    conversation.say([(speaker, text) for speaker, _, text in map(turn_of, line.split(" | "))])


def _talk(file: _File, chance: random.Random) -> str:
    """What an assistant adds to an answer: three to six sentences."""
    sentences = chance.sample(file.sentences, chance.randint(3, 6))
    return " ".join(each.format(**_any(file, chance)) for each in sentences)


def _any(file: _File, chance: random.Random) -> dict[str, str]:
    return {name: chance.choice(values) for name, values in file.lists.items()}


def _filled(template: str, names: Mapping[str, str], talk: Callable[[], str]) -> str:
    filled = re.sub(r"\{talk\}", lambda _: talk(), template)
    return filled.format(**names)
