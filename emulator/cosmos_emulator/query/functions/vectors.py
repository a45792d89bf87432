"""VectorDistance."""

import math
from collections.abc import Callable
from typing import Any, Final

from cosmos_emulator.query.functions.function import Function
from cosmos_emulator.query.values import UNDEFINED, is_number, number


def _cosine(a: list[float], b: list[float]) -> float:
    length = math.hypot(*a) * math.hypot(*b)
    return _dot_product(a, b) / length if length else math.nan


def _dot_product(a: list[float], b: list[float]) -> float:
    return math.fsum(x * y for x, y in zip(a, b, strict=True))


DISTANCES: Final[dict[str, Callable[[list[float], list[float]], float]]] = {
    "cosine": _cosine,
    "dotproduct": _dot_product,
    "euclidean": math.dist,
}


def distance_function(default: str, options: Any) -> str:
    """The name of the distance that VectorDistance is to use."""
    name = options.get("distanceFunction", default) if type(options) is dict else default
    return name.lower() if type(name) is str else ""


def _vector_distance(
    default: str, a: Any, b: Any, brute_force: Any = False, options: Any = None
) -> Any:
    compute = DISTANCES.get(distance_function(default, options))
    if compute is None or not _is_vector(a) or not _is_vector(b) or len(a) != len(b):
        return UNDEFINED
    try:
        return number(compute(a, b))
    except OverflowError:
        return UNDEFINED


def _is_vector(value: Any) -> bool:
    return type(value) is list and all(is_number(item) for item in value)


# Called with the name of the container's distance function before its own arguments.
VECTOR_DISTANCE: Final = Function(_vector_distance, 2, 4)
