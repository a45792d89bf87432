"""The syntax tree of a query. Nodes are compared by value: GROUP BY relies on it."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields, is_dataclass
from typing import Any, Literal


@dataclass(frozen=True, slots=True)
class Constant:
    value: Any


@dataclass(frozen=True, slots=True)
class Parameter:
    name: str


@dataclass(frozen=True, slots=True)
class Reference:
    """An alias of the FROM clause."""

    name: str


@dataclass(frozen=True, slots=True)
class Member:
    """`target.key` or `target[key]`."""

    target: "Expression"
    key: "Expression"


@dataclass(frozen=True, slots=True)
class ArrayLiteral:
    items: tuple["Expression", ...]


@dataclass(frozen=True, slots=True)
class ObjectLiteral:
    properties: tuple[tuple[str, "Expression"], ...]


@dataclass(frozen=True, slots=True)
class Unary:
    operator: str
    operand: "Expression"


@dataclass(frozen=True, slots=True)
class Binary:
    operator: str
    left: "Expression"
    right: "Expression"


@dataclass(frozen=True, slots=True)
class And:
    operands: tuple["Expression", ...]


@dataclass(frozen=True, slots=True)
class Or:
    operands: tuple["Expression", ...]


@dataclass(frozen=True, slots=True)
class Not:
    operand: "Expression"


@dataclass(frozen=True, slots=True)
class Coalesce:
    left: "Expression"
    right: "Expression"


@dataclass(frozen=True, slots=True)
class Conditional:
    condition: "Expression"
    then: "Expression"
    otherwise: "Expression"


@dataclass(frozen=True, slots=True)
class In:
    needle: "Expression"
    items: tuple["Expression", ...]


@dataclass(frozen=True, slots=True)
class Between:
    operand: "Expression"
    low: "Expression"
    high: "Expression"


@dataclass(frozen=True, slots=True)
class Like:
    operand: "Expression"
    pattern: "Expression"
    escape: str | None


@dataclass(frozen=True, slots=True)
class Call:
    """A built-in function; the name in upper case."""

    name: str
    arguments: tuple["Expression", ...]


@dataclass(frozen=True, slots=True)
class Subquery:
    kind: Literal["scalar", "exists", "array", "all", "first", "last"]
    query: "Query"


Expression = (
    Constant
    | Parameter
    | Reference
    | Member
    | ArrayLiteral
    | ObjectLiteral
    | Unary
    | Binary
    | And
    | Or
    | Not
    | Coalesce
    | Conditional
    | In
    | Between
    | Like
    | Call
    | Subquery
)


@dataclass(frozen=True, slots=True)
class Star:
    """`SELECT *`"""


@dataclass(frozen=True, slots=True)
class Value:
    """`SELECT VALUE expression`"""

    expression: Expression


@dataclass(frozen=True, slots=True)
class Properties:
    """`SELECT a, b AS c`"""

    items: tuple[tuple[str, Expression], ...]


@dataclass(frozen=True, slots=True)
class Path:
    """A collection named by an alias and steps into it."""

    name: str
    steps: tuple[str | int, ...]


@dataclass(frozen=True, slots=True)
class Source:
    """One collection of the FROM clause; `iterate` for `alias IN collection`."""

    collection: "Path | Query"
    alias: str
    iterate: bool


@dataclass(frozen=True, slots=True)
class Order:
    expression: Expression
    descending: bool
    direction_given: bool


@dataclass(frozen=True, slots=True)
class Query:
    selection: Star | Value | Properties
    distinct: bool
    top: Expression | None
    sources: tuple[Source, ...]
    where: Expression | None
    group_by: tuple[Expression, ...]
    order_by: tuple[Order, ...]
    ranked: bool
    offset: Expression | None
    limit: Expression | None


def value_query(expression: Expression) -> Query:
    """`SELECT VALUE expression`"""
    return Query(Value(expression), False, None, (), None, (), (), False, None, None)


def walk(node: Any) -> Iterator[Any]:
    """The node and everything in it; of a subquery only that it is there."""
    if isinstance(node, tuple):
        for part in node:
            yield from walk(part)
    elif isinstance(node, Expression | Star | Value | Properties | Order):
        yield node
        for field in fields(node):
            part = getattr(node, field.name)
            if not isinstance(part, Query):
                yield from walk(part)


def rewrite(node: Any, change: Callable[[Any], Any]) -> Any:
    """A copy of the tree, subqueries included, with `change` applied to every node from below."""
    if isinstance(node, tuple):
        return tuple(rewrite(part, change) for part in node)
    if not is_dataclass(node) or isinstance(node, type):
        return node
    parts = {field.name: rewrite(getattr(node, field.name), change) for field in fields(node)}
    return change(type(node)(**parts))


def property_path(node: Expression) -> tuple[str, tuple[str, ...]] | None:
    """Alias and names of `alias.a.b`; None if the expression is anything else."""
    names: list[str] = []
    while isinstance(node, Member):
        if not isinstance(node.key, Constant) or type(node.key.value) is not str:
            return None
        names.append(node.key.value)
        node = node.target
    return (node.name, tuple(reversed(names))) if isinstance(node, Reference) else None
