"""How a client proves who it is: a key, a token credential, or Entra ID by default."""

from __future__ import annotations

import asyncio
import inspect
from typing import Any

from cosmosservice.errors import ConfigurationError


def default_credential() -> Any:
    """Entra ID: managed identity, `az login` and others. The caller closes it."""
    try:
        from azure.identity.aio import DefaultAzureCredential
    except ImportError:
        raise ConfigurationError(
            "COSMOSDB_KEY is not set, so Entra ID is used, which needs azure-identity:"
            " pip install 'cosmosservice[entra]', or set COSMOSDB_KEY."
        ) from None
    return DefaultAzureCredential()


def asynchronous(credential: Any) -> Any:
    """A key as it is, or any token credential as an asynchronous one."""
    if isinstance(credential, str):
        return credential
    get = getattr(credential, "get_token_info", None) or getattr(credential, "get_token", None)
    if get is None:
        raise ConfigurationError(
            "credential must be a key (str) or a token credential of azure-core, such as"
            f" azure.identity.DefaultAzureCredential; not a {type(credential).__name__}."
        )
    return credential if inspect.iscoroutinefunction(get) else _ThreadedCredential(credential)


class _ThreadedCredential:
    """A synchronous token credential, called in a thread."""

    def __init__(self, credential: Any) -> None:
        self._credential = credential

    async def get_token(self, *scopes: str, **options: Any) -> Any:
        return await asyncio.to_thread(self._credential.get_token, *scopes, **options)

    async def close(self) -> None:
        """The credential belongs to the caller."""

    async def __aenter__(self) -> _ThreadedCredential:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()
