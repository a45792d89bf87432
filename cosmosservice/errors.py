"""Exceptions of this package, and ADK's own where ADK has one.

    CosmosServiceError
    ├── ConfigurationError            a setting is missing or wrong
    │   ├── ContainerMismatchError    a container is missing or is not set up as it must be
    │   └── MultipleWriteRegionsError the account accepts writes in several regions
    ├── InvalidIdError                an app name, user id or session id that cannot be stored
    ├── InvalidStateError             a state that ADK cannot have: its keys are not strings
    ├── EventIdReusedError            another event of the session has this event's id
    ├── DamagedArtifactError          the stored bytes of an artifact are not those that were saved
    ├── TooLargeError                 a state with too many keys, or an artifact that is too large
    └── StorageError                  Cosmos DB did not do what was asked
        ├── AuthenticationError       the key or the identity is not accepted
        ├── ThrottledError            the account's throughput is used up (429)
        ├── UnavailableError          no answer in time, or Cosmos DB cannot serve the request now
        └── StateUpdatePendingError   the event is stored; its user: or app: state will follow

    ADK's: StaleSessionError, SessionNotFoundError, AlreadyExistsError

Every message says which operation failed and what was and was not stored. No message, repr or
cause of an exception contains a key or a token.
"""

from __future__ import annotations

from google.adk.errors.already_exists_error import AlreadyExistsError
from google.adk.errors.session_not_found_error import SessionNotFoundError

try:
    from google.adk.errors import StaleSessionError
except ImportError:  # google-adk before 2.7

    class StaleSessionError(ValueError):  # type: ignore[no-redef]
        """The session was changed in storage since it was loaded."""


STALE_MESSAGE = (
    "The session has been modified in storage since it was loaded. "
    "Please reload the session before appending more events."
)

PAST_MESSAGE = (
    "append_event: the session object shows the past, and nothing can be appended there. Nothing"
    " was stored. fork_session continues from that point in a new session."
)


class CosmosServiceError(Exception):
    """The base class of this package's own exceptions."""


class ConfigurationError(CosmosServiceError):
    """A setting is missing or wrong: the message names it and says what to set."""


class ContainerMismatchError(ConfigurationError):
    """A database or container is missing, or is not set up as the service needs it."""


class MultipleWriteRegionsError(ConfigurationError):
    """Several regions accept writes: two could give one sequence number to two events."""


class InvalidIdError(CosmosServiceError, ValueError):
    """An app name, user id or session id that Cosmos DB cannot store. Nothing was stored."""


class InvalidStateError(CosmosServiceError, ValueError):
    """A state that ADK's session cannot have. Nothing was stored."""


class EventIdReusedError(CosmosServiceError, ValueError):
    """The session already holds a different event under this id. Nothing was stored."""

    def __init__(self, event_id: str) -> None:
        super().__init__(
            "append_event: the session already holds a different event with the id"
            f" {event_id!r}. Nothing was stored."
        )


class DamagedArtifactError(CosmosServiceError):
    """The stored bytes of an artifact are missing or are not those that were saved."""


class TooLargeError(CosmosServiceError, ValueError):
    """A state with more keys than one Cosmos DB document can name, or an artifact with too many
    pieces or too much metadata. Nothing was stored."""


class StorageError(CosmosServiceError):
    """Cosmos DB did not do what was asked."""

    def __init__(self, message: str, *, status: int | None = None) -> None:
        super().__init__(message)
        self.status = status


class AuthenticationError(StorageError):
    """The key or the identity was not accepted, or may not do this. `advice` says what to do about
    it, if Azure's answer told why."""

    def __init__(self, message: str, *, status: int | None = None, advice: str = "") -> None:
        super().__init__(message, status=status)
        self.advice = advice


class ThrottledError(StorageError):
    """Cosmos DB kept answering 429: the provisioned request units are used up."""


class UnavailableError(StorageError):
    """Cosmos DB gave no answer, or answered that it cannot serve the request now."""


class StateUpdatePendingError(StorageError):
    """The event IS stored; its `user:` or `app:` state is not yet visible to other sessions.

    The session object holds the event. Nothing needs to be sent again: this process retries in
    the background, and otherwise the next reader of the session merges it.
    """


__all__ = [
    "PAST_MESSAGE",
    "STALE_MESSAGE",
    "AlreadyExistsError",
    "AuthenticationError",
    "ConfigurationError",
    "ContainerMismatchError",
    "CosmosServiceError",
    "DamagedArtifactError",
    "EventIdReusedError",
    "InvalidIdError",
    "InvalidStateError",
    "MultipleWriteRegionsError",
    "SessionNotFoundError",
    "StaleSessionError",
    "StateUpdatePendingError",
    "StorageError",
    "ThrottledError",
    "TooLargeError",
    "UnavailableError",
]
