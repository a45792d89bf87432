"""State as stored in a document: small values inline, large ones by reference."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from cosmosservice.account.container import Document


@dataclass(frozen=True)
class State:
    """Values by key: `inline` as they are stored, `large` by reference."""

    inline: Document = field(default_factory=dict)
    large: Document = field(default_factory=dict)

    def updated(self, delta: Mapping[str, Any]) -> State:
        if not delta:
            return self
        large = self.large
        if large and not large.keys().isdisjoint(delta):
            large = {key: ref for key, ref in large.items() if key not in delta}
        return State(self.inline | dict(delta), large)

    @property
    def fields(self) -> Document:
        """The fields as stored in a document."""
        return {"state": self.inline} | ({"large": self.large} if self.large else {})

    @classmethod
    def of(cls, body: Any) -> State:
        """The state in a document, even one from before there were large values, or a damaged
        one."""
        if not isinstance(body, dict):
            return cls()
        inline, large = body.get("state"), body.get("large")
        return cls(
            inline if isinstance(inline, dict) else {}, large if isinstance(large, dict) else {}
        )


NO_STATE = State()
