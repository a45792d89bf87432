"""The words of a text as full-text search compares them: in lower case, without stop words, stems.

Stems come from Snowball, stop words from the package stop-words; for English, whose list there
includes words that people search for, only function words count. With this list and these words
the order of ranked texts is the one that Microsoft's tests of its SDKs recorded on an account.
"""

import re
import threading
from functools import cache, lru_cache
from typing import Any, Final

DEFAULT_LANGUAGE: Final = "en-us"
# The languages that a full-text policy may name, as Snowball names them.
LANGUAGES: Final = {
    "en-us": "english",
    "de-de": "german",
    "es-es": "spanish",
    "fr-fr": "french",
    "it-it": "italian",
    "pt-br": "portuguese",
    "pt-pt": "portuguese",
}

# A number with its points and commas is one word.
_WORD: Final = re.compile(r"\w+(?:['’]\w+|(?<=\d)[.,](?=\d)\w+)*")
_ENGLISH: Final = """
    a about above across after afterwards again against all almost alone along already also
    although always am among amongst an and another any anybody anyhow anyone anything anyway
    anywhere are around as at be became because become becomes been before beforehand behind
    being below beside besides between beyond both but by can cannot could did do does doing
    done down during each either else elsewhere enough even ever every everybody everyone
    everything everywhere except few first for former formerly from further had has have having
    he hence her here hers herself him himself his how however i if in indeed instead into is it
    its itself just know known last later latter least less let like likely many may me
    meanwhile might more moreover most mostly much must my myself namely neither never
    nevertheless no nobody none nor not nothing now nowhere of off often on once one ones only
    onto or other others otherwise ought our ours ourselves out over own part per perhaps quite
    rather really same seem seemed seems several shall she should since so some somebody somehow
    someone something sometimes somewhere still such than that the their theirs them themselves
    then thence there therefore these they this those though through throughout thus to together
    too toward towards under unless until up upon us used using usually various very via was we
    well were what whatever when whenever where whereas wherever whether which while who whoever
    whole whom whose why will with within without would yet you your yours yourself yourselves
"""


def words(text: str, language: str = DEFAULT_LANGUAGE) -> list[str]:
    """The words of a text in a language of a policy, such as `en-US`."""
    name = LANGUAGES.get(language.lower(), "english")
    left_out = _stop_words(name)
    return [_stem(word, name) for word in _WORD.findall(text.lower()) if word not in left_out]


@cache
def _stop_words(language: str) -> frozenset[str]:
    if language == "english":
        return frozenset(_ENGLISH.split())
    from stop_words import get_stop_words

    return frozenset(get_stop_words(language))


class _Stemmers(threading.local):
    """The stemmers of a thread: each keeps the word that it is working on."""

    def __init__(self) -> None:
        self._by_language: dict[str, Any] = {}

    def of(self, language: str) -> Any:
        if language not in self._by_language:
            from snowballstemmer import stemmer

            self._by_language[language] = stemmer(language)
        return self._by_language[language]


_STEMMERS: Final = _Stemmers()


@lru_cache(maxsize=100_000)
def _stem(word: str, language: str) -> str:
    return str(_STEMMERS.of(language).stemWord(word))
