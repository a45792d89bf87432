"""The part of a query that SQLite can do: a condition that every result meets, and the order.

The condition is necessary, not sufficient: the engine evaluates WHERE again on what SQLite
returns. `exact` says that nothing is expected to fall out there, so that a limit may be set.

Numbers get a little slack, since SQLite does not promise to read a decimal to the last bit.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from cosmos_emulator.query import nodes
from cosmos_emulator.query.compiler import Scope, compile_expression
from cosmos_emulator.query.errors import QueryError
from cosmos_emulator.query.ordering import (
    around,
    contains_any,
    json_path,
    sortable,
    sql_number,
    sql_order_terms,
)
from cosmos_emulator.query.rows import Evaluate, Row
from cosmos_emulator.query.values import (
    ARRAY,
    FALSE,
    NULL,
    NUMBER,
    OBJECT,
    STRING,
    TRUE,
    UNDEFINED,
    rank,
)

# SQLite is not used above this: a statement takes a limited number of values.
_MOST_PARAMS: Final = 5_000


@dataclass(frozen=True, slots=True)
class Condition:
    sql: str
    params: tuple[Any, ...] = ()
    exact: bool = True
    same: bool = False  # it is equivalent to the query: documents need no check


def path_of(node: nodes.Expression, alias: str) -> tuple[str, ...] | None:
    """The names of `alias.a.b`; None if the expression is anything else."""
    path = nodes.property_path(node)
    return path[1] if path is not None and path[0] == alias and path[1] else None


class Pushdown:
    """Translates the conditions of one run: the parameters have their values."""

    def __init__(self, alias: str, parameters: Row, *, sorted_by: tuple[str, ...] = ()) -> None:
        self._alias = alias
        self._parameters = parameters
        self._sorted_by = sorted_by

    def condition(self, node: nodes.Expression) -> Condition | None:
        """A condition that holds wherever `node` is true, or None."""
        match node:
            case nodes.Constant(True):
                return Condition("1")
            case nodes.And(operands):
                return _conjunction([self.condition(operand) for operand in operands])
            case nodes.Or(operands):
                return self._contains_any(operands) or _disjunction(
                    [self.condition(operand) for operand in operands]
                )
            case nodes.Binary(symbol, left, right) if symbol in _MIRRORED:
                return self._comparison(symbol, left, right) or self._comparison(
                    _MIRRORED[symbol], right, left
                )
            case nodes.Between(operand, low, high):
                return _conjunction(
                    [self._comparison(">=", operand, low), self._comparison("<=", operand, high)]
                )
            case nodes.In(needle, items):
                return _disjunction([self._comparison("=", needle, item) for item in items])
            case nodes.Call(name, (argument,)) if name in _RANK_TESTS:
                return self._rank_test(argument, _RANK_TESTS[name])
            case nodes.Not(nodes.Call("IS_DEFINED", (argument,))):
                return self._rank_test(argument, "= 0")
            case nodes.Call("ARRAY_CONTAINS", (_, _)):
                return self._contains_any((node,))
            case nodes.Call("STARTSWITH", (text, prefix)):
                return self._prefix(text, prefix, exact=True)
            case nodes.Like(text, pattern, escape):
                return self._prefix(text, pattern, exact=False, escape=escape)
        return None

    def fixed_rank(self, node: nodes.Expression, path: tuple[str, ...]) -> int | None:
        """The one type that the path has wherever `node` is true, if that is known."""
        match node:
            case nodes.And(operands):
                ranks = (self.fixed_rank(operand, path) for operand in operands)
                return next((found for found in ranks if found is not None), None)
            case nodes.Between(operand, low, _):
                return self._compared_rank(operand, low, path)
            case nodes.Binary(symbol, left, right) if symbol in _MIRRORED and symbol != "!=":
                found = self._compared_rank(left, right, path)
                return self._compared_rank(right, left, path) if found is None else found
            case nodes.Call("STARTSWITH", (text, _)) | nodes.Like(text, _, _):
                return STRING if path_of(text, self._alias) == path else None
        return None

    def _compared_rank(
        self, left: nodes.Expression, right: nodes.Expression, path: tuple[str, ...]
    ) -> int | None:
        constant = self._constant(right)
        if constant is None or path_of(left, self._alias) != path:
            return None
        type_rank = rank(constant(self._parameters))
        return type_rank if type_rank in (NUMBER, STRING) else None

    def _comparison(
        self, symbol: str, left: nodes.Expression, right: nodes.Expression
    ) -> Condition | None:
        path = path_of(left, self._alias)
        if path is None or not (terms := sql_order_terms(path)):
            return None
        constant = self._constant(right)
        if constant is None:
            return None
        value = constant(self._parameters)
        if symbol == "=" and path == self._sorted_by and rank(value) in (NUMBER, STRING):
            # SQLite does not serve an order by a value that it knows to be equal.
            return _conjunction([_compare(terms, ">=", value), _compare(terms, "<=", value)])
        return _compare(terms, symbol, value)

    def _constant(self, node: nodes.Expression) -> Evaluate | None:
        """The expression's closure if it depends on no row."""
        try:
            return compile_expression(node, NO_NAMES)
        except QueryError:
            return None

    def _prefix(
        self,
        text: nodes.Expression,
        prefix: nodes.Expression,
        *,
        exact: bool,
        escape: str | None = None,
    ) -> Condition | None:
        """The range of the texts that start alike; of a LIKE pattern, as far as it is plain."""
        constant = self._constant(prefix)
        start = constant(self._parameters) if constant else UNDEFINED
        if type(start) is not str:
            return None
        if not exact:
            start = re.split(f"[%_[{re.escape(escape or '')}]", start, maxsplit=1)[0]
        low = self._comparison(">=", text, nodes.Constant(start))
        end = _beyond(start)
        if low is None or end is None:
            return low
        both = _conjunction([low, self._comparison("<", text, nodes.Constant(end))])
        return both and Condition(both.sql, both.params, both.exact and exact)

    def _contains_any(self, operands: Sequence[nodes.Expression]) -> Condition | None:
        """`ARRAY_CONTAINS(c.a, 'x') OR ARRAY_CONTAINS(c.a, 'y') …`, of one path and for texts."""
        paths: set[tuple[str, ...] | None] = set()
        wanted: list[str] = []
        for operand in operands:
            match operand:
                case nodes.Call("ARRAY_CONTAINS", (array, item)):
                    constant = self._constant(item)
                    value = constant(self._parameters) if constant else UNDEFINED
                    if type(value) is not str or not sortable(value):
                        return None
                    paths.add(path_of(array, self._alias))
                    wanted.append(value)
                case _:
                    return None
        path = paths.pop()
        if paths or path is None or len(wanted) > _MOST_PARAMS:
            return None
        at = json_path(path)
        return Condition(contains_any(at, len(wanted)), tuple(wanted), same=True) if at else None

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
    raise QueryError("A subquery is not a constant.")


