"""String functions. An argument of another type makes the result undefined."""

import json
import re
from collections.abc import Callable
from functools import lru_cache
from typing import Any, Final

from cosmos_emulator.query.values import UNDEFINED, from_client

from .function import Function, fixed

# Longer results of REPLICATE are undefined.
_LONGEST = 10_000


def _on_strings(compute: Callable[..., Any]) -> Callable[..., Any]:
    """`compute` for arguments that are all strings."""

    def call(*values: Any) -> Any:
        return compute(*values) if all(type(value) is str for value in values) else UNDEFINED

    return call


def _matching(compute: Callable[[str, str], bool]) -> Function:
    """A comparison of two strings, the third argument true for one that ignores case."""

    def call(text: Any, part: Any, ignore_case: Any = False) -> Any:
        if type(text) is not str or type(part) is not str or type(ignore_case) is not bool:
            return UNDEFINED
        return compute(text.lower(), part.lower()) if ignore_case else compute(text, part)

    return Function(call, 2, 3)


def _containing(combine: Callable[[Any], bool], *, ignore_case: bool) -> Function:
    def compute(text: str, *parts: str) -> bool:
        if ignore_case:
            return combine(part.lower() in text.lower() for part in parts)
        return combine(part in text for part in parts)

    return Function(_on_strings(compute), 2, None)


def _slice(text: Any, start: Any, length: Any) -> Any:
    if type(text) is not str or type(start) is not int or type(length) is not int:
        return UNDEFINED
    if start < 0 or length <= 0:
        return ""
    return text[start : start + length]


def _right(text: Any, length: Any) -> Any:
    if type(text) is not str or type(length) is not int:
        return UNDEFINED
    return text[-length:] if length > 0 else ""


def _index_of(text: Any, part: Any, start: Any = 0) -> Any:
    if type(text) is not str or type(part) is not str or type(start) is not int:
        return UNDEFINED
    return text.find(part, max(start, 0))


def _last_index_of(text: Any, part: Any, start: Any = None) -> Any:
    if type(text) is not str or type(part) is not str:
        return UNDEFINED
    if start is None:
        return text.rfind(part)
    if type(start) is not int:
        return UNDEFINED
    return text.rfind(part, 0, start + 1) if start >= 0 else -1


def _replace(text: str, old: str, new: str) -> Any:
    return text.replace(old, new) if old else UNDEFINED


def _replicate(text: Any, count: Any) -> Any:
    if type(text) is not str or type(count) is not int or count < 0:
        return UNDEFINED
    return text * count if len(text) * count <= _LONGEST else UNDEFINED


@lru_cache(maxsize=256)
def _regex(pattern: str, modifiers: str) -> re.Pattern[str] | None:
    flags = {"m": re.MULTILINE, "s": re.DOTALL, "i": re.IGNORECASE, "x": re.VERBOSE}
    if not set(modifiers) <= flags.keys():
        return None
    chosen = re.NOFLAG
    for modifier in modifiers:
        chosen |= flags[modifier]
    try:
        return re.compile(pattern, chosen)
    except (re.error, OverflowError, RecursionError):
        return None


def _regex_match(text: str, pattern: str, modifiers: str = "") -> Any:
    regex = _regex(pattern, modifiers)
    return UNDEFINED if regex is None else regex.search(text) is not None


def _parsed(*kinds: type) -> Function:
    """A string read as JSON, if it is of one of these types."""

    def compute(text: str) -> Any:
        try:
            value = from_client(json.loads(text, parse_constant=_refuse))
        except (ValueError, RecursionError):
            return UNDEFINED
        return value if type(value) in kinds else UNDEFINED

    return fixed(_on_strings(compute), 1)


def _refuse(constant: str) -> None:
    raise ValueError(constant)


def to_string(value: Any) -> str:
    """A string as it is, anything else as JSON."""
    if type(value) is str:
        return value
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _join(items: Any, separator: Any) -> Any:
    if type(items) is not list or type(separator) is not str:
        return UNDEFINED
    return separator.join(items) if all(type(item) is str for item in items) else UNDEFINED


def _split(text: str, separator: str) -> list[str]:
    return text.split(separator) if separator else [text]


def _text_function(compute: Callable[..., Any], least: int, most: int | None = None) -> Function:
    return Function(_on_strings(compute), least, most or least)


FUNCTIONS: Final[dict[str, Function]] = {
    "CONCAT": Function(_on_strings(lambda *texts: "".join(texts)), 2, None),
    "CONTAINS": _matching(lambda text, part: part in text),
    "CONTAINS_ALL_CI": _containing(all, ignore_case=True),
    "CONTAINS_ALL_CS": _containing(all, ignore_case=False),
    "CONTAINS_ANY_CI": _containing(any, ignore_case=True),
    "CONTAINS_ANY_CS": _containing(any, ignore_case=False),
    "ENDSWITH": _matching(str.endswith),
    "INDEX_OF": Function(_index_of, 2, 3),
    "LASTINDEXOF": Function(_last_index_of, 2, 3),
    "LEFT": fixed(lambda text, length: _slice(text, 0, length), 2),
    "LENGTH": _text_function(len, 1),
    "LOWER": _text_function(str.lower, 1),
    "LTRIM": _text_function(str.lstrip, 1, 2),
    "REGEXMATCH": _text_function(_regex_match, 2, 3),
    "REPLACE": _text_function(_replace, 3),
    "REPLICATE": fixed(_replicate, 2),
    "REVERSE": _text_function(lambda text: text[::-1], 1),
    "RIGHT": fixed(_right, 2),
    "RTRIM": _text_function(str.rstrip, 1, 2),
    "STARTSWITH": _matching(str.startswith),
    "STRINGEQUALS": _matching(str.__eq__),
    "STRINGJOIN": fixed(_join, 2),
    "STRINGSPLIT": _text_function(_split, 2),
    "STRINGTOARRAY": _parsed(list),
    "STRINGTOBOOLEAN": _parsed(bool),
    "STRINGTONULL": _parsed(type(None)),
    "STRINGTONUMBER": _parsed(int, float),
    "STRINGTOOBJECT": _parsed(dict),
    "SUBSTRING": fixed(_slice, 3),
    "TOSTRING": fixed(to_string, 1),
    "TRIM": _text_function(str.strip, 1, 2),
    "UPPER": _text_function(str.upper, 1),
}
