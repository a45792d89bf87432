"""Options of an account and its connections, besides the settings."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, TypedDict

from cosmosservice.account.charges import RequestCharge
from cosmosservice.errors import ConfigurationError

if TYPE_CHECKING:
    from azure.cosmos.aio import CosmosClient

    from cosmos_emulator import Emulator

Ensure = Literal["create", "verify", "never"]
OnRequestCharge = Callable[[RequestCharge], None]


class _CommonOptions(TypedDict, total=False):
    database: str | None
    ensure: Ensure | None
    timeout: float | None
    client_options: Mapping[str, Any] | None
    on_request_charge: OnRequestCharge | None


class AccountOptions(_CommonOptions, total=False):
    """Options of an account on the embedded emulator."""


class OwnAccountOptions(_CommonOptions, total=False):
    """Options of a service for the account that it makes for itself."""

    uri: str | None
    endpoint: str | None
    credential: Any
    preferred_regions: Sequence[str] | None
    client: CosmosClient | None
    allow_multiple_write_regions: bool
    _emulator: Emulator | None


def embedded_store(store: str | os.PathLike[str] | Emulator) -> tuple[str, Emulator | None]:
    """The endpoint and the emulator for the argument of `embedded`."""
    if isinstance(store, str | os.PathLike):
        path = os.fspath(store)
        if isinstance(path, str):
            return f"embedded:{path}", None
    elif hasattr(store, "async_transport"):
        return "embedded::memory:", store
    given = type(store).__name__
    raise TypeError(f"embedded needs the path of a file or an Emulator, not {given}.")


@dataclass(frozen=True)
class ConnectionOptions:
    """What a connection needs besides the settings."""

    credential: Any = None
    ensure: Ensure | None = None
    allow_multiple_write_regions: bool = False
    preferred_regions: Sequence[str] = ()
    client_options: Mapping[str, Any] = field(default_factory=dict)
    client: CosmosClient | None = None  # opened and closed by the application
    emulator: Emulator | None = None

    def __post_init__(self) -> None:
        if self.ensure not in (None, "create", "verify", "never"):
            raise ConfigurationError("ensure must be 'create', 'verify' or 'never'.")
