"""`app:`, `user:`, `temp:` and the session's own keys, told apart by ADK's prefixes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from google.adk.sessions.state import State

from cosmosservice.data_converters import (
    decode_state,
    decode_value,
    encode_state,
    encode_value,
    from_json,
    to_json,
)
from cosmosservice.data_converters.tags import plain_keys
from cosmosservice.documents import Document


@dataclass(frozen=True)
class Scoped:
    """State by scope: keys without prefixes, values as they are stored."""

    session: Document = field(default_factory=dict)
    user: Document = field(default_factory=dict)
    app: Document = field(default_factory=dict)

    @property
    def shared(self) -> bool:
        return bool(self.user or self.app)


NOTHING = Scoped()


def split(state: Mapping[str, Any]) -> Scoped:
    """`temp:` keys are dropped: they live as long as the invocation."""
    session: dict[str, Any] = {}
    user: dict[str, Any] = {}
    app: dict[str, Any] = {}
    for key, value in state.items():
        if not isinstance(key, str):
            session[key] = value
        elif key.startswith(State.APP_PREFIX):
            app[key.removeprefix(State.APP_PREFIX)] = value
        elif key.startswith(State.USER_PREFIX):
            user[key.removeprefix(State.USER_PREFIX)] = value
        elif not key.startswith(State.TEMP_PREFIX):
            session[key] = value
    return Scoped(_stored(session), _stored(user), _stored(app))


# State is kept and merged key by key, so each key must be one of a JSON object. Nearly every key
# is; any other is written as "~" and its own JSON.


def _stored(state: dict[Any, Any]) -> Document:
    return encode_state({_stored_key(key): value for key, value in state.items()}) if state else {}


def _stored_key(key: Any) -> str:
    if isinstance(key, str) and not key.startswith("~") and plain_keys({key: None}):
        return key
    return "~" + to_json(encode_value(key)).decode()


def _restored_key(key: str) -> Any:
    return decode_value(from_json(key[1:].encode())) if key.startswith("~") else key


def plain(stored: Document) -> dict[Any, Any]:
    """Values as they were, in the caller's own copy: what is stored and cached stays untouched."""
    copy = decode_state(from_json(to_json(stored))) if stored else {}
    return {_restored_key(key): value for key, value in copy.items()}


def merged(scoped: Scoped) -> dict[str, Any]:
    """As a session shows it: all scopes in one dict, with prefixes."""
    state = plain(scoped.session)
    state.update((State.APP_PREFIX + key, value) for key, value in plain(scoped.app).items())
    state.update((State.USER_PREFIX + key, value) for key, value in plain(scoped.user).items())
    return state


def without_temp(delta: Mapping[str, Any]) -> dict[str, Any]:
    return {k: v for k, v in delta.items() if not _is_temp(k)}


def temp_only(delta: Mapping[str, Any]) -> dict[str, Any]:
    return {k: v for k, v in delta.items() if _is_temp(k)}


def _is_temp(key: object) -> bool:
    return isinstance(key, str) and key.startswith(State.TEMP_PREFIX)
