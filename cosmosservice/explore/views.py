"""The pages about sessions: what each address shows."""

from __future__ import annotations

import shlex
from functools import cached_property
from typing import TYPE_CHECKING, Any

from aiohttp import web

from cosmosservice.explore.addresses import number_of, search_of, session_of
from cosmosservice.explore.catalogue import Found
from cosmosservice.explore.conversation import turns
from cosmosservice.explore.files import with_events
from cosmosservice.explore.finding import Choices, Wanted, find
from cosmosservice.explore.past import Past, compared, shown
from cosmosservice.explore.reads import Reads
from cosmosservice.explore.rendering import session_parameters, url
from cosmosservice.explore.session_log import PAGE, Head, LogPage, SessionLog
from cosmosservice.explore.texts import counted, whole_text
from cosmosservice.sessions.store.documents import DELETED

if TYPE_CHECKING:
    from cosmosservice.sessions.store.keys import SessionKey


class Views(Reads):
    @cached_property
    def _past(self) -> Past:
        return Past(self._service)

    def routes(self) -> list[web.RouteDef]:
        return [
            web.get("/", self.sessions),
            web.get("/session", self.session),
            web.get("/state", self.state),
            web.get("/raw", self.raw),
        ]

    async def sessions(self, request: web.Request) -> web.Response:
        wanted, query = search_of(request), request.query
        static = self._rendering.static
        if static is None:
            found = await self._catalogue.find(wanted, continuation=query.get("continue") or None)
        else:
            found = Found(static.rows, None, "")
        search = {name: query.get(name, "") for name in ("q", "app", "user", "from", "to")}
        search["deleted"] = "yes" if wanted.status == DELETED else ""
        first = "continue" not in query
        return self._rendering.page(
            "sessions.html",
            found=found,
            search=search,
            filtered=any(value for name, value in search.items() if name != "deleted"),
            apps=self._catalogue.apps,
            # An older page does not change.
            live=url("/live", **search, version=found.version) if first and not static else "",
            older=url("/", **search, **{"continue": found.continuation}),
            newer="" if first else url("/", **search),
        )

    async def session(self, request: web.Request) -> web.Response:
        log = SessionLog(self._service, session_of(request))
        head = await log.head()
        at, after, before = (number_of(request, name) for name in ("at", "after", "before"))
        wanted = Wanted.of(request)
        found = await find(log, head, wanted, before) if wanted else None
        if found is not None:
            page = LogPage(found.entries, head)
        elif at is not None and after is None and before is None:
            page = await log.page(head, after=at - PAGE // 2)
        else:
            page = await log.page(head, after=after, before=before)
        files = self._dependants.files
        shown_turns = turns(page.entries)
        items = (item for turn in shown_turns for item in turn.items)
        return self._rendering.page(
            "session.html",
            head=head,
            log=page,
            turns=shown_turns,
            wanted=wanted,
            found=found,
            choices=found.choices if found else Choices.of(items, wanted),
            files=None if files is None else with_events(await files.of_session(head.key), page),
            # Only the last page of a session changes.
            follows=not (wanted or at or page.later or head.deleted or self._rendering.static),
            states=await self._states(head, page),
            live=url("/live", head.key, version=str(head.last)),
            names=session_parameters(head.key),
            chosen=at is not None,
            restore=_restoring(head.key),
            **await self._state(head, at, None if wanted else page),
        )

    async def state(self, request: web.Request) -> web.Response:
        """The state alone, for the slider."""
        head = await SessionLog(self._service, session_of(request)).head()
        values = await self._state(head, number_of(request, "at"), None)
        return self._rendering.page("state.html", head=head, **values)

    async def _states(self, head: Head, page: LogPage) -> list[dict[str, Any]]:
        """For a page without a server: the state after each of its events."""
        if self._rendering.static is None:
            return []
        return [await self._state(head, each.revision, page) for each in page.entries]

    async def _state(self, head: Head, at: int | None, page: LogPage | None) -> dict[str, Any]:
        revision = head.last if at is None else at
        if at is None and page is not None and page.later is not None:
            # Showing what the last event changed is not worth another read.
            values, caption = compared(head.own_state, head.own_state), "as it is now"
            shared = compared(head.shared_state, head.shared_state)
        else:
            values = await self._past.state_at(head, revision, page)
            shared = await self._past.shared_state(head, revision, page)
            marked = sum(bool(each.mark) for each in values + shared)
            caption = f"{counted(marked, 'change')} by event {revision}"
            if not marked:
                caption = (
                    f"not changed by event {revision}"
                    if revision > head.first
                    else "at the beginning"
                )
        return {"at": revision, "state": shown(values), "shared": shown(shared), "caption": caption}

    async def raw(self, request: web.Request) -> web.Response:
        log = SessionLog(self._service, session_of(request))
        head = await log.head()
        revision = number_of(request, "revision")
        if revision is None:
            document = await log.document()
        else:
            document = await log.event_document(head, revision)
        text = whole_text(document, 2)
        return self._rendering.page("raw.html", head=head, revision=revision, text=text)


def _restoring(key: SessionKey) -> str:
    """The command that brings a deleted session back."""
    named = ["--app", key.app_name, "--user", key.user_id, "--", key.session_id]
    return shlex.join(["cosmosservice", "sessions", "restore", *named])
