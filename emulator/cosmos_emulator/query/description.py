"""What a query asks for, in the words of the service's query plan."""

from typing import Any

from . import nodes
from .aggregates import AGGREGATES
from .plan import plan


def describe(text: str, parameters: list[dict[str, Any]]) -> dict[str, Any]:
    """The query plan of a container with one range. The query is left as it is."""
    query = plan(text).query
    values = {parameter.get("name"): parameter.get("value") for parameter in parameters}
    return {
        "partitionedQueryExecutionInfoVersion": 2,
        "queryInfo": {
            "distinctType": _distinct_type(query),
            "top": _count(query.top, values),
            "offset": _count(query.offset, values),
            "limit": _count(query.limit, values),
            "orderBy": [
                "Descending" if item.descending else "Ascending" for item in query.order_by
            ],
            "orderByExpressions": [_text(item.expression) for item in query.order_by],
            "groupByExpressions": [_text(expression) for expression in query.group_by],
            "groupByAliases": [],
            "aggregates": [
                node.name.capitalize() if node.name != "AVG" else "Average"
                for node in nodes.walk(query.selection)
                if isinstance(node, nodes.Call) and node.name in AGGREGATES
            ],
            "groupByAliasToAggregateType": {},
            "rewrittenQuery": "",
            "hasSelectValue": isinstance(query.selection, nodes.Value),
            "dCountInfo": None,
            "hasNonStreamingOrderBy": False,
        },
        "queryRanges": [{"min": "", "max": "FF", "isMinInclusive": True, "isMaxInclusive": False}],
    }


def _distinct_type(query: nodes.Query) -> str:
    if not query.distinct:
        return "None"
    match query.selection, query.order_by:
        case nodes.Value(expression), (nodes.Order(key, _, _), *_) if key == expression:
            return "Ordered"
    return "Unordered"


def _count(node: nodes.Expression | None, values: dict[Any, Any]) -> Any:
    match node:
        case nodes.Constant(value):
            return value
        case nodes.Parameter(name):
            return values.get(name)
    return None


def _text(node: nodes.Expression) -> str:
    path = nodes.property_path(node)
    return "" if path is None else ".".join((path[0], *path[1]))
