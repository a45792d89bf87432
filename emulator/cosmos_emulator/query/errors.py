"""Errors of queries.

QueryError                the text, a parameter, or what it asks for: 400
├── Unplaced              not at one place of the text
├── Unsupported           the client cannot merge what the ranges would answer
└── ContinuationError     the continuation token is not one of ours, or belongs to another query
"""

from typing import Any


class QueryError(Exception):
    """A query that the service answers with 400."""

    plain = False  # the message alone is the answer

    def __init__(
        self, message: str, *, code: str = "SC1001", start: int = 0, end: int | None = None
    ) -> None:
        super().__init__(message)
        self.message = message
        self.code = code
        self.start = start
        self.end = start if end is None else end

    def body(self) -> dict[str, Any]:
        """The errors document, as the service words it."""
        return {
            "errors": [
                {
                    "severity": "Error",
                    "location": {"start": self.start, "end": self.end},
                    "code": self.code,
                    "message": self.message,
                }
            ]
        }


class Unplaced(QueryError):
    """An error that the service does not place in the text."""

    def body(self) -> dict[str, Any]:
        return {"Errors": [self.message]}


class Unsupported(QueryError):
    """The client is too old for the query."""

    plain = True


class ContinuationError(QueryError):
    """A continuation token that cannot be read."""

    plain = True

    def __init__(self) -> None:
        super().__init__("Invalid Continuation Token")
