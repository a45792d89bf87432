"""Builds the syntax tree of a query while lark reads it."""

import re
from typing import Any, Final, Literal

from lark import Lark, Token, Transformer
from lark.exceptions import UnexpectedCharacters, UnexpectedEOF, UnexpectedInput, UnexpectedToken

from cosmos_emulator.query import nodes
from cosmos_emulator.query.errors import QueryError
from cosmos_emulator.query.values import UNDEFINED, number

# Words that are never a name. `c["order"]` reaches a property that is called so.
_RESERVED: Final = frozenset(
    (
        *("AND", "AS", "ASC", "BETWEEN", "BY", "DESC", "DISTINCT", "EXISTS", "FROM", "GROUP"),
        *("IN", "JOIN", "LIKE", "NOT", "OR", "ORDER", "SELECT", "TOP", "VALUE", "WHERE"),
    )
)
_LITERALS: Final[dict[str, Any]] = {
    "true": True,
    "false": False,
    "null": None,
    "undefined": UNDEFINED,
}
_ESCAPE: Final = re.compile(r"\\(u[0-9a-fA-F]{4}|.)", re.DOTALL)
_ESCAPED: Final = {
    "b": "\b",
    "f": "\f",
    "n": "\n",
    "r": "\r",
    "t": "\t",
    "/": "/",
    "\\": "\\",
    "'": "'",
    '"': '"',
}


def _syntax_error(token: str, start: int) -> QueryError:
    return QueryError(
        f"Syntax error, incorrect syntax near '{token}'.", start=start, end=start + len(token)
    )


def _text(token: Token) -> str:
    """The value of a string literal."""

    def unescape(match: re.Match[str]) -> str:
        escaped = match[1]
        if len(escaped) == 5:
            return chr(int(escaped[1:], 16))
        if escaped not in _ESCAPED:
            raise _syntax_error(token, token.start_pos or 0)
        return _ESCAPED[escaped]

    text = _ESCAPE.sub(unescape, token[1:-1])
    # Two escapes may be one character outside the basic plane; half of one is no text.
    try:
        return text.encode("utf-16", "surrogatepass").decode("utf-16")
    except UnicodeDecodeError:
        raise _syntax_error(token, token.start_pos or 0) from None


def _name(token: Token) -> str:
    if token.upper() in _RESERVED:
        raise _syntax_error(token, token.start_pos or 0)
    return str(token)


def _constant(token: Token) -> nodes.Constant:
    if token[:2] in ("0x", "0X"):
        return nodes.Constant(number(float(int(token, 16))))
    return nodes.Constant(number(int(token) if token.isdigit() else float(token)))


def _call(name: Token, arguments: tuple[nodes.Expression | None, ...]) -> nodes.Call:
    return nodes.Call(name.upper(), tuple(item for item in arguments if item is not None))


def _negated(negation: Token | None, expression: nodes.Expression) -> nodes.Expression:
    return expression if negation is None else nodes.Not(expression)


MOST_JOINS: Final = 10


