"""What SQLite can do of a query: a condition every answer meets, and the order.

The condition is necessary, not sufficient: the engine evaluates WHERE again on what SQLite
returns. `exact` says that nothing is expected to fall out there, so that a limit may be set.

Numbers get a little slack, since SQLite does not promise to read a decimal to the last bit.
"""

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from . import nodes
from .compiler import Evaluate, Row, Scope, compile_expression
from .errors import QueryError
from .values import ARRAY, FALSE, NULL, NUMBER, OBJECT, STRING, TRUE, UNDEFINED, SortKey, rank

# Names that SQLite's JSON paths take as they are, whatever version it is.
_PLAIN_NAME: Final = re.compile(r"[A-Za-z0-9_ .:/$@#+-]+")
_SLACK: Final = 4


@dataclass(frozen=True, slots=True)
class Condition:
    sql: str
    params: tuple[Any, ...] = ()
    exact: bool = True


def sql_order_terms(path: tuple[str, ...]) -> list[str]:
    """SQL expressions over `body` that sort as ORDER BY of this path: the type, then the value.

    Empty for a path that SQLite cannot follow. Indexes are made of exactly these texts.
    """
    if path == ("id",):
        return ["id"]
    if not path or not all(_PLAIN_NAME.fullmatch(name) for name in path):
        return []
    at = "'$" + "".join(f'."{name}"' for name in path) + "'"
    kind = f"json_type(body,{at})"
    return [
        f"CASE {kind} WHEN 'text' THEN {STRING} WHEN 'integer' THEN {NUMBER} "
        f"WHEN 'real' THEN {NUMBER} WHEN 'true' THEN {TRUE} WHEN 'false' THEN {FALSE} "
        f"WHEN 'null' THEN {NULL} WHEN 'array' THEN {ARRAY} WHEN 'object' THEN {OBJECT} "
        "ELSE 0 END",
        f"CASE WHEN {kind} IN ('text','integer','real') THEN json_extract(body,{at}) END",
    ]


def path_of(node: nodes.Expression, alias: str) -> tuple[str, ...] | None:
    """The property path of `alias.a.b`; None if the expression is anything else."""
    names: list[str] = []
    while isinstance(node, nodes.Member):
        if not isinstance(node.key, nodes.Constant) or type(node.key.value) is not str:
            return None
        names.append(node.key.value)
        node = node.target
    if not names or node != nodes.Reference(alias):
        return None
    return tuple(reversed(names))


class Pushdown:
    """Translates the conditions of one run: the parameters have their values."""

    def __init__(self, alias: str, parameters: Row) -> None:
        self._alias = alias
        self._parameters = parameters

    def condition(self, node: nodes.Expression) -> Condition | None:
        """A condition that holds wherever `node` is true, or None."""
        match node:
            case nodes.And(left, right):
                return _conjunction(self.condition(left), self.condition(right))
            case nodes.Or(left, right):
                return _disjunction([self.condition(left), self.condition(right)])
            case nodes.Binary(symbol, left, right) if symbol in _MIRRORED:
                return self._comparison(symbol, left, right) or self._comparison(
                    _MIRRORED[symbol], right, left
                )
            case nodes.Between(operand, low, high):
                return _conjunction(
                    self._comparison(">=", operand, low), self._comparison("<=", operand, high)
                )
            case nodes.In(needle, items):
                return _disjunction([self._comparison("=", needle, item) for item in items])
            case nodes.Call(name, (argument,)) if name in _RANK_TESTS:
                return self._rank_test(argument, _RANK_TESTS[name])
            case nodes.Not(nodes.Call("IS_DEFINED", (argument,))):
                return self._rank_test(argument, "= 0")
        return None

    def _comparison(
        self, symbol: str, left: nodes.Expression, right: nodes.Expression
    ) -> Condition | None:
        path = path_of(left, self._alias)
        if path is None or not (terms := sql_order_terms(path)):
            return None
        constant = self._constant(right)
        if constant is None:
            return None
        return _compare(terms, symbol, constant(self._parameters))

    def _constant(self, node: nodes.Expression) -> Evaluate | None:
        """The expression's closure if it depends on no row."""
        try:
            return compile_expression(node, _NO_NAMES)
        except QueryError:
            return None

    def _rank_test(self, argument: nodes.Expression, test: str) -> Condition | None:
        path = path_of(argument, self._alias)
        if path is None or not (terms := sql_order_terms(path)):
            return None
        if len(terms) == 1:
            return None
        return Condition(f"{terms[0]} {test}")


