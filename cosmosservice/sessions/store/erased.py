"""The result of an erasure."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass
class Erased:
    """The result of an erasure, and the latest stamp that it found."""

    documents: int = 0  # records that became stubs; chunks and values that were removed
    dependants: int = 0  # documents of other services
    stamp: int = 0
    incarnations: dict[str, int] = field(default_factory=dict)  # and the first number of each
    events: set[str] = field(default_factory=set)  # the ids of those that are erased now

    @property
    def anything(self) -> bool:
        return bool(self.documents or self.dependants)

    def add(self, other: Erased) -> None:
        self.documents += other.documents
        self.dependants += other.dependants
        self.stamp = max(self.stamp, other.stamp)
        self.incarnations |= other.incarnations
