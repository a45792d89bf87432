"""Adding: creates missing memories, in an order that shows the next process what is stored."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Final

from cosmosservice.account import chunks
from cosmosservice.account.container import Container, Document
from cosmosservice.account.failures import Conflict
from cosmosservice.account.retries import CONTENTION
from cosmosservice.errors import StorageError
from cosmosservice.memory import documents, queries
from cosmosservice.memory.damage import is_at
from cosmosservice.memory.documents import Owner
from cosmosservice.memory.entries import Entry
from cosmosservice.memory.known import Conversation, Known
from cosmosservice.memory.sharing import join
from cosmosservice.memory.sources import Source

AT_ONCE: Final = 16  # concurrent requests
_MOST_COMPLETE: Final = 20


@dataclass(frozen=True)
class Added:
    """A memory that was stored by this call."""

    document: Document
    text: str


class Adding:
    """Writes memories. A memory whose id exists, forgotten or not, keeps its content, but then
    belongs to one more source (sharing.py)."""

    def __init__(self, container: Container, known: Known) -> None:
        self._container = container
        self._known = known

    async def session(
        self,
        owner: Owner,
        source: Source,
        entries: Sequence[Entry],
        *,
        continues: bool = False,
        others: bool = False,
    ) -> list[Added]:
        """Adds a session so far, or its last part. The last memory is written when the others are
        stored. Its field `complete` names the first memory from which on none is missing, so that
        no process needs to send those again.

        With `continues`, the caller knows that these follow the stored ones; with `others`, that
        another process may have stored some of them.
        """
        if not entries:
            return []
        name = documents.conversation_of(*source)
        conversation = await self._conversation(owner, name, others=others)
        ids = [entry.document_id for entry in entries]
        begin = conversation.begin_of(ids, continues=continues)
        new = [
            (entry, seq)
            for entry, (seq, stored) in zip(entries, conversation.numbered(ids), strict=True)
            if not stored
        ]
        if not new:
            return []
        added = await self._add_all(owner, source, name, conversation, new[:-1])
        complete = begin if new[-1][0] is entries[-1] else None
        added += await self._add_all(owner, source, name, conversation, new[-1:], complete=complete)
        conversation.complete = [*conversation.complete[-_MOST_COMPLETE:], (begin, ids[-1])]
        return added

    async def events(
        self, owner: Owner, session_id: str | None, entries: Sequence[Entry]
    ) -> list[Added]:
        """Adds events after those that their session already has."""
        if not entries:
            return []
        if session_id is None:
            name, conversation = secrets.token_hex(8), Conversation()
        else:
            name = documents.conversation_of(session_id)
            conversation = await self._conversation(owner, name)
        source = None if session_id is None else Source(session_id)
        unknown = [each for each in entries if each.document_id not in conversation.stored]
        new = list(zip(unknown, range(conversation.next_seq, 10**9), strict=False))
        return await self._add_all(owner, source, name, conversation, new)

    async def alone(self, owner: Owner, entries: Sequence[Entry]) -> list[Added]:
        """Adds memories that belong to no conversation and so have no neighbours."""

        def add(entry: Entry) -> Callable[[], Awaitable[Added | None]]:
            name = secrets.token_hex(8)
            return lambda: self._add(owner, None, entry, documents.at_in(name, 0))

        return await self._together(owner, [add(entry) for entry in entries])

    async def _conversation(self, owner: Owner, name: str, *, others: bool = False) -> Conversation:
        """What is known to be stored of the conversation. Takes one small query if this process
        does not know, or if `others` may have added to it."""
        known = self._known.conversation(owner.key, name)
        if known is not None and not others:
            return known
        first, end = documents.range_of(name)
        tail = await self._container.query(queries.TAIL, {"first": first, "end": end}, owner.key)
        found = known or Conversation()
        tail = [row for row in tail if is_at(row.get("at"))]
        for row in tail:
            found.note(row["id"], documents.parse_at(row["at"])[1])
        stored = [
            (row["complete"], row["id"])
            for row in reversed(tail)
            if isinstance(row.get("complete"), str)
        ]
        found.complete = [each for each in found.complete if each not in stored] + stored
        return self._known.learn(owner.key, name, found)

    async def _add_all(
        self,
        owner: Owner,
        source: Source | None,
        name: str,
        conversation: Conversation,
        new: Sequence[tuple[Entry, int]],
        *,
        complete: str | None = None,
    ) -> list[Added]:
        def add(entry: Entry, seq: int) -> Callable[[], Awaitable[Added | None]]:
            async def one() -> Added | None:
                at = documents.at_in(name, seq)
                added = await self._add(owner, source, entry, at, complete=complete)
                conversation.note(entry.document_id, seq)
                return added

            return one

        return await self._together(owner, [add(entry, seq) for entry, seq in new])

    async def _together(
        self, owner: Owner, work: Sequence[Callable[[], Awaitable[Added | None]]]
    ) -> list[Added]:
        """Stores a few at a time. If some fail, stores the others, and raises the first failure."""
        limit = asyncio.Semaphore(AT_ONCE)

        async def one(each: Callable[[], Awaitable[Added | None]]) -> Added | None:
            async with limit:
                return await each()

        try:
            found = await asyncio.gather(*map(one, work), return_exceptions=True)
        finally:
            self._known.changed(owner.key)
        failures = [each for each in found if isinstance(each, BaseException)]
        if failures:
            raise failures[0]
        return [each for each in found if isinstance(each, Added)]

    async def _add(
        self,
        owner: Owner,
        source: Source | None,
        entry: Entry,
        at: str,
        *,
        complete: str | None = None,
    ) -> Added | None:
        document, parts = await entry.documents(owner, source, at, complete=complete)
        await chunks.store(self._container, parts)
        for attempt in CONTENTION:
            await CONTENTION.pause(attempt)
            try:
                await self._container.create(document)
            except Conflict:
                if source is None or await join(self._container, owner, document["id"], source):
                    return None
            else:
                return Added(document, entry.text)
        raise StorageError(
            "add_session_to_memory: memories are erased while they are added. Some are not stored;"
            " add the session again."
        )
