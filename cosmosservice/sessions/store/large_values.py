"""State of any size: large values live in documents of their own, beside the one that names them.

A state document holds small values itself (`state`) and references to the large ones (`large`). A
large value is written before the document that names it, under a unique name, and never changed.
So an unchanged value is neither written nor read again. It is removed once a newer version of the
document no longer names it.
"""

from __future__ import annotations

import contextlib
import logging
import secrets
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

from cosmosservice.account import chunks
from cosmosservice.account.cache import Cache
from cosmosservice.account.chunks import (
    Damaged,
    checksum,
    chunk_count,
    name_in,
)
from cosmosservice.account.container import Container, Document
from cosmosservice.account.failures import NotFound
from cosmosservice.data_converters import from_json, to_json, wire_size
from cosmosservice.errors import StorageError
from cosmosservice.hosting.concurrency import together
from cosmosservice.sessions.store.documents import value_document
from cosmosservice.sessions.store.keys import StateKey, ValuesKey
from cosmosservice.sessions.store.queries import IDS_WITH_TIMES, VALUES_OF_SESSIONS
from cosmosservice.sessions.store.state import NO_STATE, State

logger = logging.getLogger("cosmosservice")

# A value with more bytes of JSON is large.
INLINE: Final = 32_000
# If the small values together have more, the largest of them count as large.
TOGETHER: Final = 1_000_000
# A value with less is never worth a document of its own.
LEAST: Final = 400

_LOST: Final = object()  # stands for a value that cannot be read

_AT_ONCE = 8


class DamagedValueError(StorageError):
    """A large value exists, but cannot be read."""

    def __init__(self, key: ValuesKey, reason: str) -> None:
        super().__init__(
            f"A large value of the state in document {key.document_id!r} is damaged:"
            f" {reason}. Write the key again."
        )
        self.reason = reason


class _Value:
    """A large value in the cache, as immutable text."""

    __slots__ = ("raw",)

    def __init__(self, raw: bytes) -> None:
        self.raw = raw

    @property
    def size(self) -> int:
        return len(self.raw) + 200


