"""Splits state into `app:`, `user:`, `temp:` and the session's own keys, by ADK's prefixes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from google.adk.sessions.state import State

from cosmosservice.data_converters.tags import encode_key
from cosmosservice.data_converters.values import (
    decode_state,
    decode_state_key,
    encode_state,
    encode_value,
)
from cosmosservice.errors import InvalidStateError
from cosmosservice.scopes import Pair

Document = dict[str, Any]


@dataclass(frozen=True)
class Scoped:
    """State by scope: keys without prefixes, values as they are stored."""

    session: Document = field(default_factory=dict)
    shared: Pair[Document] = field(default_factory=lambda: Pair[Document]({}, {}))

    @property
    def has_shared(self) -> bool:
        return any(self.shared)


NOTHING = Scoped()


def check_state_keys(state: Mapping[Any, Any] | None, operation: str) -> None:
    """Raises, before anything is stored, if no session can have this state."""
    for key in state or ():
        if not isinstance(key, str):
            raise InvalidStateError(
                f"{operation}: keys of a state are strings; {key!r} is not. Nothing was stored."
            )


def split(state: Mapping[str, Any]) -> Scoped:
    """Splits and encodes a state. `temp:` keys are dropped: they end with the invocation."""
    return split_stored(encode_state(state))


def split_stored(document: Document) -> Scoped:
    """The same for an encoded state. The values stay encoded: decoding them here would lose what
    only a reader with their classes can restore."""
    scoped = Scoped()
    for key, value in document.items():
        name = decode_state_key(key)
        if name.startswith(State.APP_PREFIX):
            scoped.shared.app[_stored_key(name.removeprefix(State.APP_PREFIX))] = value
        elif name.startswith(State.USER_PREFIX):
            scoped.shared.user[_stored_key(name.removeprefix(State.USER_PREFIX))] = value
        elif not name.startswith(State.TEMP_PREFIX):
            scoped.session[_stored_key(name)] = value
    return scoped


def _stored_key(name: str) -> str:
    return encode_key(name, encode_value)


def plain(stored: Document) -> dict[Any, Any]:
    """Values as they were, in the caller's own copy: what is stored and cached stays untouched."""
    return decode_state(stored)


def merged(scoped: Scoped) -> dict[str, Any]:
    """As a session shows it: all scopes in one dict, with prefixes."""
    state = plain(scoped.session)
    shared = scoped.shared
    state.update((State.APP_PREFIX + key, value) for key, value in plain(shared.app).items())
    state.update((State.USER_PREFIX + key, value) for key, value in plain(shared.user).items())
    return state


def without_temp(delta: Mapping[str, Any]) -> dict[str, Any]:
    return {k: v for k, v in delta.items() if not _is_temp(k)}


def temp_only(delta: Mapping[str, Any]) -> dict[str, Any]:
    return {k: v for k, v in delta.items() if _is_temp(k)}


def _is_temp(key: object) -> bool:
    return isinstance(key, str) and key.startswith(State.TEMP_PREFIX)
