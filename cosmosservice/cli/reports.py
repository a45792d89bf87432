"""The results of a migration."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

TO_COPY = "to copy"


@dataclass
class Copies:
    """How many were copied, already there and so on, and what differs from the source."""

    outcomes: Counter[str] = field(default_factory=Counter)
    problems: list[str] = field(default_factory=list)

    @property
    def outcomes_text(self) -> str:
        """` (3 copied, 1 already there)`; empty if there were none."""
        counts = [f"{count:,} {outcome}" for outcome, count in self.outcomes.items() if count]
        return f" ({', '.join(counts)})" if counts else ""
