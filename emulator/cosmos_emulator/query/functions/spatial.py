"""ST_DISTANCE, ST_WITHIN and ST_ISVALID: points and polygons of GeoJSON on a sphere."""

import math
from itertools import pairwise
from typing import Any, Final

from cosmos_emulator.query.functions.function import Function, fixed
from cosmos_emulator.query.values import UNDEFINED, is_number

_RADIUS: Final = 6_371_008.8  # metres, the mean of the Earth

Point = tuple[float, float]


def _distance(a: Any, b: Any) -> Any:
    """Metres between two points; other shapes have no distance here."""
    first, second = _point(a), _point(b)
    if first is None or second is None:
        return UNDEFINED
    (x, y), (u, v) = (tuple(map(math.radians, point)) for point in (first, second))
    half = math.sin((v - y) / 2) ** 2 + math.cos(y) * math.cos(v) * math.sin((u - x) / 2) ** 2
    return 2 * _RADIUS * math.asin(math.sqrt(min(1.0, half)))


def _within(a: Any, b: Any) -> Any:
    """Whether a point lies in a polygon, and not in one of its holes."""
    point, rings = _point(a), _rings(b)
    if point is None or rings is None:
        return UNDEFINED
    outer, *holes = rings
    return _encloses(outer, point) and not any(_encloses(hole, point) for hole in holes)


def _is_valid(shape: Any) -> Any:
    if type(shape) is not dict:
        return False
    return _point(shape) is not None or _rings(shape) is not None


def _point(shape: Any) -> Point | None:
    if type(shape) is not dict or shape.get("type") != "Point":
        return None
    return _position(shape.get("coordinates"))


def _position(value: Any) -> Point | None:
    if type(value) is not list or len(value) < 2 or not all(is_number(each) for each in value):
        return None
    longitude, latitude = float(value[0]), float(value[1])
    return (longitude, latitude) if abs(longitude) <= 180 and abs(latitude) <= 90 else None


def _rings(shape: Any) -> list[list[Point]] | None:
    """The rings of a polygon: each closed, of at least four positions."""
    if type(shape) is not dict or shape.get("type") != "Polygon":
        return None
    found = shape.get("coordinates")
    if type(found) is not list or not found:
        return None
    rings = []
    for ring in found:
        positions = [_position(each) for each in ring] if type(ring) is list else []
        points = [each for each in positions if each is not None]
        if len(points) != len(positions) or len(points) < 4 or points[0] != points[-1]:
            return None
        rings.append(points)
    return rings


def _encloses(ring: list[Point], point: Point) -> bool:
    """By how often a line from the point to the east crosses the ring."""
    x, y = point
    crossings = 0
    for (ax, ay), (bx, by) in pairwise(ring):
        if (ay > y) != (by > y) and x < ax + (y - ay) / (by - ay) * (bx - ax):
            crossings += 1
    return crossings % 2 == 1


FUNCTIONS: Final[dict[str, Function]] = {
    "ST_DISTANCE": fixed(_distance, 2),
    "ST_WITHIN": fixed(_within, 2),
    "ST_ISVALID": fixed(_is_valid, 1),
}
