"""What the operations on artifacts work with: versions, payloads, their removal, and what fits into
a version's document."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from cosmosservice.account.container import Container
from cosmosservice.artifacts.bodies import BLOBS, COSMOS, Bodies
from cosmosservice.artifacts.collecting import Collecting
from cosmosservice.artifacts.payloads import Payloads
from cosmosservice.artifacts.versions import Versions

INLINE_BYTES: Final = 256 * 1024
# A version with a larger payload in it has a header. That costs 7 RU and a round trip, once.
# Without it, 16 KB would add 1.6 RU to every list of names, and 256 KB 49 RU.
HEADER_BYTES: Final = 16 * 1024


@dataclass(frozen=True)
class Limits:
    """What a version document may hold."""

    inline: int = INLINE_BYTES  # bytes of the largest payload inside it
    header: int = HEADER_BYTES  # bytes of the largest payload inside it without a header


class Collaborators:
    """They are made once for each connection, and live on its event loop."""

    def __init__(
        self, container: Container, bodies: Mapping[str, Bodies], limits: Limits | None = None
    ) -> None:
        self.container, self.bodies, self.limits = container, bodies, limits or Limits()
        self.versions = Versions(container)
        self.payloads = Payloads(container, bodies, BLOBS if BLOBS in bodies else COSMOS)
        self.collecting = Collecting(container, self.payloads)
