"""ORDER BY VectorDistance, and ORDER BY RANK: FullTextScore (BM25), VectorDistance, RRF."""

import math
from collections.abc import Callable
from typing import Any, Final

from cosmos_emulator.query import nodes
from cosmos_emulator.query.compiler import Scope, compile_expression
from cosmos_emulator.query.errors import QueryError
from cosmos_emulator.query.functions.full_text import bm25, occurrences
from cosmos_emulator.query.functions.vectors import distance_function
from cosmos_emulator.query.rows import Evaluate, Row
from cosmos_emulator.query.searching import policy_distance, policy_language
from cosmos_emulator.query.values import UNDEFINED, is_number
from cosmos_emulator.query.words import words

# The scores of rows, the best the largest. Statistics are those of a population: all documents that
# were asked, also those that WHERE leaves out.
Score = Callable[[list[Row], list[Row]], list[float]]

_RRF_CONSTANT: Final = 60


def is_distance(node: nodes.Expression) -> bool:
    return isinstance(node, nodes.Call) and node.name == "VECTORDISTANCE"


def is_score(node: nodes.Expression) -> bool:
    """What ranges compute for clients that fuse ranks."""
    return isinstance(node, nodes.Call) and node.name in ("_FULLTEXTSCORE", "_VECTORSCORE")


def needs_population(query: nodes.Query) -> bool:
    """Whether the order depends on documents that WHERE leaves out."""
    return query.ranked and any(
        isinstance(node, nodes.Call) and node.name == "FULLTEXTSCORE"
        for node in nodes.walk(query.order_by)
    )


def ranked(rows: list[Row], population: list[Row], score: Score) -> list[Row]:
    scores = score(rows, population)
    return [rows[at] for at in sorted(range(len(rows)), key=lambda at: -scores[at])]


def compile_score(query: nodes.Query, scope: Scope) -> Score:
    """The score by which the query sorts."""
    order = query.order_by
    if len(order) != 1:
        raise QueryError("A score cannot be sorted by together with another item.", code="SC2240")
    if order[0].direction_given:
        raise QueryError(
            "Specifying a sort order (ASC or DESC) in the ORDER BY RANK clause is not allowed."
            if query.ranked
            else "Specifying a sorting order (ASC or DESC) with VectorDistance function is not "
            "supported.",
            code="SC2241",
        )
    return _score(order[0].expression, scope)


def _score(node: nodes.Expression, scope: Scope) -> Score:
    match node:
        case nodes.Call("FULLTEXTSCORE", (text, *terms)) if terms:
            return _full_text(
                compile_expression(text, scope),
                [compile_expression(term, scope) for term in terms],
                policy_language(text),
            )
        case nodes.Call("VECTORDISTANCE", arguments):
            return _similarity(node, arguments, scope)
        case nodes.Call("RRF", arguments) if arguments:
            *parts, last = arguments
            weighted = not isinstance(last, nodes.Call)
            scores = [_score(part, scope) for part in (parts if weighted else arguments)]
            return _fused(scores, compile_expression(last, scope) if weighted else None)
    raise QueryError("ORDER BY RANK takes FullTextScore, VectorDistance or RRF.", code="SC2242")


def _full_text(text: Evaluate, terms: list[Evaluate], language_of: Callable[[Row], str]) -> Score:
    def score(rows: list[Row], population: list[Row]) -> list[float]:
        if not population:
            return [0.0] * len(rows)
        language = language_of(population[0])
        searched = [words(term, language) for term in _terms(terms, population[0])]
        known = [words(value, language) for row in population if type(value := text(row)) is str]
        total = sum(map(len, known))
        hits = [sum(occurrences(found, term) > 0 for found in known) for term in searched]
        return [
            bm25(words(value, language), searched, len(population), total, hits)
            if type(value := text(row)) is str
            else 0.0
            for row in rows
        ]

    return score


def _terms(terms: list[Evaluate], row: Row) -> list[str]:
    """The phrases to look for: strings, or arrays of strings."""
    values: list[Any] = []
    for term in terms:
        value = term(row)
        values += value if type(value) is list else [value]
    return [value for value in values if type(value) is str]


def _similarity(
    call: nodes.Expression, arguments: tuple[nodes.Expression, ...], scope: Scope
) -> Score:
    distance = compile_expression(call, scope)
    is_smallest_best = smallest_is_closest(arguments, scope)

    def score(rows: list[Row], _: list[Row]) -> list[float]:
        scores = []
        for row in rows:
            value = distance(row)
            closer = -1 if is_smallest_best(row) else 1
            scores.append(-math.inf if value is UNDEFINED else closer * value)
        return scores

    return score


def smallest_is_closest(arguments: tuple[nodes.Expression, ...], scope: Scope) -> Evaluate:
    """Whether VectorDistance with these arguments is a distance, not a similarity."""
    options = compile_expression(arguments[3], scope) if len(arguments) > 3 else None
    default = policy_distance(arguments)

    def evaluate(row: Row) -> bool:
        return distance_function(default(row), options(row) if options else None) == "euclidean"

    return evaluate


def _fused(scores: list[Score], weights: Evaluate | None) -> Score:
    """Reciprocal rank fusion: equal scores share a rank."""

    def fused(rows: list[Row], population: list[Row]) -> list[float]:
        factors = weights(rows[0]) if weights and rows else [1] * len(scores)
        valid = type(factors) is list and len(factors) == len(scores)
        if not valid or not all(is_number(factor) for factor in factors):
            raise QueryError("RRF takes as many weights as scores.", code="SC2243")
        totals = [0.0] * len(rows)
        for score, factor in zip(scores, factors, strict=True):
            values = score(rows, population)
            # A negative weight reverses the ranking.
            best_first = sorted(set(values), reverse=factor >= 0)
            numbers = {value: number for number, value in enumerate(best_first, start=1)}
            for at, value in enumerate(values):
                totals[at] += abs(factor) / (_RRF_CONSTANT + numbers[value])
        return totals

    return fused
