"""Edit and continue: another message or another state at an event, in a fork from there."""

from __future__ import annotations

import json
import time
import uuid
from typing import TYPE_CHECKING, Any, Final

from aiohttp import web
from google.adk.events import Event, EventActions
from google.genai import types

from cosmosservice.explore.addresses import number, number_of, session_of
from cosmosservice.explore.past import Past
from cosmosservice.explore.rendering import url
from cosmosservice.explore.session_log import Head, SessionLog, is_shared
from cosmosservice.explore.texts import whole_text
from cosmosservice.sessions.store.keys import SessionKey

if TYPE_CHECKING:
    from cosmosservice.cosmos_session_service import CosmosSessionService
    from cosmosservice.explore.rendering import Rendering

_LONGEST: Final = 100_000  # characters of a message or a state that can be edited
_UNCHANGED: Final = "Neither the message nor the state was changed. Nothing was stored."


class Editing:
    """The guard has checked that what is posted comes from a form of this page."""

    def __init__(self, service: CosmosSessionService, rendering: Rendering) -> None:
        self._service = service
        self._rendering = rendering
        self._past = Past(service)

    def routes(self) -> list[web.RouteDef]:
        return [web.get("/edit", self.form), web.post("/edit", self.edit)]

    async def form(self, request: web.Request) -> web.Response:
        if not self._rendering.write:
            raise web.HTTPNotFound
        at = number_of(request, "at")
        if at is None:
            raise ValueError("The address names no event.")
        head, event, state = await self._at(session_of(request), at)
        return self._rendering.page(
            "edit.html",
            head=head,
            at=at,
            author=event.author if event else "",
            message=_text(event),
            state=whole_text(state, 2),
            too_long=len(whole_text(state)) > _LONGEST,
        )

    async def edit(self, request: web.Request) -> web.Response:
        """Forks before the event if its message is another one, else after it, and appends what was
        changed."""
        key, form = session_of(request), await request.post()
        at = number("at", str(form.get("at", "")))
        if at is None:
            raise ValueError("The form names no event.")
        _, event, before = await self._at(key, at)
        said = _text(event)
        message = _lines(form.get("message")) if said is not None else None
        changes = _changes(before, form.get("state"))
        is_new = event is not None and message is not None and message != said
        if not is_new and not changes:
            raise ValueError(_UNCHANGED)
        made = _edited(event, message or "") if event and is_new else Event(author="user")
        made.actions.state_delta = dict(made.actions.state_delta) | changes
        fork = await self._service.fork_session(
            app_name=key.app_name,
            user_id=key.user_id,
            session_id=key.session_id,
            at=at - 1 if is_new else at,
        )
        await self._service.append_event(fork, made)
        raise web.HTTPSeeOther(
            url("/session", SessionKey.named(fork.app_name, fork.user_id, fork.id))
        )

    async def _at(self, key: SessionKey, at: int) -> tuple[Head, Event | None, dict[str, Any]]:
        """The session, the event, and the session's own state after it."""
        log = SessionLog(self._service, key)
        head = await log.head()
        values = await self._past.state_at(head, at)
        state = {each.key: each.value for each in values if each.mark != "removed"}
        page = await log.page(head, after=at - 1, count=1)
        return head, page.entries[0].event if at > head.first and page.entries else None, state


def _text(event: Event | None) -> str | None:
    """The message of an event that can be edited: one that consists of text."""
    parts = (event.content.parts if event and event.content else None) or []
    if not parts or any(each.text is None for each in parts):
        return None
    said = [each.text or "" for each in parts if not each.thought]
    return said[0] if len(said) == 1 and len(said[0]) <= _LONGEST else None


def _edited(event: Event, message: str) -> Event:
    """A new event instead of another: with the same author and the same changes, but in a turn of
    its own, since it comes later."""
    role = event.content.role if event.content else event.author
    return Event(
        author=event.author,
        invocation_id=f"e-{uuid.uuid4()}",  # as ADK names them
        branch=event.branch,
        timestamp=time.time(),
        content=types.Content(role=role, parts=[types.Part(text=message)]),
        actions=EventActions(state_delta=_own(event.actions.state_delta)),
    )


def _own(delta: dict[str, Any]) -> dict[str, Any]:
    """Without what sessions share: the original event has changed that already."""
    return {key: value for key, value in delta.items() if not is_shared(key)}


def _lines(given: object) -> str:
    """What a form sends, with the line ends that it had."""
    return str(given or "").replace("\r\n", "\n")


def _changes(before: dict[str, Any], given: object) -> dict[str, Any]:
    """The changes that lead from one state to another. A key that is gone becomes null: ADK has no
    other way to remove one."""
    if given is None:
        return {}
    try:
        after = json.loads(str(given))
    except ValueError as problem:
        raise ValueError(f"The state is not JSON: {problem}. Nothing was stored.") from None
    if not isinstance(after, dict):
        raise ValueError("The state is not a JSON object. Nothing was stored.")
    shared = sorted(filter(is_shared, after))
    if shared:
        raise ValueError(
            f"{shared[0]} is shared with other sessions: only the session's own state can be"
            " edited. Nothing was stored."
        )
    # Compared as JSON: the form cannot show more than that.
    known = {key: json.loads(whole_text(value)) for key, value in before.items() if _plain(value)}
    hidden = before.keys() - known.keys()
    changes = {k: v for k, v in after.items() if k not in hidden and (k, v) not in known.items()}
    return changes | dict.fromkeys(known.keys() - after.keys())


def _plain(value: Any) -> bool:
    try:
        json.dumps(value)
    except (TypeError, ValueError, RecursionError):
        return False
    return True
