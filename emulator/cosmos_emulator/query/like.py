"""LIKE, in a time that grows with the text and not with its number of ways to match.

A pattern is cut at every `%`. What lies between has a fixed length, so the earliest offset where a
part fits is as good as any other, and no part is ever looked for twice.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from cosmos_emulator.query.errors import QueryError

# A part with `_` or `[…]` is compared at every offset of a text: this many characters at most.
MOST_COMPARISONS: Final = 200_000_000

_Find = Callable[[str, int], int]


@dataclass(frozen=True, slots=True)
class _Part:
    """What a text must contain between two `%`. `find` returns its first offset from another
    one on, or -1; `fits` whether it is at an offset."""

    length: int
    find: _Find
    fits: Callable[[str, int], bool]
    is_plain: bool


@dataclass(frozen=True, slots=True)
class LikePattern:
    parts: tuple[_Part, ...]

    def matches(self, text: str) -> bool:
        first, *others = self.parts
        if not others:
            return len(text) == first.length and first.fits(text, 0)
        last = others.pop()
        end = len(text) - last.length
        if end < first.length or not first.fits(text, 0) or not last.fits(text, end):
            return False
        at = first.length
        for part in others:
            if not part.is_plain and part.length * (end - at) > MOST_COMPARISONS:
                raise QueryError("The pattern of LIKE is too complex for the text.", code="SC2007")
            at = part.find(text, at)
            if at < 0:
                return False
            at += part.length
            if at > end:
                return False
        return True


@lru_cache(maxsize=256)
def like_pattern(pattern: str, escape: str | None) -> LikePattern:
    """LIKE: `%` any text, `_` one character, `[a-d]` and `[^a-d]` one of a set."""
    parts: list[_Part] = []
    plain: list[str] = []  # the part as text, if it is nothing else
    wild: list[str] = []  # and as a regular expression without repetition
    at = 0
    while at < len(pattern):
        character = pattern[at]
        at += 1
        if character == escape and at < len(pattern):
            plain.append(pattern[at])
            wild.append(re.escape(pattern[at]))
            at += 1
        elif character == "%":
            parts.append(_part(plain, wild))
            plain, wild = [], []
        elif character == "_":
            wild.append(".")
        elif character == "[" and (end := pattern.find("]", at + 1)) > 0:
            chosen = pattern[at:end]
            negated = chosen.startswith("^")
            body = re.sub(r"([\\\[\]^&~|])", r"\\\1", chosen[negated:])
            wild.append(f"[{'^' if negated else ''}{body}]")
            at = end + 1
        else:
            plain.append(character)
            wild.append(re.escape(character))
    parts.append(_part(plain, wild))
    # An empty part between two `%` is found everywhere.
    inner = [part for part in parts[1:-1] if part.length]
    return LikePattern((parts[0], *inner, *parts[1:][-1:]))


def _part(plain: list[str], wild: list[str]) -> _Part:
    if len(plain) == len(wild):
        wanted = "".join(plain)
        return _Part(
            len(wanted),
            lambda text, at: text.find(wanted, at),
            lambda text, at: text.startswith(wanted, at),
            is_plain=True,
        )
    try:
        regex = re.compile("".join(wild), re.DOTALL)
    except re.error:
        text = "".join(wild)
        raise QueryError(f"The pattern of LIKE is invalid: {text}", code="SC2007") from None

    def find(text: str, at: int) -> int:
        found = regex.search(text, at)
        return -1 if found is None else found.start()

    return _Part(
        len(wild), find, lambda text, at: regex.match(text, at) is not None, is_plain=False
    )
