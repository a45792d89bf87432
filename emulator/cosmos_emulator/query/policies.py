"""What a container's policies say of the paths that a query names."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from cosmos_emulator.query.words import DEFAULT_LANGUAGE

Path = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Policies:
    """The distance functions of vectors, and the languages of texts."""

    distances: Mapping[Path, str] = field(default_factory=dict)
    languages: Mapping[Path, str] = field(default_factory=dict)
    default_language: str = DEFAULT_LANGUAGE


NO_POLICIES: Final = Policies()
