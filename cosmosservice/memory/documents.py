"""The stored documents: one partition for each user of an app.

    id         e.<id of the memory>      created once: creating it again fails, so that adding a
                                         memory twice stores it once
    kind       memory | forgotten | part | vector
    owner      app and user: the partition key
    session_id the session that added it first, and `incarnation`, if it is known: which of its
               incarnations. `also_in` and `incarnations` name others that have it too (sources.py)
    at         conversation . seq        the memory's sequence number in its conversation
    tokens     the words that it is found by, "#" + at, and "@" + a word of its author's name
    length     how many words it has
    content    in ADK's form; or `chunks`: the description of the parts that hold it

In parts and vectors, `of` names the memory, and `beside` its `at`.
A forgotten memory keeps its id and its `at`, and nothing of what was said. Parts (`<id>.c0.…`,
`<id>.w1`) hold what is too large for the memory's document, and are written before it. A vector
(`<id>.v`) is written after it.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Any, Final

from cosmosservice.account.chunks import chunk_count, describe, name_in, pack
from cosmosservice.account.container import Document
from cosmosservice.data_converters import to_json, wire_size
from cosmosservice.errors import InvalidIdError
from cosmosservice.ids import escape

SCHEMA_VERSION: Final = 1

MEMORY: Final = "memory"
FORGOTTEN: Final = "forgotten"
PART: Final = "part"
VECTOR: Final = "vector"

PROBED: Final = "probe"  # an id that no document has

# A search reads the documents that match. Anything larger than this goes into parts.
INLINE_BYTES: Final = 4_096
TOKENS_OF_A_DOCUMENT: Final = 1_000

_LONGEST_NAME: Final = 900  # of an id or an owner; a longer one is replaced by its hash


def text_of(name: str, value: object) -> str:
    """Checks a name that comes from outside."""
    if not isinstance(value, str):
        raise InvalidIdError(f"{name} must be a string, not {type(value).__name__}.")
    try:
        value.encode()
    except UnicodeEncodeError:
        raise InvalidIdError(
            f"{name} contains half of a surrogate pair, which is not text. Nothing was stored."
        ) from None
    return value


def _bounded(text: str) -> str:
    """`escape` never yields an equals sign, so no text equals the hash of another."""
    if len(text) <= _LONGEST_NAME:
        return text
    return "=" + hashlib.sha256(text.encode()).hexdigest()


@dataclass(frozen=True)
class Owner:
    """One user of one app, whose memories share a partition."""

    app_name: str
    user_id: str
    key: str

    @classmethod
    def of(cls, app_name: str, user_id: str) -> Owner:
        if not app_name:
            raise InvalidIdError("The app name is empty. Nothing was stored.")
        parts = text_of("The app name", app_name), text_of("The user id", user_id)
        return cls(app_name, user_id, _bounded(".".join(map(escape, parts))))


def document_id(memory_id: str) -> str:
    return "e." + _bounded(escape(memory_id))


def conversation_of(session_id: str, incarnation: str | None = None) -> str:
    """A short name of a session, or of one incarnation of it, for the numbers of memories in it."""
    named = session_id if incarnation is None else f"{session_id}\0{incarnation}"
    return hashlib.sha256(named.encode(errors="surrogatepass")).hexdigest()[:16]


def at_in(conversation: str, seq: int) -> str:
    return f"{conversation}.{seq:09d}"


def range_of(conversation: str) -> tuple[str, str]:
    """A lower bound of `at` in a conversation, and an exclusive upper bound."""
    return f"{conversation}.", f"{conversation}/"


def parse_at(at: str) -> tuple[str, int]:
    conversation, _, seq = at.rpartition(".")
    return conversation, int(seq)


_RANKED: Final = ("length", "time", "author", "asks", "memory_id")  # what a search needs


def around(at: str, count: int) -> list[str]:
    """`at` of the turns before and after one, in their order."""
    conversation, seq = parse_at(at)
    steps = [*range(-count, 0), *range(1, count + 1)]
    return [at_in(conversation, seq + step) for step in steps if seq + step >= 0]


async def split_large(document: Document, content: Any, tokens: list[str]) -> list[Document]:
    """Puts content and tokens into the document. Returns parts with what does not fit."""
    parts: list[Document] = []
    raw = to_json(content)
    if wire_size(raw) <= INLINE_BYTES:
        document["content"] = content
    else:
        packed = await pack(raw)
        document["chunks"] = described = describe(raw, packed)
        parts += [
            _part(document, _chunk_name(number, described), {"data": data})
            for number, data in enumerate(packed)
        ]
    groups = [
        tokens[at : at + TOKENS_OF_A_DOCUMENT] for at in range(0, len(tokens), TOKENS_OF_A_DOCUMENT)
    ]
    for number, group in enumerate(groups):
        if number == 0:
            document["tokens"] = group
        else:
            fields = {name: document[name] for name in _RANKED}
            parts.append(_part(document, f"w{number}", {"tokens": group, **fields}))
    return parts


def _part(document: Document, name: str, fields: Document) -> Document:
    part = {
        "id": f"{document['id']}.{name}",
        "owner": document["owner"],
        "kind": PART,
        "of": document["id"],
        "beside": document["at"],
        **fields,
    }
    for name in ("session_id", "incarnation", "ttl"):
        if name in document:
            part[name] = document[name]
    return part


def chunk_ids(document: Document) -> list[str]:
    """Raises Damaged if the document does not say which they are."""
    described = document.get("chunks")
    count = chunk_count(described)
    return [f"{document['id']}.{_chunk_name(number, described)}" for number in range(count)]


def _chunk_name(number: int, described: Any) -> str:
    """The hash keeps us from taking the chunks of a failed attempt with other content for ours."""
    return f"c{number}.{name_in(described)[:16]}"


def beside(main_id: str) -> tuple[str, str]:
    """A lower bound of the ids of a memory's parts and vector, and an exclusive upper bound."""
    return f"{main_id}.", f"{main_id}/"


def vector_id(main_id: str) -> str:
    return f"{main_id}.v"


def forgotten(document: Document, moment: str) -> Document:
    """What remains of a memory: no content, and an id that cannot be created again."""
    kept = ("id", "owner", "at", "session_id", "incarnation", "also_in", "incarnations", "complete")
    return {name: document[name] for name in (*kept, "schema_version") if name in document} | {
        "kind": FORGOTTEN,
        "forgotten_at": moment,
    }
