"""What kind of account the emulator is: which features are on, and how strict it is."""

from __future__ import annotations

from dataclasses import dataclass

VECTOR_SEARCH = "EnableNoSQLVectorSearch"
FULL_TEXT_SEARCH = "EnableNoSQLFullTextSearch"
# On Azure both are off until somebody turns them on; here, off is what a test asks for.
DEFAULT_CAPABILITIES = frozenset({VECTOR_SEARCH, FULL_TEXT_SEARCH})


# From the strongest to the weakest.
CONSISTENCY_LEVELS = ("Strong", "BoundedStaleness", "Session", "ConsistentPrefix", "Eventual")


@dataclass(frozen=True, slots=True)
class Rules:
    """`lenient`: the gateway merges queries over one physical partition itself. `deviations`
    are those of another server that is imitated (deviations.py)."""

    lenient: bool = False
    capabilities: frozenset[str] = DEFAULT_CAPABILITIES
    consistency: str = "Session"
    deviations: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        if self.consistency not in CONSISTENCY_LEVELS:
            raise ValueError(f"{self.consistency!r} is not a consistency level")


def weaker(consistency: str) -> frozenset[str]:
    """The levels that a request may ask of an account with this one, in lower case."""
    start = CONSISTENCY_LEVELS.index(consistency)
    return frozenset(level.lower() for level in CONSISTENCY_LEVELS[start:])