_MIRRORED: Final = {"=": "=", "!=": "!=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
_RANK_TESTS: Final = {
    "IS_DEFINED": "> 0",
    "IS_NULL": f"= {NULL}",
    "IS_BOOL": f"IN ({FALSE}, {TRUE})",
    "IS_NUMBER": f"= {NUMBER}",
    "IS_STRING": f"= {STRING}",
    "IS_ARRAY": f"= {ARRAY}",
    "IS_OBJECT": f"= {OBJECT}",
}


def _no_subquery(query: nodes.Query, names: frozenset[str]) -> Any:
    raise QueryError("A subquery is no constant.")


_NO_NAMES: Final = Scope(frozenset(), _no_subquery, constant=True)


def _compare(terms: list[str], symbol: str, value: Any) -> Condition | None:
    if value is UNDEFINED:
        return Condition("0")
    place = rank(value)
    if len(terms) == 1:
        return _compare_id(symbol, value, place)
    kind, content = terms
    if symbol == "!=":
        return Condition(f"{kind} > 0", exact=False)
    if place in (NULL, FALSE, TRUE):
        return Condition(f"{kind} = {place}") if symbol == "=" else None
    if place == STRING:
        if not _sortable(value):
            return None
        # A text with a zero character reads shorter in SQLite: hence `<=` for `<`.
        return Condition(f"({kind} = {STRING} AND {content} {_loose(symbol)} ?)", (value,))
    if place == NUMBER:
        if symbol == "=" and type(value) is int:
            return Condition(f"({kind} = {NUMBER} AND {content} = ?)", (_sql(value),))
        low, high = _around(value)
        test, bounds = {
            "=": (f"{content} BETWEEN ? AND ?", (low, high)),
            "<": (f"{content} <= ?", (high,)),
            "<=": (f"{content} <= ?", (high,)),
            ">": (f"{content} >= ?", (low,)),
            ">=": (f"{content} >= ?", (low,)),
        }[symbol]
        return Condition(f"({kind} = {NUMBER} AND {test})", bounds)
    return None


def _compare_id(symbol: str, value: Any, place: int) -> Condition | None:
    if symbol == "!=":
        return Condition("1", exact=False)
    if place != STRING:
        return Condition("0")
    return Condition(f"id {_loose(symbol)} ?", (value,)) if _sortable(value) else None


def _loose(symbol: str) -> str:
    return {"<": "<=", ">": ">="}.get(symbol, symbol)


def _sortable(text: str) -> bool:
    return "\0" not in text and not any("\ud800" <= character <= "\udfff" for character in text)


def _sql(value: Any) -> Any:
    """A value that SQLite can bind: its integers have 64 bits."""
    return float(value) if type(value) is int and not -(2**63) <= value < 2**63 else value


def _around(value: float) -> tuple[float, float]:
    slack = _SLACK * math.ulp(float(value))
    return float(value) - slack, float(value) + slack


def _conjunction(left: Condition | None, right: Condition | None) -> Condition | None:
    if left is None or right is None:
        some = left or right
        return None if some is None else Condition(some.sql, some.params, exact=False)
    return Condition(
        f"({left.sql} AND {right.sql})", left.params + right.params, left.exact and right.exact
    )


def _disjunction(conditions: Sequence[Condition | None]) -> Condition | None:
    known = [condition for condition in conditions if condition is not None]
    if len(known) != len(conditions):
        return None
    return Condition(
        "(" + " OR ".join(condition.sql for condition in known) + ")",
        tuple(value for condition in known for value in condition.params),
        all(condition.exact for condition in known),
    )


@dataclass(frozen=True, slots=True)
class SortTerm:
    """One ORDER BY item as SQL: one or two expressions, sorted the same way."""

    path: tuple[str, ...]
    sql: tuple[str, ...]
    descending: bool


def order_terms(terms: Sequence[SortTerm]) -> list[str]:
    """The ORDER BY list for SQLite, ties in order of creation (reversed with the last key)."""
    order = [f"{sql} DESC" if term.descending else sql for term in terms for sql in term.sql]
    return [*order, "rowid DESC" if terms and terms[-1].descending else "rowid"]


def after(terms: Sequence[SortTerm], keys: Sequence[SortKey], rowid: int) -> Condition:
    """Rows at or behind a place in the order. Some before it may be among them.

    One comparison of row values as far as the directions agree, so that an index can be entered
    at the place. The value of a row is NULL where its type says all: it is left out then.
    """
    columns: list[str] = []
    values: list[Any] = []
    down = bool(terms) and terms[0].descending
    for term, (place, value) in zip(terms, keys, strict=True):
        if term.descending is not down:
            break
        if len(term.sql) == 2:
            columns.append(term.sql[0])
            values.append(place)
        if place not in (NUMBER, STRING):
            continue
        if place == STRING and not _sortable(value):
            break
        columns.append(term.sql[-1])
        if type(value) is float:
            values.append(_around(value)[down])
            break
        values.append(_sql(value))
    else:
        columns.append("rowid")
        values.append(rowid)
    if not columns:
        return Condition("1")
    symbol = "<=" if down else ">="
    marks = ", ".join("?" * len(values))
    return Condition(f"({', '.join(columns)}) {symbol} ({marks})", tuple(values))
