"""The scopes of state that sessions share: the user's and the app's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, NamedTuple, TypeVar

T = TypeVar("T")


class Pair(NamedTuple, Generic[T]):
    """A pair of values: one for the user, one for the app."""

    user: T
    app: T

    def map(self, function: Callable[..., Any], *others: Pair[Any]) -> Pair[Any]:
        """The function's results for the user and for the app."""
        return Pair(*(function(*both) for both in zip(self, *others, strict=True)))


SCOPES: Pair[str] = Pair("user", "app")