NO_NAMES: Final = Scope(frozenset(), _no_subquery, constant=True)


def _compare(terms: list[str], symbol: str, value: Any) -> Condition | None:
    if value is UNDEFINED:
        return Condition("0")
    type_rank = rank(value)
    if len(terms) == 1:
        return _compare_id(symbol, value, type_rank)
    kind, content = terms
    if symbol == "!=":
        return Condition(f"{kind} > 0", exact=False)
    if type_rank in (NULL, FALSE, TRUE):
        return Condition(f"{kind} = {type_rank}") if symbol == "=" else None
    if type_rank == STRING:
        if not sortable(value):
            return None
        # A text with a zero character reads shorter in SQLite: hence `<=` for `<`.
        return Condition(f"({kind} = {STRING} AND {content} {_loose(symbol)} ?)", (value,))
    if type_rank == NUMBER:
        if symbol == "=" and type(value) is int:
            return Condition(f"({kind} = {NUMBER} AND {content} = ?)", (sql_number(value),))
        low, high = around(value)
        test, bounds = {
            "=": (f"{content} BETWEEN ? AND ?", (low, high)),
            "<": (f"{content} <= ?", (high,)),
            "<=": (f"{content} <= ?", (high,)),
            ">": (f"{content} >= ?", (low,)),
            ">=": (f"{content} >= ?", (low,)),
        }[symbol]
        return Condition(f"({kind} = {NUMBER} AND {test})", bounds)
    return None


def _compare_id(symbol: str, value: Any, type_rank: int) -> Condition | None:
    if symbol == "!=":
        return Condition("1", exact=False)
    if type_rank != STRING:
        return Condition("0")
    return Condition(f"id {symbol} ?", (value,), same=True) if sortable(value) else None


def _loose(symbol: str) -> str:
    return {"<": "<=", ">": ">="}.get(symbol, symbol)


def _beyond(prefix: str) -> str | None:
    """The smallest text that sorts after all that start with the prefix, if there is one."""
    for at in range(len(prefix) - 1, -1, -1):
        code = ord(prefix[at])
        if code < 0x10FFFF:
            return prefix[:at] + chr(0xE000 if code == 0xD7FF else code + 1)
    return None


def _conjunction(conditions: Sequence[Condition | None]) -> Condition | None:
    known = [condition for condition in conditions if condition is not None]
    if not known:
        return None
    return _joined("AND", known, exact=len(known) == len(conditions))


def _disjunction(conditions: Sequence[Condition | None]) -> Condition | None:
    known = [condition for condition in conditions if condition is not None]
    return _joined("OR", known, exact=True) if len(known) == len(conditions) else None


def _joined(operator: str, conditions: list[Condition], *, exact: bool) -> Condition | None:
    params = tuple(value for condition in conditions for value in condition.params)
    if len(params) > _MOST_PARAMS:
        return None
    return Condition(
        _tree(operator, [condition.sql for condition in conditions]),
        params,
        exact and all(condition.exact for condition in conditions),
        exact and all(condition.same for condition in conditions),
    )


def _tree(operator: str, parts: list[str]) -> str:
    """Joined as a balanced tree: SQLite allows no deep ones."""
    if len(parts) == 1:
        return parts[0]
    half = len(parts) // 2
    return f"({_tree(operator, parts[:half])} {operator} {_tree(operator, parts[half:])})"
