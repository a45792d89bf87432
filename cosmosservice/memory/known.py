"""What this process knows: which memories are stored, and its recent answers."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from cosmosservice.hosting.forks import ForkSafeLock
from cosmosservice.memory.damage import Damage

MOST_SESSIONS: Final = 1_000
MOST_MEMORIES: Final = 200_000
MOST_ANSWERS: Final = 500
MOST_OWNERS: Final = 10_000


FIRST_SEQ: Final = 1_000_000
"""The sequence number of the first memory added: those before it may be added later."""


@dataclass
class Conversation:
    """One session: the documents that are known to be stored, and its next sequence number."""

    next_seq: int = FIRST_SEQ
    stored: dict[str, int] = field(default_factory=dict)  # document id → seq
    # The first and last document of a run in which no memory of the session is missing.
    complete: list[tuple[str, str]] = field(default_factory=list)

    def note(self, document_id: str, seq: int) -> None:
        self.stored[document_id] = seq
        self.next_seq = max(self.next_seq, seq + 1)

    def begin_of(self, ids: Sequence[str], *, continues: bool) -> str:
        """The document from which on none is missing up to the last of these, once they are stored.
        With `continues`, they are known to follow the stored ones."""
        given = set(ids)
        for first, last in reversed(self.complete):
            follows = continues and self.stored.get(last) == self.next_seq - 1
            if (last in given and first not in given) or follows:
                return first
        return ids[0]

    def numbered(self, ids: Sequence[str]) -> list[tuple[int, bool]]:
        """The sequence number of each document, and whether it is known to be stored."""
        known = {at: self.stored[each] for at, each in enumerate(ids) if each in self.stored}
        for first, last in self.complete:
            if last in ids:
                end = ids.index(last)
                # If the run's first is not among these, all of these come after it: a session
                # grows at its end.
                begin = ids.index(first) if first in ids else 0
                for at in range(begin, end):
                    known.setdefault(at, self.stored[last] - (end - at))
        if not known:
            return [(self.next_seq + at, False) for at in range(len(ids))]
        start = min(known)
        seq = known[start] - start - 1
        numbered = []
        for at in range(len(ids)):
            seq = known.get(at, seq + 1)
            numbered.append((max(seq, 0), at in known))
        return numbered


class Known:
    """Shared by all event loops of a service."""

    def __init__(self, repeat_seconds: float) -> None:
        self.damage = Damage()
        self._repeat_seconds = repeat_seconds
        self._guard = ForkSafeLock()
        self._conversations: OrderedDict[tuple[str, str], Conversation] = OrderedDict()
        self._answers: OrderedDict[Hashable, tuple[float, str, Any]] = OrderedDict()
        self._versions: OrderedDict[str, int] = OrderedDict()
        self._version = 0
        self._oldest = 0  # the version of every owner not listed there

    # --- what is stored

    def conversation(self, owner: str, name: str) -> Conversation | None:
        with self._guard:
            found = self._conversations.get((owner, name))
            if found is not None:
                self._conversations.move_to_end((owner, name))
            return found

    def learn(self, owner: str, name: str, conversation: Conversation) -> Conversation:
        """Keeps it, unless another loop was faster. The least recently used is dropped first."""
        with self._guard:
            found = self._conversations.setdefault((owner, name), conversation)
            while len(self._conversations) > 1 and (
                len(self._conversations) > MOST_SESSIONS
                or sum(len(each.stored) for each in self._conversations.values()) > MOST_MEMORIES
            ):
                self._conversations.popitem(last=False)
            return found

    # --- what was answered

    def version(self, owner: str) -> int:
        """Changes whenever this process changes the owner's memories."""
        with self._guard:
            return self._versions.get(owner, self._oldest)

    def changed(self, owner: str, *, erased: bool = False) -> None:
        """Drops the cached answers of an owner; with `erased`, also what is known to be stored."""
        with self._guard:
            self._version += 1
            self._versions[owner] = self._version
            self._versions.move_to_end(owner)
            if len(self._versions) > MOST_OWNERS:
                _, self._oldest = self._versions.popitem(last=False)
            for key in [key for key, answer in self._answers.items() if answer[1] == owner]:
                del self._answers[key]
            if erased:
                for name in [name for name in self._conversations if name[0] == owner]:
                    del self._conversations[name]

    def answer(self, owner: str, question: Hashable) -> Any:
        with self._guard:
            found = self._answers.get((owner, question))
            if found is None or time.monotonic() - found[0] > self._repeat_seconds:
                return None
            return found[2]

    def answered(self, owner: str, question: Hashable, answer: Any, version: int) -> None:
        """Caches an answer, unless the owner's memories changed during the search."""
        with self._guard:
            if self._repeat_seconds <= 0 or self._versions.get(owner, self._oldest) != version:
                return
            self._answers[owner, question] = (time.monotonic(), owner, answer)
            while len(self._answers) > MOST_ANSWERS:
                self._answers.popitem(last=False)
