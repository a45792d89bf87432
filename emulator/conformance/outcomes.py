"""What became of the tests of a suite: of those that talked to the server and were not skipped."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass
class Outcome:
    """`using`: the versions it was measured with. `failures`: names and reasons."""

    using: str = ""
    passed: int = 0
    failures: list[str] = field(default_factory=list)

    @property
    def ran(self) -> int:
        return self.passed + len(self.failures)

    def add(self, name: str, part: Outcome) -> None:
        """Adds what became of one file, and prints it."""
        self.passed += part.passed
        self.failures += [f"{name}: {failure}" for failure in part.failures]
        print(f"  {name:66} {part.passed}/{part.ran}", flush=True)
