"""The options of an account, which are also those of every service that makes its own account.

They are written here and nowhere else: type checkers and editors read them from the types, and
`documented` puts them into the signature and the docstring of a constructor, where `help` and
`docs/configuration.md` find them.
"""

from __future__ import annotations

import ast
import inspect
import itertools
import os
import textwrap
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any, Literal, ParamSpec, Self, TypedDict

from cosmosservice.account.charges import RequestCharge
from cosmosservice.errors import ConfigurationError

if TYPE_CHECKING:
    from azure.cosmos.aio import CosmosClient

    from cosmos_emulator import Emulator

P = ParamSpec("P")

Ensure = Literal["create", "verify", "never"]
OnRequestCharge = Callable[[RequestCharge], None]


class Address(TypedDict, total=False):
    """Which account, and how to reach it."""

    endpoint: str | None
    """The account's URI, or `embedded:<file>`."""
    credential: Any
    """A key, or any token credential of azure-core. Default: COSMOSDB_KEY, or Entra ID if that is
    not set."""
    uri: str | None
    """`cosmosdb://…`, as ADK's commands pass it on."""
    preferred_regions: Sequence[str] | None
    """The regions to read from, the nearest first."""
    client: CosmosClient | None
    """An azure.cosmos.aio.CosmosClient of the application. It is used only on its own event loop,
    and the application closes it. Containers are verified and not created, unless `ensure` says
    "create"."""
    allow_multiple_write_regions: bool
    """Do not refuse an account with several write regions."""
    _emulator: Emulator | None


class EmbeddedOptions(TypedDict, total=False):
    """Those that also apply to the embedded emulator."""

    database: str | None
    """The database. Embedded, it may be left out: `adk`."""
    ensure: Ensure | None
    """Whether to "create" missing containers, "verify" them, or "never" check. Default: create with
    a key; verify with Entra ID, which may not create, and with `client`."""
    timeout: float | None
    """Seconds after which an operation ends, whether or not Cosmos DB answers. Default:
    COSMOSDB_TIMEOUT, or 30."""
    client_options: Mapping[str, Any] | None
    """Further keyword arguments of azure.cosmos.aio.CosmosClient, such as `proxies` or
    `user_agent_suffix`."""
    on_request_charge: OnRequestCharge | None
    """Called with the RequestCharge of every request."""


class AccountOptions(Address, EmbeddedOptions, total=False):
    """All options of an account."""


def documented(constructor: Callable[P, None]) -> Callable[P, None]:
    """Names the options of an account in the signature of a constructor, instead of `**options`,
    and at the end of its docstring."""
    signature = inspect.signature(constructor)
    own = [each for each in signature.parameters.values() if each.kind is not each.VAR_KEYWORD]
    shared = [
        inspect.Parameter(
            name,
            inspect.Parameter.KEYWORD_ONLY,
            default=False if kind.__forward_arg__ == "bool" else None,
            annotation=kind.__forward_arg__,
        )
        for name, kind in AccountOptions.__annotations__.items()
        if not name.startswith("_")
    ]
    constructor.__signature__ = signature.replace(  # type: ignore[attr-defined]
        parameters=[*own, *shared]
    )
    described = [
        textwrap.fill(f"{name}: {text}", 100, initial_indent=" " * 10, subsequent_indent=" " * 12)
        for name, text in (_texts(Address) | _texts(EmbeddedOptions)).items()
    ]
    constructor.__doc__ = "\n".join([(constructor.__doc__ or "").rstrip(), *described, " " * 8])
    return constructor


def _texts(options: type) -> dict[str, str]:
    """The text below each option; none if Python runs without the source."""
    try:
        (definition,) = ast.parse(inspect.getsource(options)).body
    except OSError:
        return {}
    assert isinstance(definition, ast.ClassDef)
    texts = {}
    for option, below in itertools.pairwise(definition.body):
        if isinstance(option, ast.AnnAssign) and isinstance(below, ast.Expr):
            text = ast.literal_eval(below.value)
            texts[ast.unparse(option.target)] = " ".join(text.split())
    return texts


def check_names(owner: object, options: Mapping[str, Any]) -> None:
    """Refuses what is not an option, as Python does where all of them are named."""
    for name in options:
        if name not in AccountOptions.__annotations__:
            raise TypeError(f"{type(owner).__name__}() got an unexpected keyword argument {name!r}")


def embedded_store(store: str | os.PathLike[str] | Emulator) -> Address:
    """The options for the argument of `embedded`."""
    if isinstance(store, str | os.PathLike):
        path = os.fspath(store)
        if isinstance(path, str):
            return {"endpoint": f"embedded:{path}"}
    elif hasattr(store, "async_transport"):
        return {"endpoint": "embedded::memory:", "_emulator": store}
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

    @classmethod
    def of(cls, options: AccountOptions) -> Self:
        """Those of an account's options."""
        given: dict[str, Any] = {name: each for name, each in options.items() if each is not None}
        wanted = {each.name for each in fields(cls)} & given.keys()
        return cls(emulator=options.get("_emulator"), **{name: given[name] for name in wanted})
