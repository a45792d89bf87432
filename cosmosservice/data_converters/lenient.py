"""Reads what another version of ADK wrote, without what this version does not know."""

import itertools
import logging
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

logger = logging.getLogger(__name__)

_M = TypeVar("_M", bound=BaseModel)
_ROUNDS = 50


def validated(cls: type[_M], data: dict[str, Any]) -> _M:
    """The model for `data`, without what the class refuses."""
    left_out = 0
    data = _copied(data)
    for rounds in itertools.count():
        try:
            model = cls.model_validate(data)
        except ValidationError as error:
            dropped = _drop_refused(data, error)
            if not dropped or rounds == _ROUNDS:
                raise
            left_out += dropped
        else:
            if left_out:
                logger.debug("%s: %d field(s) left out", cls.__name__, left_out)
            return model
    raise AssertionError


def _copied(data: Any) -> Any:
    if type(data) is dict:
        return {key: _copied(inner) for key, inner in data.items()}
    return [_copied(inner) for inner in data] if type(data) is list else data


def _drop_refused(data: Any, error: ValidationError) -> int:
    """Removes from `data` what caused the error. Returns the number of removals."""
    refused: set[tuple[Any, ...]] = set()
    for item in error.errors(include_url=False, include_context=False, include_input=False):
        path = _reachable(data, item["loc"])
        if path:
            refused.add(path)
    # From the end, so that indexes of lists stay valid.
    for path in sorted(refused, key=lambda path: [(str(type(p)), p) for p in path], reverse=True):
        outer = data
        for step in path[:-1]:
            outer = outer[step]
        del outer[path[-1]]
    return len(refused)


def _reachable(data: Any, location: tuple[Any, ...]) -> tuple[Any, ...]:
    """The longest part of an error's location that exists in the data.

    A location may end at a missing field, or at the name of a member of a union.
    """
    path: list[Any] = []
    for step in location:
        if not isinstance(data, (dict, list)):
            break
        try:
            data = data[step]
        except (KeyError, IndexError, TypeError):
            break
        path.append(step)
    return tuple(path)
