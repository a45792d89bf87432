"""String functions. An argument of another type makes the result undefined."""

import json
from collections.abc import Callable
from typing import Any, Final

from cosmos_emulator.query.errors import QueryError
from cosmos_emulator.query.functions.function import Function, fixed
from cosmos_emulator.query.regex import compiled
from cosmos_emulator.query.values import UNDEFINED, from_client

# Longer results of REPLICATE are undefined.
_LONGEST = 10_000
# A text that is longer fits into no answer: nested calls could otherwise fill the memory.
_LONGEST_RESULT = 4 * 1024 * 1024


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


def _check_length(length: int) -> None:
    if length > _LONGEST_RESULT:
        raise QueryError(
            f"A text of the query is longer than {_LONGEST_RESULT} characters.", code="SC3015"
        )


def concatenated(*texts: str) -> str:
    _check_length(sum(map(len, texts)))
    return "".join(texts)


def _replace(text: str, old: str, new: str) -> Any:
    if not old:
        return UNDEFINED
    if len(new) > len(old):
        _check_length(len(text) + text.count(old) * (len(new) - len(old)))
    return text.replace(old, new)


def _replicate(text: Any, count: Any) -> Any:
    if type(text) is not str or type(count) is not int or count < 0:
        return UNDEFINED
    return text * count if len(text) * count <= _LONGEST else UNDEFINED


def _regex_match(text: str, pattern: str, modifiers: str = "") -> Any:
    regex = compiled(pattern, modifiers)
    return UNDEFINED if regex is None else regex.found_in(text)


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
    if not all(type(item) is str for item in items):
        return UNDEFINED
    _check_length(sum(map(len, items)) + len(separator) * len(items))
    return separator.join(items)


def _split(text: str, separator: str) -> list[str]:
    return text.split(separator) if separator else [text]


def _text_function(compute: Callable[..., Any], least: int, most: int | None = None) -> Function:
    return Function(_on_strings(compute), least, most or least)


FUNCTIONS: Final[dict[str, Function]] = {
    "CONCAT": Function(_on_strings(concatenated), 2, None),
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
