"""What a failure of the SDK means to the service."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from cosmosservice.account.charges import current_operation
from cosmosservice.account.refusals import quoted, refusal_of
from cosmosservice.errors import (
    AuthenticationError,
    ContainerMismatchError,
    StorageError,
    ThrottledError,
    TooLargeError,
    UnavailableError,
)

_TRANSIENT = frozenset({408, 410, 449, 500, 502, 503, 504})
# Sub-statuses of 404: the replica lags what this client has seen, and cannot say whether the
# document exists; there is no such database or container.
_REPLICA_LAGS, _OWNER_MISSING = 1002, 1003

_NOTHING = "Nothing was stored by this request."
_NOT_KNOWN = "Whether it was stored is not known; sending it again is safe."


def may_have_stored(status: int) -> bool:
    """Whether a write with this status, or without an answer (0), may have been applied."""
    return not status or status in _TRANSIENT


class Conflict(Exception):
    """409: the id exists."""


class PreconditionFailed(Exception):
    """412: another writer has changed the document since it was read."""


class NotFound(Exception):
    """404: there is no such document."""


class BatchRefused(Exception):
    """One write of a transaction was refused, so none was applied."""

    def __init__(self, number: int, status: int) -> None:
        super().__init__()
        self.number = number  # of that write, from 0
        self.status = status  # 404, 409 or 412


class Failure:
    """What an exception of the SDK means."""

    def __init__(self, error: Exception) -> None:
        from azure.core.exceptions import AzureError, ClientAuthenticationError
        from azure.cosmos.exceptions import CosmosHttpResponseError

        self._error = error
        self.status: int | None = None
        self.headers: Mapping[str, str] = {}
        self._sub_status: int | None = None
        self.throttled = False  # the SDK gave up after 429
        self.known = isinstance(error, (AzureError, TimeoutError))
        if isinstance(error, CosmosHttpResponseError):
            self.status = error.status_code
            self.headers = error.headers or {}
            self._sub_status = error.sub_status
            self.throttled = self.status == 429
        elif isinstance(error, ClientAuthenticationError):  # Entra ID gave no token
            self.status = 401

    @property
    def transient(self) -> bool:
        return (
            self.status in _TRANSIENT
            or (self.known and self.status is None)
            or (self.status == 404 and self._sub_status == _REPLICA_LAGS)
        )

    def translated(self, what: str, *, maybe_stored: bool) -> Exception:
        """The failure as an error of the service. `maybe_stored`: this attempt or an earlier one
        may have been applied without an answer."""
        if not self.known:
            return self._error
        status = self.status
        if status == 409:
            return Conflict()
        if status == 412:
            return PreconditionFailed()
        if status == 404 and self._sub_status not in (_REPLICA_LAGS, _OWNER_MISSING):
            return NotFound()
        what = f"{current_operation.get()}: {what}"
        outcome = _NOT_KNOWN if maybe_stored else _NOTHING
        if status == 404 and self._sub_status == _OWNER_MISSING:
            return ContainerMismatchError(
                f"{what} found no such database or container. {outcome}"
                " Create it with `cosmosservice init`, or pass ensure='create'."
                f" Azure's answer: {quoted(self._answer)}"
            )
        if status == 413:
            return TooLargeError(f"{what} was refused: the document has more than 2 MB.")
        if status == 403 and self._sub_status == 1014:
            return StorageError(
                f"{what} was refused: the logical partition has reached its 20 GB. {outcome}"
                " Purge old sessions of this user, or start a new session.",
                status=status,
            )
        if status in (401, 403):
            why = refusal_of(self._answer)
            said = quoted(self._answer)
            return AuthenticationError(
                f"{what} was refused ({status}): {why.reason}. {outcome}"
                + (f" Azure's answer: {said}" if said else ""),
                status=status,
                advice=why.advice,
            )
        if self.throttled:
            return ThrottledError(
                f"{what} was throttled (429) until the retries were used up: the account's"
                f" request units are spent. {outcome}",
                status=429,
            )
        if self.transient:
            reason = f"answer {status}" if status else self._silence
            return UnavailableError(
                f"{what} could not be completed ({reason}). {outcome}", status=status
            )
        return StorageError(f"{what} failed with {status}: {self.message}", status=status)

    @property
    def _silence(self) -> str:
        if isinstance(self._error, TimeoutError):
            return "no answer in time"
        return type(self._error).__name__

    @property
    def hung_up(self) -> bool:
        """Whether the server closed the connection without an answer, or did not answer in HTTP."""
        from aiohttp import ClientResponseError, ServerDisconnectedError

        said = ConnectionResetError, ServerDisconnectedError, ClientResponseError
        return any(isinstance(each, said) for each in self._causes())

    @property
    def not_tls(self) -> bool:
        """Whether the answer was not TLS."""
        import ssl

        wrong = (each for each in self._causes() if isinstance(each, ssl.SSLError))
        return any("WRONG_VERSION" in str(each) for each in wrong)

    def _causes(self) -> Iterator[BaseException]:
        error: BaseException | None = self._error
        while error is not None:
            yield error
            error = error.__cause__ or error.__context__

    @property
    def _answer(self) -> str:
        return str(getattr(self._error, "message", "") or self._error).strip()

    @property
    def message(self) -> str:
        """The first line of the SDK's message."""
        text = self._answer
        return text.splitlines()[0][:300] if text else type(self._error).__name__
