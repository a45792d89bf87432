"""The result of an erasure."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass
class Erased:
    """The result of an erasure, and the latest stamp that it found."""

    documents: int = 0  # records that became stubs; chunks, origins and values that were removed
    stamp: int = 0
    incarnations: dict[str, int] = field(default_factory=dict)  # and the first place of each

    def add(self, other: Erased) -> None:
        self.documents += other.documents
        self.stamp = max(self.stamp, other.stamp)
        self.incarnations |= other.incarnations
