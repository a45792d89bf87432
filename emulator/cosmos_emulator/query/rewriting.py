"""The query that an SDK sends to each range of a container, so that it can merge the answers.

The forms are the service's: sort keys and group keys stand beside the result, aggregates are
wrapped and come with what it takes to add them up.
"""

from dataclasses import replace
from typing import Final

from cosmos_emulator.query import nodes
from cosmos_emulator.query.aggregates import AGGREGATES, has_aggregate

# Where an SDK that continues after a sort key puts its condition.
FILTER: Final = nodes.Reference("({documentdb-formattableorderbyquery-filter})")


def rewritten(query: nodes.Query) -> nodes.Query | None:
    """None if every range gets the client's own query; counts must be constants."""
    if query.group_by:
        return _grouped(query)
    if has_aggregate(query.selection):
        return _aggregated(query)
    if query.order_by:
        return _ordered(query)
    if query.offset is not None:
        return _unwindowed(query) if query.distinct else _widened(query)
    if query.distinct and query.top is not None:
        return _unwindowed(query)
    return None


def payload_of(query: nodes.Query) -> nodes.Expression:
    """What the client selects, as one value."""
    match query.selection:
        case nodes.Star():
            return nodes.Reference(query.sources[0].alias)
        case nodes.Properties(items):
            return nodes.ObjectLiteral(items)
        case nodes.Value(expression):
            return expression


def conjunction(where: nodes.Expression | None, other: nodes.Expression) -> nodes.Expression:
    return other if where is None else nodes.And((where, other))


def _ordered(query: nodes.Query) -> nodes.Query:
    payload = payload_of(query)
    where = conjunction(query.where, FILTER)
    if isinstance(query.selection, nodes.Value):
        where = nodes.And((where, nodes.Call("IS_DEFINED", (payload,))))
    root = nodes.Reference(query.sources[0].alias)
    keys = tuple(_item(item.expression) for item in query.order_by)
    # Equal results of two ranges count once: no range knows how many of its own will be needed.
    narrowed = _unwindowed(query) if query.distinct else _widened(query)
    return replace(
        narrowed,
        distinct=False,
        selection=nodes.Properties(
            (
                ("_rid", nodes.Member(root, nodes.Constant("_rid"))),
                ("orderByItems", nodes.ArrayLiteral(keys)),
                ("payload", payload),
            )
        ),
        where=where,
    )


def _aggregated(query: nodes.Query) -> nodes.Query:
    payload = _payload(query.selection)
    selection: nodes.Value | nodes.Properties
    if isinstance(query.selection, nodes.Value):
        selection = nodes.Value(payload)
    else:
        selection = nodes.Properties((("payload", payload),))
    return replace(_unwindowed(query), selection=selection)


def _grouped(query: nodes.Query) -> nodes.Query:
    keys = nodes.ArrayLiteral(tuple(_item(key) for key in query.group_by))
    items = (("groupByItems", keys), ("payload", _payload(query.selection)))
    return replace(_unwindowed(query), selection=nodes.Properties(items))


def _payload(selection: nodes.Star | nodes.Value | nodes.Properties) -> nodes.Expression:
    match selection:
        case nodes.Properties(items):
            return nodes.ObjectLiteral(tuple((name, _partial(item)) for name, item in items))
        case nodes.Value(nodes.Call(name, _) as aggregate) if name in AGGREGATES:
            return nodes.ArrayLiteral((_partial(aggregate),))
        case nodes.Value(expression):
            return expression
        case nodes.Star():
            return nodes.Constant(None)


def _partial(expression: nodes.Expression) -> nodes.Expression:
    """What one range knows of an aggregate; anything else as it is."""
    match expression:
        case nodes.Call("AVG", arguments):
            parts = (("sum", nodes.Call("SUM", arguments)), ("count", _count(arguments)))
            return _item(nodes.ObjectLiteral(parts))
        case nodes.Call("MIN" | "MAX" as name, arguments):
            counted = ((name.lower(), expression), ("count", _count(arguments)))
            return nodes.ObjectLiteral(
                (("item", expression), ("item2", nodes.ObjectLiteral(counted)))
            )
        case nodes.Call(name, _) if name in AGGREGATES:
            return _item(expression)
    return expression


def _count(arguments: tuple[nodes.Expression, ...]) -> nodes.Expression:
    return nodes.Call("COUNT", arguments)


def _item(expression: nodes.Expression) -> nodes.Expression:
    return nodes.ObjectLiteral((("item", expression),))


def _unwindowed(query: nodes.Query) -> nodes.Query:
    return replace(query, top=None, offset=None, limit=None)


def _widened(query: nodes.Query) -> nodes.Query:
    """Includes everything that the first results may need from one range, even those to skip."""
    match query.offset, query.limit:
        case nodes.Constant(offset), nodes.Constant(limit):
            most = nodes.Constant(offset + limit)
            return replace(query, offset=nodes.Constant(0), limit=most)
    return query
