"""Computed properties: names of a container that stand for expressions over its documents."""

from typing import Any

from . import nodes
from .errors import QueryError
from .parser import parse

# Name and query, as the container defines them.
Computed = tuple[tuple[str, str], ...]


def with_computed(query: nodes.Query, computed: Computed) -> nodes.Query:
    """The query with the expressions of computed properties in place of their names."""
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
