"""ORDER BY in SQLite, and how to continue after a row.

A path sorts by two expressions: its type, then its value. SQLite serves an order from an index on
these expressions if WHERE does not fix the first of them by equality; where it does, only the
second is asked for. That is why a continued query is cut in two: the rest of the type at which it
stopped, and the types after it.

What SQLite returns may include rows before it: the engine drops them. Numbers get a little
slack, since SQLite does not promise to read a decimal to the last bit.
"""

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from cosmos_emulator.query.values import ARRAY, FALSE, NULL, NUMBER, OBJECT, STRING, TRUE, SortKey

# Names that SQLite's JSON paths take as they are, whatever version it is.
_PLAIN_NAME: Final = re.compile(r"[A-Za-z0-9_ .:/$@#+-]+")
_VALUE_TERM: Final = re.compile(r"CASE WHEN json_type\(body,('[^']*')\)")
_SLACK: Final = 4


def sql_order_terms(path: tuple[str, ...]) -> list[str]:
    """SQL expressions over `body` that sort as ORDER BY of this path: the type, then the value.

    Empty for a path that SQLite cannot follow.
    """
    if path == ("id",):
        return ["id"]
    at = json_path(path)
    if not at:
        return []
    return [
        _type_term(at),
        f"CASE WHEN json_type(body,{at}) IN ('text','integer','real') "
        f"THEN json_extract(body,{at}) END",
    ]


def json_path(path: tuple[str, ...]) -> str:
    """The path as SQLite writes it, in quotes; empty if SQLite cannot follow it."""
    if not path or not all(_PLAIN_NAME.fullmatch(name) for name in path):
        return ""
    return "'$" + "".join(f'."{name}"' for name in path) + "'"


def indexed_arrays(policy: Mapping[str, Any]) -> list[str]:
    """The JSON paths, in quotes, of the arrays whose items a container's policy names."""
    paths = (str(each.get("path")) for each in policy.get("includedPaths") or [])
    named = (path.removesuffix("/[]/?") for path in paths if path.endswith("/[]/?"))
    found = (json_path(tuple(name.strip('"') for name in path.split("/")[1:])) for path in named)
    return [path for path in found if path]


def contains_any(at: str, count: int) -> str:
    """Whether the array there has one of `count` texts. `array_lookup` recognises this form."""
    return (
        f"EXISTS (SELECT 1 FROM json_each(body,{at}) WHERE type = 'text'"
        f" AND value IN ({','.join('?' * count)}))"
    )


_CONTAINS: Final = re.compile(
    r"EXISTS \(SELECT 1 FROM json_each\(body,('[^']*')\) WHERE type = 'text'"
    r" AND value IN (\([?,]+\))\)"
)


def array_lookup(where: str, table_of: Callable[[str], str | None]) -> str:
    """The condition with `contains_any` served by a table of (value, rowid), where there is one."""

    def served(found: re.Match[str]) -> str:
        table = table_of(found[1])
        if table is None:
            return found[0]
        return f"rowid IN (SELECT seq FROM {table} WHERE value IN {found[2]})"

    return _CONTAINS.sub(served, where)


def _type_term(at: str) -> str:
    return (
        f"CASE json_type(body,{at}) WHEN 'text' THEN {STRING} WHEN 'integer' THEN {NUMBER} "
        f"WHEN 'real' THEN {NUMBER} WHEN 'true' THEN {TRUE} WHEN 'false' THEN {FALSE} "
        f"WHEN 'null' THEN {NULL} WHEN 'array' THEN {ARRAY} WHEN 'object' THEN {OBJECT} "
        "ELSE 0 END"
    )


def index_terms(order_by: Sequence[str]) -> list[str]:
    """The expressions of an index that serves this order, whether types are fixed in it or not."""
    terms: list[str] = []
    for term in (term.removesuffix(" DESC") for term in order_by):
        value = _VALUE_TERM.match(term)
        if value is not None and (kind := _type_term(value[1])) not in terms:
            terms.append(kind)
        if term != "rowid":
            terms.append(term)
    return terms


@dataclass(frozen=True, slots=True)
class SortTerm:
    """One ORDER BY item: its path, and its SQL (type and value, or a column)."""

    path: tuple[str, ...]
    sql: tuple[str, ...]
    descending: bool


