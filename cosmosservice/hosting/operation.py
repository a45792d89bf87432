"""Operations of a service: their names, and how long they may take."""

from __future__ import annotations


class Operation(str):
    """The name of an operation, for telemetry and messages. It is `Bounded`, `Unbounded` or
    `Background`."""


class Bounded(Operation):
    """Ends within the timeout."""

    waited: float  # seconds of the timeout that have passed before it starts

    def __new__(cls, name: str, *, waited: float = 0.0) -> Bounded:
        operation = super().__new__(cls, name)
        operation.waited = waited
        return operation


class Unbounded(Operation):
    """Takes as long as there is work to do, and ends only if there is no answer for the timeout."""


class Background(Unbounded):
    """Nobody waits for it: its requests have a low priority, and are throttled first."""
