"""Syntax tree to query text, the way the service writes the queries that SDKs send to ranges."""

import json
import math
import re
from typing import Any, Final

from cosmos_emulator.query import nodes
from cosmos_emulator.query.values import UNDEFINED

_PLAIN_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
# Keywords: a property with such a name must be written in brackets.
_WORDS: Final = frozenset(
    (
        *("ALL", "AND", "ARRAY", "AS", "ASC", "BETWEEN", "BY", "DESC", "DISTINCT", "ESCAPE"),
        *("EXISTS", "FIRST", "FROM", "GROUP", "IN", "JOIN", "LAST", "LIKE", "LIMIT", "NOT"),
        *("OFFSET", "OR", "ORDER", "RANK", "SELECT", "TOP", "VALUE", "WHERE"),
    )
)
_SUBQUERIES: Final = {"exists": "EXISTS", "array": "ARRAY", "all": "ALL", "first": "FIRST"}


def query_text(query: nodes.Query, separator: str = "\n") -> str:
    """The text of a query, one clause a line."""
    head = ["SELECT"]
    if query.distinct:
        head.append("DISTINCT")
    if query.top is not None:
        head.append(f"TOP {expression_text(query.top)}")
    clauses = [" ".join([*head, _selection(query.selection)])]
    if query.sources:
        clauses.append("FROM " + " JOIN ".join(_source(source) for source in query.sources))
    if query.where is not None:
        clauses.append(f"WHERE {expression_text(query.where)}")
    if query.group_by:
        clauses.append(f"GROUP BY {_list(query.group_by)}")
    if query.order_by:
        rank = "RANK " if query.ranked else ""
        clauses.append(f"ORDER BY {rank}" + ", ".join(_order(item) for item in query.order_by))
    if query.offset is not None and query.limit is not None:
        offset, limit = expression_text(query.offset), expression_text(query.limit)
        clauses.append(f"OFFSET {offset} LIMIT {limit}")
    return separator.join(clauses)


def expression_text(node: nodes.Expression) -> str:
    match node:
        case nodes.Constant(value):
            return _constant(value)
        case nodes.Parameter(name) | nodes.Reference(name):
            return name
        case nodes.Member(target, key):
            return expression_text(target) + _step(key)
        case nodes.ArrayLiteral(items):
            return f"[{_list(items)}]"
        case nodes.ObjectLiteral(properties):
            pairs = (f"{json.dumps(key)}: {expression_text(item)}" for key, item in properties)
            return "{" + ", ".join(pairs) + "}"
        case nodes.Call(name, arguments):
            return f"{name}({_list(arguments)})"
        case nodes.Subquery(kind, query):
            name = "" if kind == "scalar" else _SUBQUERIES.get(kind, "LAST")
            return f"{name}({query_text(query, ' ')})"
        case nodes.Unary(operator, operand):
            return f"({operator}({expression_text(operand)}))"
        case nodes.Not(operand):
            return f"(NOT {expression_text(operand)})"
        case nodes.Binary(operator, left, right):
            return _joined(operator, (left, right))
        case nodes.And(operands):
            return _joined("AND", operands)
        case nodes.Or(operands):
            return _joined("OR", operands)
        case nodes.Coalesce(left, right):
            return _joined("??", (left, right))
        case nodes.Conditional(condition, then, otherwise):
            parts = (expression_text(part) for part in (condition, then, otherwise))
            return "({} ? {} : {})".format(*parts)
        case nodes.In(needle, items):
            return f"({expression_text(needle)} IN ({_list(items)}))"
        case nodes.Between(operand, low, high):
            return f"({expression_text(operand)} BETWEEN {_joined_bare(low, high)})"
        case nodes.Like(operand, pattern, escape):
            tail = "" if escape is None else f" ESCAPE {json.dumps(escape)}"
            return f"({expression_text(operand)} LIKE {expression_text(pattern)}{tail})"


def _joined(operator: str, operands: tuple[nodes.Expression, ...]) -> str:
    return "(" + f" {operator} ".join(expression_text(operand) for operand in operands) + ")"


def _joined_bare(low: nodes.Expression, high: nodes.Expression) -> str:
    return f"{expression_text(low)} AND {expression_text(high)}"


def _list(items: tuple[nodes.Expression, ...]) -> str:
    return ", ".join(expression_text(item) for item in items)


def _constant(value: Any) -> str:
    if value is UNDEFINED:
        return "undefined"
    if isinstance(value, float) and math.isinf(value):
        return "1e999" if value > 0 else "-1e999"
    return json.dumps(value)


def _step(key: nodes.Expression) -> str:
    match key:
        case nodes.Constant(str() as name) if _is_plain(name):
            return f".{name}"
    return f"[{expression_text(key)}]"


def _is_plain(name: str) -> bool:
    return _PLAIN_NAME.fullmatch(name) is not None and name.upper() not in _WORDS


def _selection(selection: nodes.Star | nodes.Value | nodes.Properties) -> str:
    match selection:
        case nodes.Star():
            return "*"
        case nodes.Value(expression):
            return f"VALUE {expression_text(expression)}"
        case nodes.Properties(items):
            return ", ".join(_item(name, expression) for name, expression in items)


def _item(name: str, expression: nodes.Expression) -> str:
    """The expression with its name, unless that is its default name."""
    match expression:
        case nodes.Reference(own) | nodes.Member(_, nodes.Constant(str() as own)) if own == name:
            return expression_text(expression)
    # What has no name of its own is numbered: $1, $2 … Such a name cannot be written.
    return expression_text(expression) + ("" if name.startswith("$") else f" AS {name}")


def _source(source: nodes.Source) -> str:
    collection = source.collection
    if isinstance(collection, nodes.Query):
        text = f"({query_text(collection, ' ')})"
    else:
        text = collection.name + "".join(_step(nodes.Constant(step)) for step in collection.steps)
    if source.iterate:
        return f"{source.alias} IN {text}"
    if isinstance(collection, nodes.Path) and source.alias == text:
        return text
    return f"{text} AS {source.alias}" if source.alias else text


def _order(item: nodes.Order) -> str:
    direction = (" DESC" if item.descending else " ASC") if item.direction_given else ""
    return expression_text(item.expression) + direction