class _Builder(Transformer[Token, Any]):
    """Called by the parser for every rule it completes; the tree of tokens is never built."""

    def start(self, children: list[Any]) -> nodes.Query:
        query: nodes.Query = children[0]
        return query

    def query(self, children: list[Any]) -> nodes.Query:
        distinct, top, selection, sources, where, group_by, order_by, offset_limit = children
        if sources is not None and len(sources) > MOST_JOINS + 1:
            raise QueryError(f"A query has at most {MOST_JOINS} JOINs.", code="SC2041")
        orders, ranked = order_by or ((), False)
        offset, limit = offset_limit or (None, None)
        return nodes.Query(
            selection=selection,
            distinct=distinct is not None,
            top=top,
            sources=sources or (),
            where=where,
            group_by=group_by or (),
            order_by=orders,
            ranked=ranked,
            offset=offset,
            limit=limit,
        )

    def top(self, children: list[Any]) -> nodes.Expression:
        count: nodes.Expression = children[0]
        return count

    where = top

    # SELECT

    def star(self, _: list[Any]) -> nodes.Star:
        return nodes.Star()

    def value(self, children: list[Any]) -> nodes.Value:
        return nodes.Value(children[0])

    def item(self, children: list[Any]) -> tuple[nodes.Expression, str | None]:
        expression, alias = children
        return expression, alias

    def items(self, children: list[Any]) -> nodes.Properties:
        names: list[tuple[str, nodes.Expression]] = []
        unnamed = 0
        for expression, alias in children:
            name = alias
            if name is None:
                match expression:
                    case nodes.Reference(reference):
                        name = reference
                    case nodes.Member(_, nodes.Constant(str() as key)):
                        name = key
                    case _:
                        unnamed += 1
                        name = f"${unnamed}"
            if any(name == taken for taken, _ in names):
                raise QueryError(
                    f"Object creation error, property name '{name}' specified more than once.",
                    code="SC2022",
                )
            names.append((name, expression))
        return nodes.Properties(tuple(names))

    # FROM

    def from_clause(self, children: list[Any]) -> tuple[nodes.Source, ...]:
        return tuple(children)

    def path(self, children: list[Any]) -> nodes.Path:
        return nodes.Path(children[0], tuple(children[1:]))

    def name_step(self, children: list[Any]) -> str:
        return str(children[0])

    def index_step(self, children: list[Token]) -> int:
        if not children[0].isdigit():
            raise _syntax_error(children[0], children[0].start_pos or 0)
        return int(children[0])

    def string_step(self, children: list[Token]) -> str:
        return _text(children[0])

    def plain_source(self, children: list[Any]) -> nodes.Source:
        collection = children[0]
        alias = children[1] if len(children) > 1 else None
        if alias is None and isinstance(collection, nodes.Path):
            # FROM c.items binds `items`.
            alias = next((step for step in reversed(collection.steps)), collection.name)
        if not isinstance(alias, str):
            alias = ""
        return nodes.Source(collection, alias, iterate=False)

    def iterated_source(self, children: list[Any]) -> nodes.Source:
        return nodes.Source(children[1], children[0], iterate=True)

    def computed_source(self, children: list[Any]) -> nodes.Source:
        """`name IN FUNCTION(…)`: the items of what the function returns."""
        alias, *call = children
        return nodes.Source(nodes.value_query(self.call(call)), alias, iterate=True)

    # The clauses after FROM and WHERE

    def group_by(self, children: list[Any]) -> tuple[nodes.Expression, ...]:
        return tuple(children)

    def order_by(self, children: list[Any]) -> tuple[tuple[nodes.Order, ...], bool]:
        return tuple(children), False

    def rank_by(self, children: list[Any]) -> tuple[tuple[nodes.Order, ...], bool]:
        return tuple(children), True

    def order_item(self, children: list[Any]) -> nodes.Order:
        expression, descending = children
        return nodes.Order(expression, bool(descending), direction_given=descending is not None)

    def asc(self, _: list[Any]) -> bool:
        return False

    def desc(self, _: list[Any]) -> bool:
        return True

    def offset_limit(self, children: list[Any]) -> tuple[nodes.Expression, nodes.Expression]:
        offset, limit = children
        return offset, limit

    # Expressions

    def conditional(self, children: list[Any]) -> nodes.Conditional:
        return nodes.Conditional(*children)

    def coalesce(self, children: list[Any]) -> nodes.Coalesce:
        return nodes.Coalesce(*children)

    def disjunction(self, children: list[Any]) -> nodes.Or:
        return nodes.Or(tuple(children))

    def conjunction(self, children: list[Any]) -> nodes.And:
        return nodes.And(tuple(children))

    def membership(self, children: list[Any]) -> nodes.Expression:
        needle, negation, *items = children
        return _negated(negation, nodes.In(needle, tuple(items)))

    def between(self, children: list[Any]) -> nodes.Expression:
        operand, negation, low, high = children
        return _negated(negation, nodes.Between(operand, low, high))

    def like(self, children: list[Any]) -> nodes.Expression:
        operand, negation, pattern, escape = children
        character = None if escape is None else _text(escape)
        if character is not None and len(character) != 1:
            raise _syntax_error(escape, escape.start_pos or 0)
        return _negated(negation, nodes.Like(operand, pattern, character))

    def binary(self, children: list[Any]) -> nodes.Binary:
        left, operator, right = children
        return nodes.Binary("!=" if operator == "<>" else str(operator), left, right)

    def multiply(self, children: list[Any]) -> nodes.Binary:
        return nodes.Binary("*", children[0], children[1])

    def unary(self, children: list[Any]) -> nodes.Expression:
        operator, operand = children
        if operator.type == "NOT":
            return nodes.Not(operand)
        if operator == "-" and isinstance(operand, nodes.Constant):
            value = operand.value
            if type(value) in (int, float):
                return nodes.Constant(-value)
        return nodes.Unary(str(operator), operand)

    def name(self, children: list[Token]) -> str:
        return _name(children[0])

    def reference(self, children: list[str]) -> nodes.Expression:
        name = children[0]
        if name.lower() in _LITERALS:
            return nodes.Constant(_LITERALS[name.lower()])
        return nodes.Reference(name)

    def param(self, children: list[Token]) -> nodes.Parameter:
        return nodes.Parameter(str(children[0]))

    def number(self, children: list[Token]) -> nodes.Constant:
        return _constant(children[0])

    def string(self, children: list[Token]) -> nodes.Constant:
        return nodes.Constant(_text(children[0]))

    def array(self, children: list[Any]) -> nodes.ArrayLiteral:
        return nodes.ArrayLiteral(tuple(item for item in children if item is not None))

    def property(self, children: list[Any]) -> tuple[str, nodes.Expression]:
        key, expression = children
        return (_text(key) if key.type == "STRING" else str(key)), expression

    def object(self, children: list[Any]) -> nodes.ObjectLiteral:
        return nodes.ObjectLiteral(tuple(item for item in children if item is not None))

    def member(self, children: list[Any]) -> nodes.Member:
        return nodes.Member(children[0], nodes.Constant(children[1]))

    def indexer(self, children: list[Any]) -> nodes.Member:
        return nodes.Member(children[0], children[1])

    def call(self, children: list[Any]) -> nodes.Call:
        return _call(children[0], tuple(children[1:]))

    def qualified_call(self, children: list[Any]) -> nodes.Call:
        owner, name, *_ = children
        if isinstance(owner, nodes.Reference) and owner.name == "udf":
            raise QueryError("User-defined functions are not supported.", code="SC2005")
        raise _syntax_error(name, name.start_pos or 0)

    def _subquery(
        self,
        kind: Literal["scalar", "exists", "array", "all", "first", "last"],
        children: list[Any],
    ) -> nodes.Subquery:
        return nodes.Subquery(kind, children[0])

    def scalar_subquery(self, children: list[Any]) -> nodes.Subquery:
        return self._subquery("scalar", children)

    def exists(self, children: list[Any]) -> nodes.Subquery:
        return self._subquery("exists", children)

    def array_subquery(self, children: list[Any]) -> nodes.Subquery:
        return self._subquery("array", children)

    def all_subquery(self, children: list[Any]) -> nodes.Subquery:
        return self._subquery("all", children)

    def first_subquery(self, children: list[Any]) -> nodes.Subquery:
        return self._subquery("first", children)

    def last_subquery(self, children: list[Any]) -> nodes.Subquery:
        return self._subquery("last", children)


_LARK: Final = Lark.open(
    "grammar.lark", rel_to=__file__, parser="lalr", transformer=_Builder(), cache=False
)


def build(text: str) -> nodes.Query:
    """The tree of a query; QueryError if the text is not one."""
    try:
        query: nodes.Query = _LARK.parse(text)  # type: ignore[assignment]
    except UnexpectedEOF as error:
        raise QueryError(
            "Syntax error, unexpected end-of-file.",
            code="SC1002",
            start=len(text),
            end=len(text),
        ) from error
    except UnexpectedToken as error:
        token = error.token
        if token.type == "$END":
            raise QueryError(
                "Syntax error, unexpected end-of-file.",
                code="SC1002",
                start=len(text),
                end=len(text),
            ) from error
        raise _syntax_error(token, token.start_pos or 0) from error
    except UnexpectedCharacters as error:
        start = error.pos_in_stream or 0
        raise QueryError(
            f"Syntax error, invalid token '{text[start : start + 1]}'.",
            code="SC1010",
            start=start,
            end=start + 1,
        ) from error
    except UnexpectedInput as error:
        raise QueryError("Syntax error.", start=error.pos_in_stream or 0) from error
    return query
