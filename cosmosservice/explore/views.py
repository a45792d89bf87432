"""The pages about sessions: what each address shows."""

from __future__ import annotations

import shlex
from functools import cached_property
from typing import TYPE_CHECKING, Any

from aiohttp import web

from cosmosservice.explore.addresses import number_of, search_of, session_of
from cosmosservice.explore.conversation import turns
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
        found = await self._catalogue.find(wanted, continuation=query.get("continue") or None)
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
            live=url("/live", **search, version=found.version) if first else "",
            older=url("/", **search, **{"continue": found.continuation}),
            newer="" if first else url("/", **search),
        )

    async def session(self, request: web.Request) -> web.Response:
        log = SessionLog(self._service, session_of(request))
        head = await log.head()
        at, after, before = (number_of(request, name) for name in ("at", "after", "before"))
        if at is not None and after is None and before is None:
            page = await log.page(head, after=at - PAGE // 2)
        else:
            page = await log.page(head, after=after, before=before)
        files = self._companions.files
        return self._rendering.page(
            "session.html",
            head=head,
            log=page,
            turns=turns(page.entries),
            files=None if files is None else await files.of_session(head.key),
            # Only the last page of a session changes.
            follows=at is None and page.later is None and not head.deleted,
            live=url("/live", head.key, version=str(head.last)),
            names=session_parameters(head.key),
            chosen=at is not None,
            restore=_restoring(head.key),
            **await self._state(head, at, page),
        )

    async def state(self, request: web.Request) -> web.Response:
        """The state alone, for the slider."""
        head = await SessionLog(self._service, session_of(request)).head()
        values = await self._state(head, number_of(request, "at"), None)
        return self._rendering.page("state.html", head=head, **values)

    async def _state(self, head: Head, at: int | None, page: LogPage | None) -> dict[str, Any]:
        point = head.last if at is None else at
        if at is None and page is not None and page.later is not None:
            # Showing what the last event changed is not worth another read.
            values, caption = compared(head.own_state, head.own_state), "as it is now"
            shared = compared(head.shared_state, head.shared_state)
        else:
            values = await self._past.state_at(head, point, page)
            shared = await self._past.shared_state(head, point, page)
            marked = sum(bool(each.mark) for each in values + shared)
            caption = f"{counted(marked, 'change')} by event {point}"
            if not marked:
                caption = (
                    f"not changed by event {point}" if point > head.first else "at the beginning"
                )
        return {"at": point, "state": shown(values), "shared": shown(shared), "caption": caption}

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
