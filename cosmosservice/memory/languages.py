"""Languages: which one a text is in, its stop words, and the stems of its words.

Stems come from Snowball, stop words from the package stop-words. Its English list is far longer
than the others and includes words that people ask for (computer, home, fire, year). So for English
only function words count as stop words.
"""

from __future__ import annotations

import threading
import unicodedata
from collections import Counter
from collections.abc import Iterable
from functools import cache, lru_cache
from typing import Any, Final

import snowballstemmer
import stop_words

DEFAULT: Final = "english"

# Languages to try for a few words without a stop word. Each costs a little time.
COMMON: Final = ("french", "german", "italian", "portuguese", "spanish")

_CERTAIN: Final = 2  # stop words

# Scripts that are used by only one of the languages, or mostly by one.
_OF_SCRIPT: Final = {
    "CYRILLIC": "russian",
    "GREEK": "greek",
    "ARABIC": "arabic",
    "DEVANAGARI": "hindi",
    "ARMENIAN": "armenian",
    "TAMIL": "tamil",
}

_ENGLISH: Final = """
    a about after again all also am an and any are as at be because been before being between both
    but by can could did do does doing done down during each either else ever every few for from
    further get gets getting got had has have having he her here hers herself him himself his how i
    if in into is it its itself just let ll me might more most much must my myself neither no
    nor not now of off on once only or other ought our ours ourselves out over own please quite
    rather re really s same shall she should since so some such t than that the their theirs them
    themselves then there these they this those though through till to too under until up upon us
    ve very was we were what when where whether which while who whom whose why will with without
    would yes yet you your yours yourself yourselves d m don didn doesn isn aren wasn weren won
    wouldn couldn shouldn haven hasn hadn ain tell told say says said know remember mention
    mentioned oh okay ok well hi hey thanks thank
"""


@cache
def languages() -> tuple[str, ...]:
    """The languages with both stems and stop words."""
    known = set(snowballstemmer.algorithms()) & set(stop_words.AVAILABLE_LANGUAGES)
    return tuple(sorted(known))


@cache
def stop_words_of(language: str) -> frozenset[str]:
    if language == DEFAULT:
        return frozenset(_ENGLISH.split())
    if language not in languages():
        return frozenset()
    found = (word.strip() for word in stop_words.get_stop_words(language))
    return frozenset(unicodedata.normalize("NFKC", word).casefold() for word in found if word)


@cache
def _speakers() -> dict[str, tuple[str, ...]]:
    """For each stop word, the languages that have it."""
    by_word: dict[str, list[str]] = {}
    for language in languages():
        for word in stop_words_of(language):
            by_word.setdefault(word, []).append(language)
    return {word: tuple(spoken) for word, spoken in by_word.items()}


def candidates(words: Iterable[str]) -> tuple[list[str], bool]:
    """The languages with the most stop words in the text, and whether that is certain: a word of
    one language may be a stop word of another, as "cat" is in Romanian."""
    speakers = _speakers()
    votes: Counter[str] = Counter()
    for word in words:
        votes.update(speakers.get(word, ()))
    most = max(votes.values(), default=0)
    found = [language for language in sorted(votes) if votes[language] == most]
    return found, DEFAULT in found or most >= _CERTAIN


def language_of(words: Iterable[str]) -> str:
    """The language of a text. English if nothing suggests another one."""
    found, certain = candidates(words)
    return DEFAULT if not certain or DEFAULT in found else found[0]


class _Stemmers(threading.local):
    """The stemmers of a thread: each keeps the word that it is working on."""

    def __init__(self) -> None:
        self._by_language: dict[str, Any] = {}

    def of(self, language: str) -> Any:
        if language not in self._by_language:
            self._by_language[language] = snowballstemmer.stemmer(language)
        return self._by_language[language]


_STEMMERS: Final = _Stemmers()


@lru_cache(maxsize=100_000)
def stem(word: str, language: str) -> str:
    """The stem of a word in this language. A word in a script other than Latin is stemmed by the
    language of its script."""
    if not word.isascii():
        script = unicodedata.name(word[0], "").partition(" ")[0]
        language = _OF_SCRIPT.get(script, language)
    if language not in snowballstemmer.algorithms():
        return word
    return str(_STEMMERS.of(language).stemWord(word))
