"""Reads that ADK's interface lacks: pages, counts, the past, the live feed."""

from __future__ import annotations

import datetime
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from google.adk.events.event import Event
from google.adk.sessions.session import Session

from cosmosservice.hosting.operation import Background, Bounded, Unbounded
from cosmosservice.sessions.arguments import key_or_none, part_of_title, seconds_of
from cosmosservice.sessions.base import StoreMethods
from cosmosservice.sessions.session_objects import event_object
from cosmosservice.sessions.store.documents import ACTIVE, DELETED
from cosmosservice.sessions.store.feed_continuation import Scope
from cosmosservice.sessions.store.keys import SessionKey
from cosmosservice.sessions.store.pages import Wanted
from cosmosservice.sessions.store.records import LogKey, Record
from cosmosservice.sessions.store.usage import UsageReport
from cosmosservice.sessions.watching import SessionWatch

if TYPE_CHECKING:
    from cosmosservice.sessions.store.feed import FeedPage
    from cosmosservice.sessions.store.feed_continuation import Continuation, Start
    from cosmosservice.sessions.store.history import Point
    from cosmosservice.sessions.store.iterating import Progress
    from cosmosservice.sessions.store.store import SessionStore


@dataclass(frozen=True)
class SessionPage:
    """One page of a list of sessions, and the continuation for the next."""

    sessions: list[Session]
    continuation: str | None
    titles: list[str]
    """The titles of the sessions, in the same order; empty for a session without one."""


class Browsing(StoreMethods):
    """For lists, exports and followers. The session service inherits them."""

    async def list_sessions_page(
        self,
        *,
        app_name: str,
        user_id: str | None = None,
        limit: int = 50,
        continuation: str | None = None,
        deleted: bool = False,
        newest_first: bool = False,
        by_id: bool = False,
        updated_after: datetime.datetime | float | None = None,
        updated_before: datetime.datetime | float | None = None,
        title: str | None = None,
    ) -> SessionPage:
        """Up to `limit` sessions, and their titles.

        A session's title is its name in ADK's web interface (`displayName` in the state's
        `__session_metadata__`) or, without one, the user's first words.

        Args:
          limit: how many at most.
          continuation: that of the previous page. The other arguments, except `limit`, must be the
            same.
          deleted: list the deleted sessions that can be restored instead.
          newest_first: the last updated first. Default: oldest update first, like list_sessions.
          by_id: by user id and session id. Use does not change this order: the pages together show
            every session that exists from the first page to the last.
          updated_after: only sessions that were updated then or later: a datetime with a time
            zone, or seconds since 1970.
          updated_before: only sessions that were updated before.
          title: only sessions with this text in the title, in upper or lower case.
        """
        if limit < 1:
            raise ValueError("limit must be at least 1.")
        if newest_first and by_id:
            raise ValueError("newest_first and by_id cannot be combined.")
        wanted = Wanted(
            app_name,
            user_id,
            DELETED if deleted else ACTIVE,
            newest_first,
            by_id,
            seconds_of("updated_after", updated_after),
            seconds_of("updated_before", updated_before),
            part_of_title(title),
        )
        found, following = await self.in_store(
            Bounded("list_sessions"),
            lambda store: store.listing.page(wanted, limit=limit, continuation=continuation),
        )
        sessions = [self._session_object(each) for each in found]
        return SessionPage(sessions, following, [each.title for each in found])

    async def count_sessions(
        self, *, app_name: str, user_id: str | None = None, deleted: bool = False
    ) -> int:
        """The number of sessions of a user or, without a `user_id`, of an app.

        With `deleted`, counts the deleted sessions that can be restored instead.
        """
        status = DELETED if deleted else ACTIVE
        return await self.in_store(
            Bounded("count_sessions"), lambda store: store.listing.count(app_name, user_id, status)
        )

    async def usage(
        self,
        *,
        app_name: str,
        user_id: str | None = None,
        since: datetime.datetime | float | None = None,
    ) -> UsageReport:
        """Turns, tokens and request units of the sessions of a user or, without a `user_id`, of an
        app: of each session, of each user (`by_user`), and in `total`.

        Tokens are those that the events report. Session documents keep the sums, so that no event
        is read. Events that other processes have appended in the last ten seconds may be missing.
        Deleted sessions count until they are purged. What a fork has copied counts in its source.
        Request units are an estimate of what storing the events has cost, from their sizes.

        Args:
          since: only events of that time or later: a datetime with a time zone, or seconds since
            1970. The logs of sessions that are older and were used since are read.
        """
        seconds = seconds_of("since", since)
        return await self.in_store(
            Background("usage"), lambda store: store.accounting.report(app_name, user_id, seconds)
        )

    def iter_events(
        self, *, app_name: str, user_id: str, session_id: str, page_size: int = 500
    ) -> AsyncIterator[Event]:
        """The session's events in order, loaded page by page.

        Raises SessionNotFoundError if the session is deleted before the last page was read: an
        iteration that ends without an error is complete. A session that does not exist has no
        events.
        """
        if page_size < 1:
            raise ValueError("page_size must be at least 1.")
        return self._iter_events(key_or_none(app_name, user_id, session_id), page_size)

    async def _iter_events(self, key: SessionKey | None, page_size: int) -> AsyncIterator[Event]:
        progress: Progress | None = None
        while key is not None:
            page, progress = await self.in_store(
                Bounded("iter_events"), _events_after(key, progress, page_size)
            )
            for record in page:
                if record.is_event:
                    yield event_object(record)
            if progress is None:
                return

    async def get_session_at(
        self, *, app_name: str, user_id: str, session_id: str, at: Point
    ) -> Session:
        """The session as it was: its events up to a point, and its own state at that moment.

        `at` is a revision (0: before the first event), the id of an event, or a datetime with a
        time zone. `user:` and `app:` state, which other sessions change too, is left out. Raises
        ValueError if there is no such point, and SessionNotFoundError if there is no such session.
        """
        key = SessionKey.named(app_name, user_id, session_id)
        past = await self.in_store(
            Bounded("get_session_at"), lambda store: store.history.at(key, at)
        )
        return self._session_object(past.snapshot)

    def watch(
        self,
        *,
        app_name: str | None,
        user_id: str | None = None,
        session_id: str | None = None,
        since: str = "now",
        interval: float = 1.0,
        follow: bool = True,
    ) -> SessionWatch:
        """The events of an app as any process appends them: at least once, and in order within a
        session. Deletes, restores and purges are reported too.

        Args:
          app_name: the app; None: all apps.
          user_id: only events of this user.
          session_id: only events of this session; then nothing else is read.
          since: "now"; "beginning": everything that is stored; or the continuation of a change, to
            continue after it.
          interval: seconds between two reads when nothing is new.
          follow: False ends the iteration when everything that is stored has been reported.
        """
        scope = Scope.named(app_name, user_id, session_id)

        async def read(since: Continuation | Start, reported: Mapping[LogKey, int]) -> FeedPage:
            return await self.in_store(
                Unbounded("watch"), lambda store: store.feed.page(scope, since, reported)
            )

        return SessionWatch(read, scope, since, interval, follow)


def _events_after(
    key: SessionKey, progress: Progress | None, count: int
) -> Callable[[SessionStore], Coroutine[Any, Any, tuple[list[Record], Progress | None]]]:
    return lambda store: store.iterating.page(key, progress, count)
