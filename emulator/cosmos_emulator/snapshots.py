"""What a read sees: the newest state of a container, or the one that a replica has reached."""

from __future__ import annotations

from dataclasses import dataclass

from cosmos_emulator import session_tokens
from cosmos_emulator.catalog import Catalog
from cosmos_emulator.containers import Container
from cosmos_emulator.errors import NotFound
from cosmos_emulator.history import as_of
from cosmos_emulator.messages import Request, Sight
from cosmos_emulator.ranges import Range
from cosmos_emulator.replicas import Replicas

_NEWEST = {"strong", "boundedstaleness"}
_WITHOUT_TOKENS = {"eventual", "consistentprefix"}


@dataclass(slots=True)
class Snapshot:
    """The rows that a read may see, and how far they reach. `lsns` is by range, where that
    differs; `lsn` is the oldest of them."""

    table: str
    lsn: int
    key: str | None
    epk_range: tuple[str, str] | None
    lsns: dict[str, int] | None = None
    version: int | None = None  # of the newest write that may be seen; None: of the newest there is

    def headers(self, container: Container, *, refused: bool = False) -> dict[str, str]:
        return container.session_headers(
            self.lsn, self.key, self.epk_range, self.lsns, refused=refused
        )


class Snapshots:
    """Chooses what each read sees."""

    def __init__(self, catalog: Catalog, replicas: Replicas | None) -> None:
        self._catalog = catalog
        self._replicas = replicas

    def of(
        self,
        request: Request,
        container: Container,
        key: str | None = None,
        epk_range: tuple[str, str] | None = None,
        *,
        alike: bool = False,
    ) -> Snapshot:
        """The snapshot for a read of one key, a range of keys, or the container. `alike`: all
        ranges at the same LSN. Call it with the storage's lock held."""
        newest = self._catalog.lsn(container)
        if self._replicas is None:
            if "x-ms-session-token" in request.headers:
                for found in container.ranges_of(key, epk_range):
                    _demanded(request, found, newest)
            return Snapshot(container.table, newest, key, epk_range)
        self._replicas.history.refresh()
        ranges = container.ranges_of(key, epk_range)
        lsns = [
            (found, _lsn(self._replicas, request, container, found, newest)) for found in ranges
        ]
        if alike:
            best = max(lsn for _, lsn in lsns)
            lsns = [(found, best) for found, _ in lsns]
        oldest = min(lsn for _, lsn in lsns)
        request.sight = Sight(oldest, newest)
        if oldest == newest:
            return Snapshot(container.table, newest, key, epk_range)
        return Snapshot(
            as_of(container.number, lsns),
            oldest,
            key,
            epk_range,
            {found.id: lsn for found, lsn in lsns},
            self._replicas.history.version_at(container.number, oldest),
        )


def _lsn(
    replicas: Replicas, request: Request, container: Container, found: Range, newest: int
) -> int:
    level = request.headers.get("x-ms-consistency-level", "").replace(" ", "").lower()
    if level in _NEWEST:
        return newest
    lsn = replicas.position(container.number, container.name, found.id)
    if level in _WITHOUT_TOKENS:
        return lsn
    # Some replica has reached the token, even if the chosen one has not.
    return max(lsn, _demanded(request, found, newest))


def _demanded(request: Request, found: Range, newest: int) -> int:
    """The LSN that the session token asks for. A token from the future is refused."""
    demanded = session_tokens.parse(request.headers.get("x-ms-session-token"))
    wanted = demanded.get(found.id, 0)
    for parent in found.parents:
        wanted = max(wanted, demanded.get(parent, 0))
    if wanted > newest:
        raise NotFound(
            "The read session is not available for the input session token.", substatus=1002
        )
    return wanted
