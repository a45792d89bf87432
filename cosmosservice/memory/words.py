"""Words: those that a text is found by, and those that a question looks for.

Words of any alphabet are reduced to stems, without case and accents. Scripts that are written
without spaces, and Korean, whose words include grammatical particles, are split into pairs of
neighbouring characters.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Final

from cosmosservice.memory import languages

_UNSPACED: Final = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1100-\u11ff\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff"
    "\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003ffff]+"
)
_IDEOGRAPH: Final = re.compile("[\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]")
_ACCENTS: Final = re.compile("[\u0300-\u036f]")
_LONGEST: Final = 64  # characters of a word: longer keys and hashes are cut

AUTHOR: Final = "@"  # before a word of the author's name


@dataclass(frozen=True)
class Term:
    """One word of a question, and the tokens of the memories that have it."""

    word: str
    said: frozenset[str]  # the forms that it may have in a text
    name: str | None = None  # the token of an author with this name

    @property
    def tokens(self) -> frozenset[str]:
        return self.said if self.name is None else self.said | {self.name}


@cache
def _word() -> re.Pattern[str]:
    """Letters, digits and the marks that belong to them: vowels of Devanagari or Thai are marks."""
    marks = (chr(code) for code in range(0x300, 0xAC00))
    joined = "".join(mark for mark in marks if unicodedata.category(mark).startswith("M"))
    return re.compile(rf"[^\W_](?:[^\W_]|[{joined}])*")


@lru_cache(maxsize=100_000)
def fold(word: str) -> str:
    """Removes accents: people who type in a hurry write e for é."""
    if word.isascii():
        return word
    return unicodedata.normalize("NFC", _ACCENTS.sub("", unicodedata.normalize("NFKD", word)))


def split(text: str) -> tuple[list[str], list[str]]:
    """The words of a text, and its runs of scripts without spaces."""
    words: list[str] = []
    runs: list[str] = []
    for found in _word().findall(unicodedata.normalize("NFKC", text).casefold()):
        if found.isascii():
            words.append(found[:_LONGEST])
            continue
        runs += _UNSPACED.findall(found)
        words += [word[:_LONGEST] for word in _UNSPACED.split(found) if word]
    return words, runs


def _pairs(run: str) -> list[str]:
    """Every pair of neighbours, and every ideograph, which may be a word by itself."""
    pairs = [run[at : at + 2] for at in range(len(run) - 1)]
    return pairs + [character for character in run if _IDEOGRAPH.match(character)] or [run]


def _counts_as_word(word: str) -> bool:
    """A single letter says too little. A digit may be an answer."""
    return len(word) > 1 or word.isdigit()


def words_of(text: str) -> list[str]:
    """The words that the text is found by, in order, as often as they occur."""
    words, runs = split(text)
    language = languages.language_of(set(words))
    stopped = languages.stop_words_of(language)
    found = [
        fold(languages.stem(word, language))
        for word in words
        if word not in stopped and _counts_as_word(word)
    ]
    return found + [pair for run in runs for pair in _pairs(run)]


def terms_of(question: str) -> list[Term]:
    """The terms that a question looks for: one for each of its words, in order.

    A short question does not reveal its language, so each word gets the stems that it would have in
    every possible language. Each word may also be the name of an author.
    """
    words, runs = split(question)
    distinct = list(dict.fromkeys(words))
    spoken, certain = languages.candidates(distinct)
    of = spoken if certain else [languages.DEFAULT]
    stopped = {word for language in of for word in languages.stop_words_of(language)}
    if languages.DEFAULT not in spoken:
        spoken = [*(spoken or languages.COMMON), languages.DEFAULT]
    telling = [word for word in distinct if word not in stopped and _counts_as_word(word)]
    terms = [
        Term(word, _alternatives(word, spoken), AUTHOR + fold(word) if telling else None)
        for word in telling or distinct
    ]
    pairs = dict.fromkeys(pair for run in dict.fromkeys(runs) for pair in _pairs(run))
    terms += [Term(pair, frozenset({pair})) for pair in pairs]
    return list({term.said: term for term in reversed(terms)}.values())[::-1]


def found_in(text: str, author: str, question: str) -> re.Pattern[str] | None:
    """Matches, in lower case, the words of a memory and of its author's name that the question
    looks for. None if there are none."""
    terms = terms_of(question)
    said = {token for term in terms for token in term.said}
    named = {term.name for term in terms}
    words, runs = split(text)
    language = languages.language_of(set(words))
    names, _ = split(author.replace("_", " "))
    whole = {word for word in words if fold(languages.stem(word, language)) in said}
    whole |= {word for word in names if AUTHOR + fold(word) in named}
    pairs = {pair for run in runs for pair in _pairs(run) if pair in said}
    found = [rf"(?<![^\W_]){re.escape(word)}(?![^\W_])" for word in sorted(whole)]
    found += map(re.escape, sorted(pairs, key=len, reverse=True))
    return re.compile("|".join(found)) if found else None


def _alternatives(word: str, spoken: Iterable[str]) -> frozenset[str]:
    plain = fold(word)
    found = {plain}
    for language in spoken:
        found |= {fold(languages.stem(word, language)), fold(languages.stem(plain, language))}
    return frozenset(found)


def names_of(author: str) -> list[str]:
    """The words that an author's memories are found by. "user" is left out: every user has it."""
    if author == "user":
        return []
    words, _ = split(author.replace("_", " "))
    return sorted({AUTHOR + fold(word) for word in words})
