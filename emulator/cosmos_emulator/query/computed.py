"""Computed properties: names of a container that stand for expressions over its documents."""

from typing import Any

from cosmos_emulator.query import nodes
from cosmos_emulator.query.aggregates import has_aggregate
from cosmos_emulator.query.errors import QueryError
from cosmos_emulator.query.parser import parse

# Name and query, as the container defines them.
Computed = tuple[tuple[str, str], ...]


def with_computed(query: nodes.Query, computed: Computed) -> nodes.Query:
    """The query with the expressions of computed properties instead of their names."""
    if not computed or not query.sources:
        return query
    alias = query.sources[0].alias
    expressions = {name: _expression(text, alias) for name, text in computed}

    def change(node: Any) -> Any:
        match node:
            case nodes.Member(nodes.Reference(name), nodes.Constant(str() as key)):
                return expressions.get(key, node) if name == alias else node
        return node

    rewritten: nodes.Query = nodes.rewrite(query, change)
    return rewritten


def check_computed(text: str) -> None:
    """QueryError for a definition that the service refuses."""
    query = parse(text)
    plain = isinstance(query.selection, nodes.Value) and len(query.sources) == 1
    clauses = (query.top, query.where, query.offset, query.limit)
    lists = (query.group_by, query.order_by)
    if not plain or query.distinct or any(lists) or any(each is not None for each in clauses):
        raise QueryError(
            "a computed property is SELECT VALUE over one source, without JOIN, WHERE, GROUP BY, "
            "ORDER BY, TOP, DISTINCT, OFFSET and LIMIT.",
            code="SC2301",
        )
    if has_aggregate(query.selection) or any(
        isinstance(node, nodes.Subquery) for node in nodes.walk(query.selection)
    ):
        raise QueryError("a computed property has no aggregates and no subqueries.", code="SC2301")


def _expression(text: str, alias: str) -> nodes.Expression:
    """The expression of `SELECT VALUE expression FROM c`, in terms of another alias."""
    query = parse(text)
    if not isinstance(query.selection, nodes.Value) or len(query.sources) != 1:
        raise QueryError("A computed property is one SELECT VALUE over one source.", code="SC2301")
    own = query.sources[0].alias

    def change(node: Any) -> Any:
        return nodes.Reference(alias) if node == nodes.Reference(own) else node

    expression: nodes.Expression = nodes.rewrite(query.selection.expression, change)
    return expression
