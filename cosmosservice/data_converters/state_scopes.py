"""`app:`, `user:`, `temp:` and the session's own keys, told apart by ADK's prefixes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from google.adk.sessions.state import State

from cosmosservice.errors import InvalidStateError

from .values import decode_state, encode_state

Document = dict[str, Any]


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


def check_state_keys(state: Mapping[Any, Any] | None, operation: str) -> None:
    """Refuses, before anything is stored, a state that no session can have."""
    for key in state or ():
        if not isinstance(key, str):
            raise InvalidStateError(
                f"{operation}: keys of a state are strings; {key!r} is not. Nothing was stored."
            )


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
    return Scoped(encode_state(session), encode_state(user), encode_state(app))


def plain(stored: Document) -> dict[Any, Any]:
    """Values as they were, in the caller's own copy: what is stored and cached stays untouched."""
    return decode_state(stored)


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