Position = tuple[tuple[SortKey, ...], int]


@dataclass(frozen=True, slots=True)
class Segment:
    """One statement of a sorted query: where it starts, and its order."""

    where: str | None
    params: tuple[Any, ...]
    order_by: tuple[str, ...]


def segments(
    terms: Sequence[SortTerm], position: Position | None, *, type_is_fixed: bool
) -> list[Segment]:
    """The statements that together return everything from the position on, in order."""
    if position is None:
        return [Segment(None, (), _order(terms, without_type=type_is_fixed))]
    if not terms:
        return [Segment("rowid >= ?", (position[1],), ("rowid",))]
    first, (type_rank, value) = terms[0], position[0][0]
    larger = "<" if first.descending else ">"
    tie, tie_params = _after(terms[1:], (position[0][1:], position[1]), terms[-1].descending)
    start: list[str] = []
    params: list[Any] = []
    if len(first.sql) == 2:
        start.append(f"{first.sql[0]} = {type_rank}")
    if type_rank in (NUMBER, STRING):
        bound = _bound(value, first.descending)
        if bound is not None:
            start.append(f"{first.sql[-1]} {larger}= ?")
            params.append(bound)
        if bound is None or bound != value or type(value) is float:
            tie, tie_params = "1", ()
        else:
            tie = f"({first.sql[-1]} {larger} ? OR {tie})"
            params.append(bound)
    rest = Segment(
        " AND ".join([*start, tie]), (*params, *tie_params), _order(terms, without_type=True)
    )
    if len(first.sql) == 1 or type_is_fixed:
        return [rest]
    beyond = Segment(f"{first.sql[0]} {larger} {type_rank}", (), _order(terms, without_type=False))
    return [rest, beyond]


def _order(terms: Sequence[SortTerm], *, without_type: bool) -> tuple[str, ...]:
    """Ties in order of creation, reversed if the last key is descending."""
    order = [
        f"{sql} DESC" if term.descending else sql
        for at, term in enumerate(terms)
        for sql in (term.sql[-1:] if without_type and at == 0 else term.sql)
    ]
    return (*order, "rowid DESC" if terms and terms[-1].descending else "rowid")


def _after(
    terms: Sequence[SortTerm], position: Position, rowids_descend: bool
) -> tuple[str, tuple[Any, ...]]:
    """The rows that are not before the position, by these terms."""
    keys, rowid = position
    if not terms:
        return f"rowid {'<=' if rowids_descend else '>='} ?", (rowid,)
    term, (type_rank, value) = terms[0], keys[0]
    larger = "<" if term.descending else ">"
    sql, params = _after(terms[1:], (keys[1:], rowid), rowids_descend)
    if type_rank in (NUMBER, STRING):
        bound = _bound(value, term.descending)
        content = term.sql[-1]
        if bound is None:
            sql, params = "1", ()
        elif type(value) is float:
            sql, params = f"{content} {larger}= ?", (bound,)
        else:
            sql = f"({content} {larger} ? OR ({content} = ? AND {sql}))"
            params = (bound, bound, *params)
    if len(term.sql) == 2:
        kind = term.sql[0]
        sql = f"({kind} {larger} {type_rank} OR ({kind} = {type_rank} AND {sql}))"
    return sql, params


def _bound(value: Any, descending: bool) -> Any:
    """A value that SQLite can compare with, at or before this one; None if there is none."""
    if type(value) is str:
        return value if sortable(value) else None
    if type(value) is float:
        return around(value)[descending]
    return sql_number(value)


def sortable(text: str) -> bool:
    """Whether SQLite sorts the text in the same way: it stops at a zero character."""
    return "\0" not in text and not any("\ud800" <= character <= "\udfff" for character in text)


def sql_number(value: Any) -> Any:
    """A value that SQLite can bind: its integers have 64 bits."""
    return float(value) if type(value) is int and not -(2**63) <= value < 2**63 else value


def around(value: float) -> tuple[float, float]:
    slack = _SLACK * math.ulp(float(value))
    return float(value) - slack, float(value) + slack
