"""Entries: ADK's events and memory entries as documents, and back."""

from __future__ import annotations

import copy
import datetime
import math
import re
import time
import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from google.adk.events.event import Event
from google.adk.memory.memory_entry import MemoryEntry
from google.genai import types

from cosmosservice.account.chunks import Damaged
from cosmosservice.account.container import Document
from cosmosservice.data_converters import decode_state, decode_value, encode_state, encode_value
from cosmosservice.errors import ConfigurationError
from cosmosservice.hosting.concurrency import in_thread
from cosmosservice.memory import documents
from cosmosservice.memory.documents import Owner
from cosmosservice.memory.sources import Source, with_sources
from cosmosservice.memory.words import names_of, words_of

TTL: Final = "ttl"
LONGEST_TTL: Final = 2**31 - 1
_QUESTION: Final = re.compile(r"\?(?!\w)|[？؟]")  # a URL has one in the middle of a word
_LARGE: Final = 20_000  # characters from which words are extracted on another thread


@dataclass
class Entry:
    """One memory before it is stored."""

    memory_id: str
    content: Document
    text: str
    author: str | None
    time: float
    timestamp: str | None
    metadata: Document = field(default_factory=dict)
    ttl: int | None = None

    @property
    def document_id(self) -> str:
        return documents.document_id(self.memory_id)

    async def documents(
        self, owner: Owner, source: Source | None, at: str, *, complete: str | None = None
    ) -> tuple[Document, list[Document]]:
        """The memory's document, and the parts to be written before it."""
        if len(self.text) > _LARGE:
            words = await in_thread(words_of, self.text)
        else:
            words = words_of(self.text)
        made: Document = {
            "id": self.document_id,
            "owner": owner.key,
            "kind": documents.MEMORY,
            "memory_id": self.memory_id,
            "app_name": owner.app_name,
            "user_id": owner.user_id,
            "author": encode_value(self.author),
            "time": self.time,
            "timestamp": encode_value(self.timestamp),
            "at": at,
            "length": len(words),
            "asks": is_question(self.text),
            "schema_version": documents.SCHEMA_VERSION,
        }
        if source is not None:
            made |= with_sources({}, [source])
        if self.metadata:
            made["metadata"] = self.metadata
        if self.ttl is not None:
            made["ttl"] = self.ttl
        if complete is not None:
            made["complete"] = complete
        tokens = [f"#{at}", *names_of(self.author or ""), *sorted(set(words))]
        return made, await documents.split_large(made, self.content, tokens)


def is_question(text: str) -> bool:
    """Whether the next memory is likely to be its answer."""
    return _QUESTION.search(text) is not None


def text_in(content: types.Content | None) -> str:
    """What was said, without the model's thoughts and the arguments and results of tools."""
    parts = (content.parts if content is not None else None) or []
    said = (part.text.strip() for part in parts if part.text and not part.thought)
    return "\n".join(text for text in said if text)


def event_entries(
    events: Iterable[Event], metadata: Mapping[str, object] | None, ttl: int | None
) -> list[Entry]:
    """The events in which something was said, each once."""
    kept, ttl = _without_ttl(metadata, ttl)
    found: dict[str, Entry] = {}
    for event in events:
        text = text_in(event.content)
        if not text or event.partial or event.id in found:
            continue
        documents.text_of("The event id", event.id)
        found[event.id] = Entry(
            memory_id=event.id,
            content=encode_value(event.content),
            text=text,
            author=event.author or None,
            time=event.timestamp if math.isfinite(event.timestamp) else time.time(),
            timestamp=None,
            metadata=kept,
            ttl=ttl,
        )
    return list(found.values())


def memory_entries(
    memories: Sequence[MemoryEntry], metadata: Mapping[str, object] | None, ttl: int | None
) -> list[Entry]:
    """Entries as given. One without an id gets a new id, one without a time the current time."""
    now = time.time()
    made = []
    for memory in memories:
        kept, own_ttl = _without_ttl({**(metadata or {}), **memory.custom_metadata}, ttl)
        memory_id = memory.id or str(uuid.uuid4())
        documents.text_of("The memory id", memory_id)
        moment = _parsed(memory.timestamp)
        made.append(
            Entry(
                memory_id=memory_id,
                content=encode_value(memory.content),
                text=text_in(memory.content),
                author=memory.author,
                time=now if moment is None else moment,
                timestamp=memory.timestamp,
                metadata=kept,
                ttl=own_ttl,
            )
        )
    return made


def memory_of(
    document: Document, content: Any, match: Mapping[str, Any] | None = None
) -> MemoryEntry:
    """What a search returns; `match` says why. Raises Damaged if the content is not that of a
    memory."""
    metadata = decode_state(document.get("metadata") or {})
    if match is not None:
        metadata.setdefault("match", copy.deepcopy(match))
    if document.get("session_id") is not None:
        metadata.setdefault("session_id", document["session_id"])
    said = decode_value(content)
    if not isinstance(said, types.Content):
        raise Damaged("its content is not content")
    timestamp = decode_value(document.get("timestamp"))
    try:
        return MemoryEntry(
            id=document["memory_id"],
            content=said,
            author=decode_value(document.get("author")),
            timestamp=timestamp if timestamp is not None else iso(document["time"]),
            custom_metadata=metadata,
        )
    except ValueError:  # which quotes the fields
        raise Damaged("its author or timestamp has the wrong type") from None


def iso(moment: float) -> str:
    try:
        return datetime.datetime.fromtimestamp(moment, datetime.UTC).isoformat()
    except (ValueError, OverflowError, OSError):  # not a valid date
        return str(moment)


def check_ttl(ttl: object) -> int | None:
    if ttl is None:
        return None
    if isinstance(ttl, bool) or not isinstance(ttl, int) or not 1 <= ttl <= LONGEST_TTL:
        raise ConfigurationError(
            f"ttl must be a number of seconds, at least 1 and at most {LONGEST_TTL}, or None."
            " Nothing was stored."
        )
    return ttl


def _without_ttl(
    metadata: Mapping[str, object] | None, ttl: int | None
) -> tuple[Document, int | None]:
    """The custom metadata to store, and the ttl: `ttl` in the metadata is for this service."""
    kept = dict(metadata or {})
    if TTL in kept:
        ttl = check_ttl(kept.pop(TTL))
    return encode_state(kept), ttl


def _parsed(timestamp: str | None) -> float | None:
    if timestamp is None:
        return None
    try:
        moment = datetime.datetime.fromisoformat(timestamp)
    except ValueError:
        return None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=datetime.UTC)
    return moment.timestamp()
