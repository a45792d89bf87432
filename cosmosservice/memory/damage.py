"""Damaged documents: left out and logged once, so that one of them hides no other memory.

A field that is read must have its type. The log names the document by Cosmos DB's own id of it and
the field, never what is in it.
"""

from __future__ import annotations

import logging
import re
import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping
from typing import Any, Final

from cosmosservice.memory.documents import FORGOTTEN, MEMORY, PART, VECTOR

logger = logging.getLogger("cosmosservice")

MOST_REPORTED: Final = 10_000
_AT: Final = re.compile(r"[^.]*\.[0-9]{1,18}")


class Damage:
    """Which documents were reported. Shared by all event loops of a service."""

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._reported: OrderedDict[str, None] = OrderedDict()

    def report(self, document: Mapping[str, Any], what: str) -> None:
        """Logs it, unless the document was reported before."""
        name = str(document.get("_rid"))
        with self._guard:
            if name in self._reported:
                return
            self._reported[name] = None
            if len(self._reported) > MOST_REPORTED:
                self._reported.popitem(last=False)
        logger.error(
            "The document %s of a memory is damaged, and is left out: %s. Other memories are not"
            " affected.",
            name,
            what,
        )

    def is_memory(self, document: Mapping[str, Any]) -> bool:
        """Whether a whole document is a memory that can be shown. Reports it if it is damaged."""
        wrong = _wrong(document, _MEMORY)
        if wrong is None and document["kind"] != MEMORY:
            return False
        return not self._reports(document, wrong)

    def is_match(self, row: Mapping[str, Any]) -> bool:
        """Whether the small fields of a match can be ranked. Reports it if they are damaged."""
        return not self._reports(row, _wrong(row, _OF_PART if "of" in row else _MATCH))

    def is_whole(self, document: Mapping[str, Any]) -> bool:
        """Whether a document of any kind is as it should be. Reports it if it is not."""
        kind = document.get("kind")
        shape = _MEMORY if kind == MEMORY else _BESIDE if kind in (PART, VECTOR) else _KIND
        return not self._reports(document, _wrong(document, shape))

    def _reports(self, document: Mapping[str, Any], wrong: str | None) -> bool:
        if wrong is not None:
            self.report(document, f"its field {wrong} is missing or wrong")
        return wrong is not None


def is_at(value: object) -> bool:
    return isinstance(value, str) and _AT.fullmatch(value) is not None


def strings(value: object) -> list[str]:
    """The strings in a list; none if it is not a list."""
    return [each for each in value if isinstance(each, str)] if isinstance(value, list) else []


def _is_text(value: object) -> bool:
    return isinstance(value, str)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_strings(value: object) -> bool:
    return isinstance(value, list) and {str}.issuperset(map(type, value))


def _is_kind(value: object) -> bool:
    return isinstance(value, str) and value in (MEMORY, FORGOTTEN, PART, VECTOR)


def _or_none(check: Callable[[object], bool]) -> Callable[[object], bool]:
    return lambda value: value is None or check(value)


def _is_texts(value: object) -> bool:
    return isinstance(value, dict) and all(map(_is_text, value.values()))


def _is_mapping(value: object) -> bool:
    return isinstance(value, dict)


_Shape = Mapping[str, Callable[[object], bool]]

_KIND: Final[_Shape] = {"kind": _is_kind}
_RANKED: Final[_Shape] = {
    "time": _is_number,
    "length": _is_number,
    "tokens": _is_strings,
}
_MATCH: Final[_Shape] = {"at": is_at, **_RANKED}
_OF_PART: Final[_Shape] = {"of": _is_text, "beside": is_at, **_RANKED}
_BESIDE: Final[_Shape] = {"of": _is_text, "beside": is_at}
_MEMORY: Final[_Shape] = {
    **_KIND,
    "memory_id": _is_text,
    "at": is_at,
    "time": _is_number,
    "session_id": _or_none(_is_text),
    "incarnation": _or_none(_is_text),
    "also_in": _or_none(_is_strings),
    "incarnations": _or_none(_is_texts),
    "metadata": _or_none(_is_mapping),
}


def _wrong(document: Mapping[str, Any], shape: _Shape) -> str | None:
    """The first field that is missing or wrong."""
    return next((name for name, check in shape.items() if not check(document.get(name))), None)
