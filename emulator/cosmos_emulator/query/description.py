"""A description of a query, in the form of the service's query plan."""

from dataclasses import replace
from enum import Enum
from typing import Any

from cosmos_emulator.query import nodes
from cosmos_emulator.query.aggregates import (
    AGGREGATES,
    aggregates_of,
    check_aggregate,
    has_aggregate,
)
from cosmos_emulator.query.computed import Computed
from cosmos_emulator.query.errors import Unsupported
from cosmos_emulator.query.hybrid import hybrid_info, is_weighted
from cosmos_emulator.query.parser import parse
from cosmos_emulator.query.plan import Plan, plan
from cosmos_emulator.query.policies import NO_POLICIES, Policies
from cosmos_emulator.query.pushdown import NO_NAMES
from cosmos_emulator.query.ranking import is_distance, smallest_is_closest
from cosmos_emulator.query.rewriting import rewritten
from cosmos_emulator.query.rows import POLICIES, Row
from cosmos_emulator.query.text import expression_text, query_text
from cosmos_emulator.query.values import UNDEFINED, Undefined, from_client

_AGGREGATE_NAMES = {name: name.capitalize() for name in AGGREGATES} | {
    "AVG": "Average",
    "COUNTIF": "CountIf",
    "MAKELIST": "MakeList",
    "MAKESET": "MakeSet",
}
_EVERYWHERE = {"min": "", "max": "FF", "isMinInclusive": True, "isMaxInclusive": False}


class Split(Enum):
    """How the answers of several ranges are combined."""

    APPENDED = "one after the other"
    MERGED = "by the client, which must sort, cut or add them up"
    WHOLE = "not at all: the question is asked once, about all of them"


def split(text: str) -> Split:
    """Raises QueryError for aggregates that the service does not let an SDK compute."""
    compiled = plan(text)
    query = compiled.query
    if not query.sources:
        return Split.WHOLE
    if query.ranked:
        return Split.MERGED
    if compiled.inner is not None and _features(compiled.inner.query):
        return Split.MERGED if _counts_distinct(compiled) else Split.WHOLE
    if has_aggregate(query.selection):
        check_aggregate(query)
    return Split.MERGED if _features(query) else Split.APPENDED


def speaks_of(text: str, path: tuple[str, ...]) -> bool:
    """Whether a query may be about some values of a path only, or needs no documents at all."""
    query = plan(text).query
    if not query.sources:
        return True
    alias = query.sources[0].alias
    return any(
        isinstance(node, nodes.Member) and nodes.property_path(node) == (alias, path)
        for node in nodes.walk(query.where)
    )


def fixed_key(
    text: str, parameters: list[dict[str, Any]], paths: tuple[tuple[str, ...], ...]
) -> list[Any] | None:
    """The values to which WHERE fixes all of these paths: the query is about one partition."""
    query = plan(text).query
    if not query.sources or query.where is None:
        return None
    alias = query.sources[0].alias
    values = {each["name"]: each.get("value", UNDEFINED) for each in parameters}
    met = query.where.operands if isinstance(query.where, nodes.And) else (query.where,)
    found: dict[tuple[str, ...], Any] = {}
    for each in met:
        match each:
            case nodes.Binary("=", path, nodes.Constant(value)):
                pass
            case nodes.Binary("=", nodes.Constant(value), path):
                pass
            case nodes.Binary("=", path, nodes.Parameter(name)):
                value = values.get(name, UNDEFINED)
            case nodes.Binary("=", nodes.Parameter(name), path):
                value = values.get(name, UNDEFINED)
            case _:
                continue
        named = nodes.property_path(path)
        if named is not None and named[0] == alias:
            found[named[1]] = value
    key = [found.get(path, UNDEFINED) for path in paths]
    return None if any(isinstance(each, dict | list | Undefined) for each in key) else key


def describe(
    text: str,
    parameters: list[dict[str, Any]],
    *,
    features: frozenset[str] | None = None,
    policies: Policies = NO_POLICIES,
    computed_properties: Computed = (),
) -> dict[str, Any]:
    """The query plan. `features` are those that the client says it can merge; None: all."""
    compiled = plan(text, computed_properties)
    values = {
        str(parameter.get("name")): from_client(parameter.get("value", UNDEFINED))
        for parameter in parameters
    }
    compiled.window(values)
    # Not as compiled: computed properties are left to the range that is asked.
    query = _with_counts(parse(text), values)
    hybrid = hybrid_info(query, values) if query.ranked else None
    weighted = query.ranked and is_weighted(query)
    if hybrid:
        # Ranks, and the cut after them, have a part of the plan to themselves.
        query = replace(query, order_by=(), ranked=False, top=None, offset=None, limit=None)
    if has_aggregate(query.selection):
        # A single result needs no order.
        query = replace(query, order_by=())
    counted = compiled.inner if _counts_distinct(compiled) else None
    asked = counted.query if counted else query
    wanted = _features(asked) | ({"DCount"} if counted else set())
    wanted |= ({"HybridSearch"} if hybrid else set()) | (
        {"WeightedRankFusion"} if weighted else set()
    )
    if features is not None and not wanted <= features:
        raise _unsupported(sorted(wanted - features))
    sent = asked if counted else rewritten(query)
    return {
        "partitionedQueryExecutionInfoVersion": 2,
        "queryInfo": {
            **_merging(asked, {**values, POLICIES: policies}),
            "rewrittenQuery": "" if sent is None else query_text(sent),
            "hasSelectValue": isinstance(asked.selection, nodes.Value),
            "dCountInfo": {"dCountAlias": _alias(query.selection)} if counted else None,
            "hasNonStreamingOrderBy": any(is_distance(item.expression) for item in asked.order_by),
        },
        "queryRanges": [_EVERYWHERE],
        "hybridSearchQueryInfo": hybrid,
    }