class LargeValues:
    """Stores, loads and removes large values, with the cache of its event loop."""

    def __init__(self, container: Container, cache: Cache) -> None:
        self.container = container
        self.cache = cache

    async def stored(
        self,
        key: ValuesKey,
        generation: str,
        state: State,
        known: State = NO_STATE,
        uploads: list[Document] | None = None,
        ttl: int | None = None,
    ) -> State:
        """The state with its large values stored.

        A value that the document has now (`known`) is not stored again. What is stored is added
        to `uploads`, for `discard`. Nothing that an earlier attempt stored is used again: if that
        attempt succeeded and its answer was lost, others may have removed it since.
        """
        found = _to_move(state.inline)
        if not found:
            return state
        stored = {
            str(ref.get("sha256")): ref for ref in known.large.values() if isinstance(ref, dict)
        }
        refs = {}
        for name, raw in found.items():
            sha256 = checksum(raw)
            if sha256 not in stored:
                stored[sha256] = await self._store(key, generation, raw, ttl)
                if uploads is not None:
                    uploads.append(stored[sha256])
            refs[name] = stored[sha256]
        inline = {name: value for name, value in state.inline.items() if name not in found}
        return State(inline, state.large | refs)

    async def _store(
        self, key: ValuesKey, generation: str, raw: bytes, ttl: int | None
    ) -> Document:
        value = secrets.token_hex(8)

        def made(number: int, data: str) -> Document:
            return value_document(key, generation=generation, value=value, number=number, data=data)

        described = await chunks.upload(self.container, raw, made, ttl)
        ref = {"generation": generation, "value": value} | described
        self.cache.put(ref["sha256"], _Value(raw))
        return ref

    async def whole(self, key: ValuesKey, state: State, *, without_lost: bool = False) -> Document:
        """All values. Raises NotFound if one is not found: the state may not be the newest.
        Use `without_lost` for the newest state: values that are damaged, or gone as proved by a
        probe, are logged and left out."""
        if not state.large:
            return state.inline
        names = list(state.large)
        load = self._load_or_lose if without_lost else self._load
        loaded = await together(*(load(key, state.large[name]) for name in names))
        found = {
            name: value for name, value in zip(names, loaded, strict=True) if value is not _LOST
        }
        return state.inline | found

    async def _load_or_lose(self, key: ValuesKey, ref: Any) -> Any:
        try:
            return await self._load(key, ref)
        except DamagedValueError as problem:
            reason = problem.reason
        except NotFound:
            if await chunks.exist(self.container, _ids(key, ref), key.user_id):
                raise  # it was lag
            reason = "a part of it is missing"
        logger.error(
            "A large value of a state cannot be read: %s. Its documents are %s…. The state is read"
            " without it; write the key again.",
            reason,
            key.value_range[0],
        )
        return _LOST

    async def _load(self, key: ValuesKey, ref: Any) -> Any:
        known: _Value | None = self.cache.get(ref.get("sha256")) if isinstance(ref, dict) else None
        if known is None:
            try:
                ids = _ids(key, ref)
                known = _Value(await chunks.load(self.container, ids, key.user_id, ref))
            except Damaged as problem:
                raise DamagedValueError(key, str(problem)) from None
            self.cache.put(ref["sha256"], known)
        return from_json(known.raw)

    async def discard(
        self, key: ValuesKey, now: State, before: State = NO_STATE, uploads: Sequence[Any] = ()
    ) -> None:
        """Removes the values that the previous version named or the caller stored, and that the
        newest version (`now`) does not name. Any that are left go with the document."""
        kept = {ref.get("value") for ref in now.large.values() if isinstance(ref, dict)}
        for ref in [*before.large.values(), *uploads]:
            if isinstance(ref, dict) and ref.get("value") not in kept:
                try:
                    await self._remove(_ids(key, ref), key)
                except Exception as problem:
                    logger.debug("An unused value stays in the store: %s", type(problem).__name__)

    async def erase(
        self, key: ValuesKey, is_dead: Callable[[str], bool], *, before: float = 0.0
    ) -> int:
        """Removes the values of dead generations, whichever version of the document names them,
        and all other values that were written before a time. Returns the number of documents."""
        first, last = key.value_range
        found = await self.container.query(
            IDS_WITH_TIMES, {"first": first, "last": last}, key.user_id
        )
        gone = [
            str(each["id"])
            for each in found
            if is_dead(key.generation_of(str(each["id"]))) or each.get("_ts", before) < before
        ]
        await self._remove(gone, key)
        return len(gone)

    async def erase_unowned(self, key: StateKey, before: float) -> int:
        """Removes values of the user's sessions that were written before a time and whose session
        has no document, because its creator died. Returns the number of documents."""
        first, last, owners = key.values_of_sessions
        found = await self.container.query(
            VALUES_OF_SESSIONS, {"first": first, "last": last, "owners": owners}, key.user_id
        )
        old = [each for each in found if each.get("_ts", before) < before]
        unowned = set()
        for owner in {str(each["owner"]) for each in old}:
            if not await self.container.probe(owner, key.user_id):
                unowned.add(owner)
        gone = [str(each["id"]) for each in old if each["owner"] in unowned]
        await self._remove(gone, key)
        return len(gone)

    async def _remove(self, ids: Iterable[str], key: ValuesKey) -> None:
        async def remove(each: str) -> None:
            with contextlib.suppress(NotFound):
                await self.container.delete(each, key.user_id)

        todo = list(ids)
        for start in range(0, len(todo), _AT_ONCE):
            await together(*map(remove, todo[start : start + _AT_ONCE]))


def least_size(values: Mapping[str, Any]) -> int:
    """The fewest bytes that these values take in their document, however many are moved out."""
    whole = _bytes(dict(values))
    if whole <= INLINE:
        return whole
    return sum(len(name) + min(_bytes(value), LEAST) + 8 for name, value in values.items())


def _to_move(inline: Document) -> dict[str, bytes]:
    """The texts of the values that must not stay in the document."""
    whole = _bytes(inline)
    if whole <= INLINE:
        return {}
    texts = {name: to_json(value) for name, value in inline.items()}
    moved = {name: raw for name, raw in texts.items() if wire_size(raw) > INLINE}
    whole -= sum(map(wire_size, moved.values()))
    if whole > TOGETHER:
        rest = sorted(texts.keys() - moved.keys(), key=lambda name: (-len(texts[name]), name))
        for name in rest:
            size = wire_size(texts[name])
            if whole <= TOGETHER or size < LEAST:
                break
            moved[name] = texts[name]
            whole -= size
    return moved


def _bytes(value: Any) -> int:
    return wire_size(to_json(value)) if value else 0


def _ids(key: ValuesKey, ref: Any) -> list[str]:
    count = chunk_count(ref)
    generation, value = name_in(ref, "generation"), name_in(ref, "value")
    return [key.value_id(generation, value, number) for number in range(count)]
