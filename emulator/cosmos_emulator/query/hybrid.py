"""The plan of ORDER BY RANK over several ranges, in the form of the service.

The client asks every range for statistics of the texts, writes their sums into a query for each
score, asks every range for the best of each, and fuses the ranks.
"""

from dataclasses import replace
from typing import Any, Final

from cosmos_emulator.query import nodes
from cosmos_emulator.query.errors import QueryError
from cosmos_emulator.query.rewriting import FILTER, conjunction, payload_of
from cosmos_emulator.query.text import expression_text, query_text

_STATISTICS: Final = "documentdb-formattablehybridsearchquery"
_DOCUMENTS: Final = nodes.Reference(f"{{{_STATISTICS}-totaldocumentcount}}")
_LEAST: Final = nodes.Constant(-1.79769e308)
_MOST: Final = nodes.Constant(1.79769e308)
_FEWEST_CANDIDATES: Final = 120


class Component:
    """One score: the expression that a range computes, and what stands for it where it is
    undefined. A negative weight ranks the smallest first."""

    def __init__(
        self, call: nodes.Expression, texts: list[tuple[Any, ...]], weight: float, values: Any
    ) -> None:
        self.ascending = weight < 0
        self.weight = abs(weight)
        match call:
            case nodes.Call("FULLTEXTSCORE", (text, *terms)) if terms:
                searched = _expanded(terms, values)
                number = len(texts)
                texts.append((text, searched))
                self.score = nodes.Call(
                    "_FullTextScore",
                    (
                        text,
                        nodes.ArrayLiteral(searched),
                        _DOCUMENTS,
                        nodes.Reference(f"{{{_STATISTICS}-totalwordcount-{number}}}"),
                        nodes.Reference(f"{{{_STATISTICS}-hitcountsarray-{number}}}"),
                    ),
                )
                missing: nodes.Expression = nodes.Constant(-1)
            case nodes.Call("VECTORDISTANCE", arguments):
                self.score = nodes.Call("_VectorScore", arguments)
                missing = _MOST if self.ascending else _LEAST
            case _:
                raise QueryError(
                    "ORDER BY RANK takes FullTextScore, VectorDistance or RRF.", code="SC2242"
                )
        self.total = nodes.Coalesce(self.score, missing)


def hybrid_info(query: nodes.Query, values: dict[str, Any]) -> dict[str, Any]:
    """`query` has constants for its counts; `values` are the parameters."""
    calls, weights = _calls(query.order_by[0].expression, values)
    texts: list[tuple[Any, ...]] = []
    components = [
        Component(call, texts, weight, values)
        for call, weight in zip(calls, weights or [1.0] * len(calls), strict=True)
    ]
    skip, take = _value(query.offset), _value(query.top if query.limit is None else query.limit)
    candidates = None if take is None else max(_FEWEST_CANDIDATES, 2 * ((skip or 0) + take))
    return {
        "globalStatisticsQuery": _statistics(query, texts),
        "componentQueryInfos": [
            _component_info(query, component, components, candidates) for component in components
        ],
        "componentWithoutPayloadQueryInfos": [],
        "projectionQueryInfo": None,
        "componentWeights": [component.weight for component in components] if weights else [],
        "skip": skip,
        "take": take,
        "requiresGlobalStatistics": bool(texts),
    }


def is_weighted(query: nodes.Query) -> bool:
    match query.order_by[0].expression:
        case nodes.Call("RRF", (*_, last)):
            return not isinstance(last, nodes.Call)
    return False


def _calls(
    expression: nodes.Expression, values: dict[str, Any]
) -> tuple[list[nodes.Expression], list[float]]:
    match expression:
        case nodes.Call("RRF", (*parts, last)):
            if isinstance(last, nodes.Call):
                return [*parts, last], []
            return list(parts), _weights(last, values, len(parts))
    return [expression], []


