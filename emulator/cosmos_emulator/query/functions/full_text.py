"""Full text search: words, phrases, and the score of a text (BM25).

All are called with the language of the text before their own arguments.
"""

import math
from collections.abc import Callable, Sequence
from typing import Any, Final

from cosmos_emulator.query.functions.function import Function, fixed
from cosmos_emulator.query.values import UNDEFINED, is_number, number
from cosmos_emulator.query.words import words

_SATURATION: Final = 1.2
_LENGTH_WEIGHT: Final = 0.75


def occurrences(text: list[str], phrase: list[str]) -> int:
    """How often the words of the phrase follow each other in the text."""
    length = len(phrase)
    if length == 1:
        return text.count(phrase[0])
    return (
        sum(text[at : at + length] == phrase for at in range(len(text) - length + 1))
        if length
        else 0
    )


def bm25(
    text: list[str],
    terms: list[list[str]],
    documents: float,
    total_words: float,
    hits: Sequence[float],
) -> float:
    """How well a text fits, by the number of all documents, of their words, and of those that
    contain each term."""
    average = total_words / documents if documents else 0
    length = len(text) / average if average else 1
    score = 0.0
    for term, found in zip(terms, hits, strict=True):
        count = occurrences(text, term)
        if count:
            rarity = math.log(1 + max(documents - found + 0.5, 0) / (found + 0.5))
            weight = 1 - _LENGTH_WEIGHT + _LENGTH_WEIGHT * length
            score += rarity * count * (_SATURATION + 1) / (count + _SATURATION * weight)
    return score


def _contains(combine: Callable[[Any], bool], most: int | None) -> Function:
    def call(language: str, text: Any, *phrases: Any) -> Any:
        if type(text) is not str or not all(type(phrase) is str for phrase in phrases):
            return UNDEFINED
        found = words(text, language)
        return combine(occurrences(found, words(phrase, language)) > 0 for phrase in phrases)

    return Function(call, 2, most)


def _word_count(language: str, text: Any) -> Any:
    return len(words(text, language)) if type(text) is str else UNDEFINED


def _score(
    language: str, text: Any, terms: Any, documents: Any, total_words: Any, hits: Any
) -> Any:
    valid = type(terms) is list and type(hits) is list and len(terms) == len(hits)
    if type(text) is not str or not valid or not all(type(term) is str for term in terms):
        return UNDEFINED
    if not all(is_number(value) for value in (documents, total_words, *hits)):
        return UNDEFINED
    searched = [words(term, language) for term in terms]
    return number(bm25(words(text, language), searched, documents, total_words, hits))


FULL_TEXT_FUNCTIONS: Final[dict[str, Function]] = {
    "FULLTEXTCONTAINS": _contains(all, 2),
    "FULLTEXTCONTAINSALL": _contains(all, None),
    "FULLTEXTCONTAINSANY": _contains(any, None),
    "_FULLTEXTWORDCOUNT": fixed(_word_count, 1),
    "_FULLTEXTSCORE": fixed(_score, 5),
}
