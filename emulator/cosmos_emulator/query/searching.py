"""VectorDistance and full-text search: functions that follow the container's policies."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from cosmos_emulator.query import nodes
from cosmos_emulator.query.functions.full_text import FULL_TEXT_FUNCTIONS
from cosmos_emulator.query.functions.vectors import VECTOR_DISTANCE, distance_function
from cosmos_emulator.query.policies import NO_POLICIES, Path
from cosmos_emulator.query.rows import POLICIES, Evaluate, Row
from cosmos_emulator.query.values import UNDEFINED


def vector_distance(
    name: str, arguments: tuple[nodes.Expression, ...], compiled: list[Evaluate]
) -> Evaluate:
    """The distance function is an option of the call, or that of the container's policy. A score is
    the larger, the closer the vectors are."""
    VECTOR_DISTANCE.check_arity(name, len(arguments))
    default = policy_distance(arguments)
    is_score = name == "_VECTORSCORE"

    def evaluate(row: Row) -> Any:
        values = [argument(row) for argument in compiled]
        if UNDEFINED in values:
            return UNDEFINED
        found = VECTOR_DISTANCE.call(default(row), *values)
        if is_score and found is not UNDEFINED:
            options = values[3] if len(values) > 3 else None
            return -found if distance_function(default(row), options) == "euclidean" else found
        return found

    return evaluate


def policy_distance(arguments: tuple[nodes.Expression, ...]) -> Callable[[Row], str]:
    """The distance function that the container's policy names for one of the vectors."""
    paths = _paths(arguments[:2])

    def default(row: Row) -> str:
        distances = row.get(POLICIES, NO_POLICIES).distances
        return next((distances[path] for path in paths(row) if path in distances), "cosine")

    return default


def searches_text(name: str) -> bool:
    return name in FULL_TEXT_FUNCTIONS


def full_text(
    name: str, arguments: tuple[nodes.Expression, ...], compiled: list[Evaluate]
) -> Evaluate:
    function = FULL_TEXT_FUNCTIONS[name]
    function.check_arity(name, len(arguments))
    language = policy_language(arguments[0])

    def evaluate(row: Row) -> Any:
        values = [argument(row) for argument in compiled]
        if UNDEFINED in values:
            return UNDEFINED
        return function.call(language(row), *values)

    return evaluate


def policy_language(text: nodes.Expression) -> Callable[[Row], str]:
    """The language that the container's policy names for a text."""
    paths = _paths((text,))

    def default(row: Row) -> str:
        policies = row.get(POLICIES, NO_POLICIES)
        languages = policies.languages
        known = (languages[path] for path in paths(row) if path in languages)
        return str(next(known, policies.default_language))

    return default


def _paths(arguments: tuple[nodes.Expression, ...]) -> Callable[[Row], list[Path]]:
    """The paths of those arguments that are properties."""
    properties = [steps for argument in arguments if (steps := _steps(argument)) is not None]

    def paths(row: Row) -> list[Path]:
        return [
            tuple(row.get(step.name, "") if step.is_parameter else step.name for step in steps)
            for steps in properties
        ]

    return paths


@dataclass(frozen=True, slots=True)
class _Step:
    name: str
    is_parameter: bool


def _steps(node: nodes.Expression) -> list[_Step] | None:
    """The names of `alias.a[@b]`; None if the expression is anything else."""
    found: list[_Step] = []
    while isinstance(node, nodes.Member):
        match node.key:
            case nodes.Constant(str() as name):
                found.append(_Step(name, is_parameter=False))
            case nodes.Parameter(name):
                found.append(_Step(name, is_parameter=True))
            case _:
                return None
        node = node.target
    return found[::-1] if isinstance(node, nodes.Reference) else None
