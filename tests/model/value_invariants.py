"""The invariants of large values: V1, a name leads to a value; V2, what was erased is gone; V3, no
acknowledged write is lost; V4, what a reader sees."""

from __future__ import annotations

from tests.model.store import EMPTY, Frozen, document, documents
from tests.model.values import D, names, value_id


def values_in(store):
    return [v for v in documents(store, "kept") if v.get("kind") == "value"]


class ValueInvariants:
    """The large values of a user's or an app's state."""

    def __init__(self, store: Frozen, stale: frozenset[str] = frozenset(), crash=()):
        self._stale, self._crash = stale, crash

    def initial(self):
        return Frozen(
            texts=EMPTY,  # writer -> text
            stamps=EMPTY,  # writer -> (key, stamp)
            returned=frozenset(),
            running=EMPTY,  # process -> what had returned when it began
            erased=0,
        )

    def apply(self, ghost, marks, process, op, before, after):
        broken = []
        for mark in marks:
            if mark[0] == "write":
                ghost = ghost.having(texts=ghost.texts.put(mark[1], mark[2]))
            elif mark[0] == "stamped":
                ghost = ghost.having(stamps=ghost.stamps.put(mark[1], mark[2:]))
            elif mark[0] in ("erase", "read") and process not in ghost.running:
                known = (ghost.returned, ghost.erased)
                ghost = ghost.having(running=ghost.running.put(process, known))
        if before is not after:
            self._dangling(after, broken)
        for mark in marks:
            if mark[0] == "write_end":
                ghost = ghost.having(returned=ghost.returned | {mark[1]})
            elif mark[0] == "erase_end":
                returned, _ = ghost.running[process]
                left = [v.text for v in self._erased(ghost, after, returned)]
                if left:
                    broken.append(("V2-unerased", f"erase returned, but {left} are stored"))
                erased = max(ghost.erased, mark[1])
                ghost = ghost.having(running=ghost.running.without(process), erased=erased)
            elif mark[0] == "read_end":
                self._read(ghost, process, mark[1], mark[2], broken)
                ghost = ghost.having(running=ghost.running.without(process))
        return ghost, broken

    @staticmethod
    def _dangling(store, broken):
        doc = document(store, "kept", D)
        gone = [r for r in names(doc) if document(store, "kept", value_id(r)) is None]
        if gone:
            broken.append(("V1-dangling", f"{gone} are named, but gone"))

    @staticmethod
    def _erased(ghost, store, writers):
        """Values that only these writers wrote and that the document does not name."""
        doc = document(store, "kept", D)
        kept = {ghost.texts[w] for w in ghost.texts if w not in writers}
        texts = {ghost.texts[w] for w in writers} - kept
        found = [v for v in values_in(store) if v.text in texts]
        return [v for v in found if (v.generation, v.name) not in names(doc)]

    def _read(self, ghost, process, shown, doc, broken):
        if shown == "missing":
            broken.append(("V4-error", "a value is missing"))
            return
        if dict(shown) != {k: e.text for k, e in doc["keys"].items()}:
            broken.append(("V4-torn", f"{shown} is not what {doc} names"))
        if process in self._stale:
            return
        returned, erased = ghost.running[process]
        if doc.erased < erased:
            broken.append(("V2-unerased", f"a state of {doc.erased}, erased at {erased}"))
        self._lost(ghost, doc, returned, broken)

    @staticmethod
    def _lost(ghost, doc, returned, broken):
        for writer in returned:
            key, stamp = ghost.stamps[writer]
            entry = doc["keys"].get(key)
            if stamp > doc.erased and (entry is None or entry.stamp < stamp):
                broken.append(("V3-lost", f"{key} of {writer}"))

    def at_rest(self, ghost, store):
        broken = []
        doc = document(store, "kept", D) or Frozen(erased=0, keys=EMPTY)
        self._dangling(store, broken)
        self._lost(ghost, doc, ghost.returned, broken)
        old = [v for v in values_in(store) if v.generation < doc.erased]
        left = [v.name for v in old if v.name[0] not in self._crash]
        if left:
            broken.append(("V2-unerased", f"all is quiet, but {left} are stored"))
        return broken


class SessionValueInvariants(ValueInvariants):
    """The large values of a session: its document names values of its incarnation."""

    def initial(self):
        return Frozen(running=EMPTY)

    def apply(self, ghost, marks, process, op, before, after):
        broken = []
        for mark in marks:
            if mark[0] == "purge" and process not in ghost.running:
                doc = document(before, "kept", D)
                dead = doc.before
                if doc.status in ("deleted", "purging", "purged"):
                    dead += (doc.incarnation,)
                # Uploads under way are not included: they are checked when all processes have
                # ended.
                known = [v for v in values_in(before) if v.generation in dead and v.name == "w"]
                ghost = ghost.having(running=ghost.running.put(process, frozenset(known)))
        if before is not after:
            self._check(before, after, broken)
        for mark in marks:
            if mark[0] == "error":
                broken.append(("V4-error", "a value is missing"))
            elif mark[0] == "purge_end":
                left = set(values_in(after)) & ghost.running[process]
                left = [v.name for v in left if v.generation not in self._alive(after)]
                if left:
                    broken.append(("V2-unerased", f"purge returned, but {left} are stored"))
        return ghost, broken

    @staticmethod
    def _alive(store):
        """The incarnations whose values may exist: the document's own, and those that it says it
        replaced."""
        doc = document(store, "kept", D)
        if doc is None or doc.status in ("purging", "purged"):
            return ()
        return (doc.incarnation, *doc.before)

    def _check(self, before, after, broken):
        old, doc = document(before, "kept", D), document(after, "kept", D)
        if doc is not None and doc.status not in ("purging", "purged"):
            self._dangling(after, broken)
            records = [r for r in documents(after, "log1") if r.incarnation == doc.incarnation]
            texts = [r.text for r in records if r.seq == doc.revision]
            if texts and doc["keys"]["k"].text != texts[-1]:
                broken.append(("V3-lost", f"{doc['keys']['k'].text} at {doc.revision}"))
        if old is not None and old.incarnation == doc.incarnation and old.revision > doc.revision:
            broken.append(("V3-lost", "the revision goes back"))

    def at_rest(self, ghost, store):
        broken = []
        left = [v for v in values_in(store) if v.generation not in self._alive(store)]
        left = [v.name for v in left if v.generation[0] not in self._crash]
        if left:
            broken.append(("V2-unerased", f"all is quiet, but {left} are stored"))
        return broken
