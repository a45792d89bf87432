"""Expressions to closures: what a query computes for one row."""

import math
import operator
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from cosmos_emulator.query import nodes
from cosmos_emulator.query.aggregates import AGGREGATES, Factory
from cosmos_emulator.query.errors import QueryError
from cosmos_emulator.query.functions import CLOCK_FUNCTIONS, FUNCTIONS, LAZY_FUNCTIONS
from cosmos_emulator.query.functions.strings import concatenated
from cosmos_emulator.query.like import like_pattern
from cosmos_emulator.query.operators import ARITHMETIC
from cosmos_emulator.query.rows import NOW, Evaluate, Row
from cosmos_emulator.query.searching import full_text, searches_text, vector_distance
from cosmos_emulator.query.values import UNDEFINED, comparable, equal, identity, is_number, number

# Compiles a subquery to a function from the outer row to its results; given by `plan`.
CompileQuery = Callable[[nodes.Query, frozenset[str]], Callable[[Row], Iterator[Any]]]

_RANGES: dict[str, Callable[[Any, Any], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


@dataclass(slots=True)
class Grouping:
    """What the SELECT clause of an aggregating query needs from its groups."""

    keys: tuple[nodes.Expression, ...]
    aggregates: list[tuple[str, Factory, Evaluate]] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Scope:
    """The context of an expression: the aliases it may use, and the groups it sees, if any.

    A constant one must have the same value for every row.
    """

    names: frozenset[str]
    subquery: CompileQuery
    grouping: Grouping | None = None
    constant: bool = False


def compile_expression(node: nodes.Expression, scope: Scope) -> Evaluate:
    """The closure that evaluates `node`. Unknown names and functions are errors here, at once."""
    if scope.grouping is not None and node in scope.grouping.keys:
        slot = f"#key{scope.grouping.keys.index(node)}"
        return lambda row: row[slot]
    match node:
        case nodes.Constant(value):
            return lambda row: value
        case nodes.Parameter(name):
            return lambda row: _parameter(row, name)
        case nodes.Reference(name):
            return _reference(name, scope)
        case nodes.Member(target, key):
            return _member(target, key, scope)
        case nodes.ArrayLiteral(items):
            return _array([compile_expression(item, scope) for item in items])
        case nodes.ObjectLiteral(properties):
            return _object([(name, compile_expression(item, scope)) for name, item in properties])
        case nodes.Unary(sign, operand):
            return _unary(sign, compile_expression(operand, scope))
        case nodes.Binary(symbol, left, right):
            return _binary(
                symbol, compile_expression(left, scope), compile_expression(right, scope)
            )
        case nodes.And(operands):
            return _logical([compile_expression(part, scope) for part in operands], decisive=False)
        case nodes.Or(operands):
            return _disjunction(operands, scope)
        case nodes.Not(operand):
            return _not(compile_expression(operand, scope))
        case nodes.Coalesce(left, right):
            return _coalesce(compile_expression(left, scope), compile_expression(right, scope))
        case nodes.Conditional(condition, then, otherwise):
            return _conditional(
                compile_expression(condition, scope),
                compile_expression(then, scope),
                compile_expression(otherwise, scope),
            )
        case nodes.In(needle, items):
            if all(isinstance(item, nodes.Constant) for item in items):
                return _in_constants(compile_expression(needle, scope), items)
            return _in(
                compile_expression(needle, scope),
                [compile_expression(item, scope) for item in items],
            )
        case nodes.Between(operand, low, high):
            return _between(*(compile_expression(part, scope) for part in (operand, low, high)))
        case nodes.Like(operand, pattern, escape):
            return _like(
                compile_expression(operand, scope), compile_expression(pattern, scope), escape
            )
        case nodes.Call(name, arguments):
            return _call(name, arguments, scope)
        case nodes.Subquery(kind, query):
            return _subquery(kind, scope.subquery(query, scope.names))


def _parameter(row: Row, name: str) -> Any:
    return row.get(name, UNDEFINED)


def _reference(name: str, scope: Scope) -> Evaluate:
    if name not in scope.names:
        raise QueryError(f"Identifier '{name}' could not be resolved.", code="SC2001")
    if scope.grouping is not None:
        raise QueryError(
            f"Property reference '{name}' is invalid in the select list because it is not "
            "contained in either an aggregate function or the GROUP BY clause.",
            code="SC2102",
        )
    return lambda row: row[name]


def _member(target: nodes.Expression, key: nodes.Expression, scope: Scope) -> Evaluate:
    owner = compile_expression(target, scope)
    if isinstance(key, nodes.Constant) and type(key.value) is str:
        name = key.value

        def named(row: Row) -> Any:
            value = owner(row)
            return value.get(name, UNDEFINED) if type(value) is dict else UNDEFINED

        return named
    index = compile_expression(key, scope)

    def indexed(row: Row) -> Any:
        value, at = owner(row), index(row)
        if type(value) is dict and type(at) is str:
            return value.get(at, UNDEFINED)
        if type(value) is list and type(at) is int and 0 <= at < len(value):
            return value[at]
        return UNDEFINED

    return indexed


def _array(items: list[Evaluate]) -> Evaluate:
    return lambda row: [value for item in items if (value := item(row)) is not UNDEFINED]


def _object(properties: list[tuple[str, Evaluate]]) -> Evaluate:
    return lambda row: {
        name: value for name, item in properties if (value := item(row)) is not UNDEFINED
    }


def _unary(sign: str, operand: Evaluate) -> Evaluate:
    def evaluate(row: Row) -> Any:
        value = operand(row)
        if not is_number(value):
            return UNDEFINED
        if sign == "-":
            return -value
        return value if sign == "+" else ARITHMETIC["^"](value, -1)

    return evaluate


def _binary(symbol: str, left: Evaluate, right: Evaluate) -> Evaluate:
    if symbol in ("=", "!="):
        wanted = symbol == "="

        def equality(row: Row) -> Any:
            a, b = left(row), right(row)
            if a is UNDEFINED or b is UNDEFINED:
                return UNDEFINED
            return equal(a, b) is wanted

        return equality
    if symbol in _RANGES:
        compare = _RANGES[symbol]
        or_equal = symbol in ("<=", ">=")

        def relation(row: Row) -> Any:
            a, b = left(row), right(row)
            if not comparable(a, b):
                return UNDEFINED
            return or_equal if a is None else compare(a, b)

        return relation
    if symbol == "||":

        def concatenation(row: Row) -> Any:
            a, b = left(row), right(row)
            return concatenated(a, b) if type(a) is str and type(b) is str else UNDEFINED

        return concatenation
    compute = ARITHMETIC[symbol]
    # What is divided by zero can be compared, but not be answered.
    finite = _as_it_is if symbol == "/" else number

    def arithmetic(row: Row) -> Any:
        a, b = left(row), right(row)
        if not is_number(a) or not is_number(b):
            return UNDEFINED
        result = compute(a, b)
        return number(result) if math.isfinite(result) else finite(result)

    return arithmetic


def _as_it_is(value: float) -> float:
    return value


def _logical(operands: list[Evaluate], *, decisive: bool) -> Evaluate:
    """AND and OR: one operand may decide; otherwise an operand that is not a boolean makes the
    result undefined."""

    def evaluate(row: Row) -> Any:
        result: Any = not decisive
        for operand in operands:
            value = operand(row)
            if value is decisive:
                return decisive
            if type(value) is not bool:
                result = UNDEFINED
        return result

    return evaluate


def _disjunction(operands: tuple[nodes.Expression, ...], scope: Scope) -> Evaluate:
    """OR. If it looks for several texts in one array, the array is evaluated once."""
    general = _logical([compile_expression(part, scope) for part in operands], decisive=True)
    arrays = [_array_searched(part) for part in operands]
    if arrays[0] is None or any(each is None or each[0] != arrays[0][0] for each in arrays):
        return general
    array = compile_expression(arrays[0][0], scope)
    wanted = [compile_expression(each[1], scope) for each in arrays if each is not None]

    def evaluate(row: Row) -> Any:
        items = array(row)
        if type(items) is not list:
            return general(row)
        for each in wanted:
            text = each(row)
            if type(text) is not str:
                return general(row)
            if text in items:  # a text equals only the same text
                return True
        return False

    return evaluate


def _array_searched(node: nodes.Expression) -> tuple[nodes.Expression, nodes.Expression] | None:
    """What is looked for in which array, if the expression does just that."""
    match node:
        case nodes.Call("ARRAY_CONTAINS", (array, item)):
            return array, item
    return None


def _not(operand: Evaluate) -> Evaluate:
    def evaluate(row: Row) -> Any:
        value = operand(row)
        return not value if type(value) is bool else UNDEFINED

    return evaluate


def _coalesce(left: Evaluate, right: Evaluate) -> Evaluate:
    def evaluate(row: Row) -> Any:
        value = left(row)
        return right(row) if value is UNDEFINED else value

    return evaluate


def _conditional(condition: Evaluate, then: Evaluate, otherwise: Evaluate) -> Evaluate:
    return lambda row: then(row) if condition(row) is True else otherwise(row)


def _in(needle: Evaluate, items: list[Evaluate]) -> Evaluate:
    def evaluate(row: Row) -> Any:
        value = needle(row)
        if value is UNDEFINED:
            return UNDEFINED
        wanted = identity(value)
        return any(identity(item(row)) == wanted for item in items)

    return evaluate


def _in_constants(needle: Evaluate, items: tuple[nodes.Expression, ...]) -> Evaluate:
    wanted = {identity(item.value) for item in items if isinstance(item, nodes.Constant)}

    def evaluate(row: Row) -> Any:
        value = needle(row)
        return UNDEFINED if value is UNDEFINED else identity(value) in wanted

    return evaluate


def _between(operand: Evaluate, low: Evaluate, high: Evaluate) -> Evaluate:
    return _logical([_binary(">=", operand, low), _binary("<=", operand, high)], decisive=False)


def _like(operand: Evaluate, pattern: Evaluate, escape: str | None) -> Evaluate:
    def evaluate(row: Row) -> Any:
        value, like = operand(row), pattern(row)
        if type(value) is not str or type(like) is not str:
            return UNDEFINED
        return like_pattern(like, escape).matches(value)

    return evaluate


def _call(name: str, arguments: tuple[nodes.Expression, ...], scope: Scope) -> Evaluate:
    if name in AGGREGATES:
        return _aggregate(name, arguments, scope)
    compiled = [compile_expression(argument, scope) for argument in arguments]
    if name in ("VECTORDISTANCE", "_VECTORSCORE"):
        return vector_distance(name, arguments, compiled)
    if searches_text(name):
        return full_text(name, arguments, compiled)
    function = LAZY_FUNCTIONS.get(name) or FUNCTIONS.get(name) or CLOCK_FUNCTIONS.get(name)
    if function is None:
        raise QueryError(f"'{name}' is not a recognized built-in function name.", code="SC2005")
    if scope.constant and name == "RAND":
        raise QueryError("RAND is not a constant.")
    function.check_arity(name, len(arguments))
    call = function.call
    if name in CLOCK_FUNCTIONS:
        return lambda row: call(row[NOW], *(argument(row) for argument in compiled))
    if name in LAZY_FUNCTIONS:
        return lambda row: call(*(argument(row) for argument in compiled))

    def evaluate(row: Row) -> Any:
        values = [argument(row) for argument in compiled]
        if UNDEFINED in values:
            return UNDEFINED
        return call(*values)

    return evaluate


def _aggregate(name: str, arguments: tuple[nodes.Expression, ...], scope: Scope) -> Evaluate:
    if scope.grouping is None:
        raise QueryError(f"The aggregate function '{name}' is not allowed here.", code="SC2101")
    if len(arguments) != 1:
        raise QueryError(f"The {name} function requires 1 argument(s).", code="SC2004")
    argument = compile_expression(arguments[0], replace(scope, grouping=None))
    slot = f"#aggregate{len(scope.grouping.aggregates)}"
    scope.grouping.aggregates.append((slot, AGGREGATES[name], argument))
    return lambda row: row[slot]


def _subquery(kind: str, results: Callable[[Row], Iterator[Any]]) -> Evaluate:
    def scalar(row: Row) -> Any:
        values = list(results(row))
        if len(values) > 1:
            raise QueryError(
                "The cardinality of a scalar subquery result set cannot be greater than one.",
                code="SC2208",
            )
        return values[0] if values else UNDEFINED

    def every(row: Row) -> Any:
        return all(value is True for value in results(row))

    def last(row: Row) -> Any:
        return next(iter(deque(results(row), maxlen=1)), UNDEFINED)

    return {
        "scalar": scalar,
        "exists": lambda row: any(True for _ in results(row)),
        "array": lambda row: list(results(row)),
        "all": every,
        "first": lambda row: next(results(row), UNDEFINED),
        "last": last,
    }[kind]