def _weights(node: nodes.Expression, values: dict[str, Any], count: int) -> list[float]:
    match node:
        case nodes.Parameter(name):
            found = values.get(name)
        case nodes.ArrayLiteral(items):
            found = [item.value if isinstance(item, nodes.Constant) else None for item in items]
        case _:
            found = None
    if type(found) is list and len(found) == count and all(type(w) in (int, float) for w in found):
        return [float(weight) for weight in found]
    raise QueryError("RRF takes as many weights as scores.", code="SC2243")


def _expanded(
    terms: list[nodes.Expression], values: dict[str, Any]
) -> tuple[nodes.Expression, ...]:
    """The terms one by one, those in arrays too."""
    found: list[nodes.Expression] = []
    for term in terms:
        match term:
            case nodes.ArrayLiteral(items):
                found += items
            case nodes.Parameter(name) if type(values.get(name)) is list:
                found += [nodes.Member(term, nodes.Constant(at)) for at in range(len(values[name]))]
            case _:
                found.append(term)
    return tuple(found)


def _statistics(query: nodes.Query, texts: list[tuple[Any, ...]]) -> str:
    counted = nodes.ArrayLiteral(
        tuple(
            nodes.ObjectLiteral(
                (
                    (
                        "totalWordCount",
                        nodes.Call("SUM", (nodes.Call("_FullTextWordCount", (text,)),)),
                    ),
                    (
                        "hitCounts",
                        nodes.ArrayLiteral(
                            tuple(
                                nodes.Call(
                                    "COUNTIF", (nodes.Call("FullTextContains", (text, term)),)
                                )
                                for term in terms
                            )
                        ),
                    ),
                )
            )
            for text, terms in texts
        )
    )
    count = nodes.Call("COUNT", (nodes.Constant(1),))
    selection = nodes.Properties((("documentCount", count), ("fullTextStatistics", counted)))
    asked = replace(
        query,
        selection=selection,
        distinct=False,
        top=None,
        where=None,
        order_by=(),
        ranked=False,
        offset=None,
        limit=None,
    )
    return query_text(asked)


def _component_info(
    query: nodes.Query, component: Component, components: list[Component], top: int | None
) -> dict[str, Any]:
    root = nodes.Reference(query.sources[0].alias)
    scores = nodes.ArrayLiteral(tuple(each.total for each in components))
    sort_key = nodes.ObjectLiteral((("item", component.score),))
    payload = nodes.ObjectLiteral((("payload", payload_of(query)), ("componentScores", scores)))
    is_text = isinstance(component.score, nodes.Call) and component.score.name == "_FullTextScore"
    asked = replace(
        query,
        selection=nodes.Properties(
            (
                ("_rid", nodes.Member(root, nodes.Constant("_rid"))),
                ("orderByItems", nodes.ArrayLiteral((sort_key,))),
                ("payload", payload),
            )
        ),
        distinct=False,
        top=None if top is None else nodes.Constant(top),
        where=conjunction(query.where, FILTER),
        # The service sorts vectors by similarity on its own, unless it is told otherwise.
        order_by=(
            nodes.Order(
                component.score,
                descending=not component.ascending,
                direction_given=is_text or component.ascending,
            ),
        ),
        ranked=False,
        offset=None,
        limit=None,
    )
    return {
        "distinctType": "None",
        "top": top,
        "offset": None,
        "limit": None,
        "orderBy": ["Ascending" if component.ascending else "Descending"],
        "orderByExpressions": [expression_text(component.score)],
        "groupByExpressions": [],
        "groupByAliases": [],
        "aggregates": [],
        "groupByAliasToAggregateType": {},
        "rewrittenQuery": query_text(asked),
        "hasSelectValue": False,
        "dCountInfo": None,
        "hasNonStreamingOrderBy": True,
    }


def _value(node: nodes.Expression | None) -> Any:
    return node.value if isinstance(node, nodes.Constant) else None