def _merging(query: nodes.Query, values: Row) -> dict[str, Any]:
    kinds: dict[str, str | None] = {}
    aggregates: list[str] = []
    match query.selection:
        case nodes.Value(nodes.Call(name, _)) if name in AGGREGATES:
            aggregates = [_AGGREGATE_NAMES[name]]
        case nodes.Properties(items) if query.group_by or has_aggregate(items):
            kinds = {name: _aggregate_name(item) for name, item in items}
    if query.group_by:
        query = replace(query, order_by=())  # Groups are sorted by the range, if at all.
    return {
        "distinctType": _distinct_type(query),
        "top": _value(query.top),
        "offset": _value(query.offset),
        "limit": _value(query.limit),
        "orderBy": [
            "Descending" if _is_descending(item, values) else "Ascending" for item in query.order_by
        ],
        "orderByExpressions": [expression_text(item.expression) for item in query.order_by],
        "groupByExpressions": [expression_text(expression) for expression in query.group_by],
        "groupByAliases": list(kinds),
        "aggregates": aggregates,
        "groupByAliasToAggregateType": kinds,
    }


def _features(query: nodes.Query) -> set[str]:
    """What a client must be able to do to merge the answers of ranges."""
    aggregates = aggregates_of(query.selection)
    found = {
        "Distinct": query.distinct,
        "Top": query.top is not None,
        "OffsetAndLimit": query.offset is not None,
        "OrderBy": bool(query.order_by),
        "MultipleOrderBy": len(query.order_by) > 1,
        "NonStreamingOrderBy": any(is_distance(item.expression) for item in query.order_by),
        "GroupBy": bool(query.group_by),
        "Aggregate": bool(aggregates),
        "CountIf": "COUNTIF" in aggregates,
        "ListAndSetAggregate": not aggregates.isdisjoint({"MAKELIST", "MAKESET"}),
        "NonValueAggregate": bool(aggregates)
        and not query.group_by
        and not isinstance(query.selection, nodes.Value),
    }
    return {name for name, is_needed in found.items() if is_needed}


def _unsupported(features: list[str]) -> Unsupported:
    return Unsupported(
        "Query contains 1 or more unsupported features. Upgrade your SDK to a version that does "
        "support the requested features:\r\n"
        + "\r\n".join(
            f"Query contained {name}, which the calling client does not support."
            for name in features
        )
    )


def _counts_distinct(compiled: Plan) -> bool:
    """`SELECT COUNT(1) FROM (SELECT DISTINCT …)`, which has its own field in the plan."""
    inner = compiled.inner
    if inner is None or not inner.query.distinct:
        return False
    match compiled.query.selection:
        case nodes.Value(nodes.Call("COUNT", _)):
            return True
        case nodes.Properties(((_, nodes.Call("COUNT", _)),)):
            return True
    return False


def _alias(selection: nodes.Star | nodes.Value | nodes.Properties) -> str:
    match selection:
        case nodes.Properties(((name, _),)):
            return name
    return ""


def _aggregate_name(expression: nodes.Expression) -> str | None:
    match expression:
        case nodes.Call(name, _):
            return _AGGREGATE_NAMES.get(name)
    return None


def _is_descending(item: nodes.Order, values: Row) -> bool:
    match item.expression:
        case nodes.Call("VECTORDISTANCE", arguments):
            return not smallest_is_closest(arguments, NO_NAMES)(values)
    return item.descending


def _distinct_type(query: nodes.Query) -> str:
    if not query.distinct:
        return "None"
    match query.selection, query.order_by:
        case nodes.Value(expression), (nodes.Order(key, _, _), *_) if key == expression:
            return "Ordered"
    return "Unordered"


def _with_counts(query: nodes.Query, values: Row) -> nodes.Query:
    """The query with the values of parameters in TOP, OFFSET and LIMIT."""

    def bound(node: nodes.Expression | None) -> nodes.Expression | None:
        return nodes.Constant(values[node.name]) if isinstance(node, nodes.Parameter) else node

    return replace(
        query, top=bound(query.top), offset=bound(query.offset), limit=bound(query.limit)
    )


def _value(node: nodes.Expression | None) -> Any:
    return node.value if isinstance(node, nodes.Constant) else None
