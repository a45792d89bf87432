"""The modelled document store: partitions of versioned documents that keep their past.

A store is a `Frozen` mapping partition -> tuple of snapshots (oldest first); a snapshot maps
id -> (version, document), document None once removed. Writes are decided on the newest snapshot.
"""

from __future__ import annotations

from typing import Any


class Frozen(dict):
    """A dict that does not change once it has been hashed. Keys can be read as attributes."""

    __slots__ = ("_hash",)

    def __hash__(self):
        try:
            return self._hash
        except AttributeError:
            self._hash = hash(frozenset(self.items()))
            return self._hash

    def __getattr__(self, key):
        if key == "_hash" or key not in self:
            raise AttributeError(key)
        return self[key]

    def having(self, **changes) -> Frozen:
        return Frozen({**self, **changes})

    def put(self, key, value) -> Frozen:
        return Frozen({**self, key: value})

    def without(self, key) -> Frozen:
        return Frozen({k: v for k, v in self.items() if k != key})


EMPTY = Frozen()

Response = tuple[Any, ...]


def document(store: Frozen, partition: str, doc_id: Any) -> Any:
    """The newest version of a document; None if there is none."""
    entry = store[partition][-1].get(doc_id)
    return entry[1] if entry else None


def documents(store: Frozen, partition: str) -> list[Any]:
    """The newest versions of all documents of a partition, in the order of their ids."""
    return [d for _, (_, d) in sorted(store[partition][-1].items()) if d is not None]


def _shows(entry: tuple | None, now: int) -> bool:
    """Whether there is a document that has not expired. `ttl` counts from its last write."""
    if entry is None or entry[1] is None:
        return False
    content = entry[1]
    return "ttl" not in content or now < content.ts + content.ttl


def execute(
    store: Frozen, op: tuple, keep_past: bool, now: int = 0, at: int = -1
) -> tuple[Response, Frozen]:
    """Runs one operation. `at` is the snapshot that a read is served from."""
    kind, partition = op[0], op[1]
    if kind == "read":
        entry = store[partition][at].get(op[2])
        return (("ok", *entry) if _shows(entry, now) else ("404",)), store
    if kind in ("query", "scan"):
        entries = [e for _, e in sorted(store[partition][at].items()) if _shows(e, now)]
        return ("ok", tuple(e if kind == "scan" else e[1] for e in entries)), store
    entry = store[partition][-1].get(op[2])
    exists = _shows(entry, now)
    if kind == "create" and exists:
        return ("409",), store
    if kind in ("replace", "delete") and not exists:
        return ("404",), store
    etag = {"replace": op[4:5], "delete": op[3:4]}.get(kind, ())
    if etag and etag[0] is not None and entry[0] != etag[0]:
        return ("412",), store
    content = None if kind == "delete" else op[3]
    if content is not None and "ttl" in content:
        content = content.having(ts=now)
    version = entry[0] + 1 if entry else 1
    snapshot = store[partition][-1].put(op[2], (version, content))
    past = store[partition] if keep_past else ()
    return ("ok", version), store.put(partition, (*past, snapshot))
