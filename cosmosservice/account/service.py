"""What all services on an account have in common: account, block and closing."""

from __future__ import annotations

import os
import weakref
from collections.abc import Callable, Coroutine, Hashable, Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Any, Generic, Self, TypeVar

from typing_extensions import Unpack

from cosmosservice.account.account import CosmosAccount
from cosmosservice.account.options import AccountOptions, check_names
from cosmosservice.account.settings import Settings
from cosmosservice.errors import ConfigurationError
from cosmosservice.hosting.concurrency import outlast
from cosmosservice.hosting.forks import ForkSafeLock
from cosmosservice.hosting.operation import Operation
from cosmosservice.hosting.resources import Store, StoreFactory

if TYPE_CHECKING:
    from cosmosservice.account.connection import Connection

T = TypeVar("T")
S = TypeVar("S", bound=Store)


class AccountService(Generic[S]):
    """A service that keeps its data on a CosmosAccount, its own or a shared one."""

    _account: CosmosAccount
    _stores: StoreFactory[Connection, S]
    _owns_account: bool

    def _take_account(
        self,
        account: CosmosAccount | None,
        containers: Mapping[str, str | None],
        **options: Unpack[AccountOptions],
    ) -> Settings:
        """Takes the given account, or makes one with these options. Returns the settings, which
        name the service's containers."""
        check_names(self, options)
        self._owns_account = account is None
        if account is None:
            self._account, settings = _own_account(options, containers)
            return settings
        given = [name for name, value in options.items() if value not in (None, False)]
        if given:
            raise ConfigurationError(
                f"account cannot be combined with {', '.join(sorted(given))}: pass them to the"
                " account."
            )
        self._account = account
        return account.settings.with_containers(**containers)

    @property
    def account(self) -> CosmosAccount:
        """The account on which the service keeps its data."""
        return self._account

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._account.description})"

    async def close(self) -> None:
        """Waits for running calls, finishes background writes and closes what the service
        opened. The next use opens it again. An account that the service was given stays open."""
        await self._account.close_stores(self._stores)
        if self._owns_account and await self._account.is_unused():
            await self._account.close()

    async def __aenter__(self) -> Self:
        """Inside the block the service lives on this event loop, and calls from it are direct.
        Without a block, and for calls from other loops, it lives on its own thread."""
        await self._account.__aenter__()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self._account.close_stores(self._stores)
        await self._account.__aexit__()

    async def in_store(
        self,
        operation: Operation,
        work: Callable[[S], Coroutine[Any, Any, T]],
        *,
        outlasts: bool = False,
    ) -> T:
        """Awaits `work(store)` where the account lives, as this operation. For the service itself
        and for tools of this package: the interface of a store may change.

        Cancelling the caller cancels the work. With `outlasts` the work goes on, and the caller
        waits a moment for its end before the cancellation is passed on.
        """
        started = self._account.start(self._stores, operation, work)
        return await (outlast(started) if outlasts else started)


def _own_account(
    options: AccountOptions, containers: Mapping[str, str | None]
) -> tuple[CosmosAccount, Settings]:
    if options.get("client") is not None:
        account = CosmosAccount(**options)
        return account, account.settings.with_containers(**containers)
    uri = options.pop("uri", None)
    settings = Settings.given(
        uri=uri,
        endpoint=options.pop("endpoint", None),
        database=options.pop("database", None),
        timeout=options.pop("timeout", None),
        **containers,
    )
    if uri is not None:
        return _shared_account(settings, options), settings
    return CosmosAccount(_settings=settings, **options), settings


_shared: weakref.WeakValueDictionary[Hashable, CosmosAccount] = weakref.WeakValueDictionary()
_guard = ForkSafeLock()


def _shared_account(settings: Settings, options: AccountOptions) -> CosmosAccount:
    """One account for all services that name the same database in the same way. ADK's commands make
    a session, a memory and an artifact service from three URIs."""
    path = settings.embedded_path
    where = settings.endpoint if path in (None, ":memory:") else os.path.abspath(str(path))
    secret = settings.key.get_secret_value() if settings.key is not None else None
    same = os.getpid(), where, settings.database, secret, settings.timeout
    key: Hashable = *same, tuple(sorted(options.items()))
    try:
        hash(key)
    except TypeError:  # options that cannot be compared
        return CosmosAccount(_settings=settings, **options)
    with _guard:
        account = _shared.get(key)
        if account is None:
            account = _shared[key] = CosmosAccount(_settings=settings, **options)
        return account
