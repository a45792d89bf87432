"""What a built-in function is."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from cosmos_emulator.query.errors import QueryError


@dataclass(frozen=True, slots=True)
class Function:
    """A function of JSON values, and how many arguments it takes."""

    call: Callable[..., Any]
    least: int
    most: int | None

    def check_arity(self, name: str, count: int) -> None:
        if count < self.least or (self.most is not None and count > self.most):
            wanted = (
                f"{self.least}"
                if self.most == self.least
                else f"at least {self.least}"
                if self.most is None
                else f"{self.least} to {self.most}"
            )
            raise QueryError(f"The {name} function requires {wanted} argument(s).", code="SC2004")


def fixed(call: Callable[..., Any], count: int) -> Function:
    return Function(call, count, count)
