"""The invariants of memories and artifacts: X1, a purged session has left nothing; X2, nothing of
a living session is erased; X3, a new session does not show its predecessor's artifacts; X4, a
session that can be used has everything; X5, only a purge erases memories; X6, a
fork has all artifacts."""

from __future__ import annotations

from tests.model.store import EMPTY, Frozen, document, documents

KINDS = ("files", "memories")


class DependantInvariants:
    def __init__(self, store: Frozen, stale: frozenset[str] = frozenset(), late: bool = False):
        self._late = late

    def initial(self):
        return Frozen(saved=EMPTY, purging=False, announced=False)

    def apply(self, ghost, marks, process, op, before, after):
        for mark in marks:
            if mark[0] == "purge":
                ghost = ghost.having(purging=True)
            elif mark[0] == "save_end":
                ghost = ghost.having(saved=ghost.saved.put(mark[1:3], mark[3]))
        if document(after, "session1", "s").status == "purging":
            ghost = ghost.having(announced=True)
        return ghost, self._broken(ghost, after)

    def _broken(self, ghost, store):
        broken = []
        doc = document(store, "session1", "s")
        left = [
            (kind, d.id) for kind in KINDS for d in documents(store, kind) if d.incarnation == "a0"
        ]
        old = [each for each in left if each[1] == "f"]  # acknowledged before everything
        if ghost.announced and doc.status != "purging" and old:
            broken.append(("X1-left", f"purged, but {old} are stored"))
        if doc.status == "active":
            for (kind, name), incarnation in ghost.saved.items():
                found = document(store, kind, name)
                if incarnation == doc.incarnation and (
                    found is None or found.incarnation != incarnation
                ):
                    broken.append(("X2-lost", f"{name} of {kind}, saved in {incarnation}"))
        if doc.status == "active" and doc.incarnation != "a0" and ("files", "f") in old:
            broken.append(("X3-seen", f"{doc.incarnation} shows a file of its predecessor"))
        usable = doc.incarnation == "a0" and doc.status in ("active", "deleted")
        if usable and len(old) < len(KINDS):
            broken.append(("X4-incomplete", f"a0 is {doc.status}, and has only {old}"))
        fork = document(store, "session1", "fork")
        forked = fork is not None and (fork.status, fork.source) == ("active", "a0")
        if forked and document(store, "copies", "f") is None:
            broken.append(("X6-fork", "the fork has no copy of the file"))
        if not ghost.purging and ("memories", "f") not in old:
            broken.append(("X5-memory", "a memory is gone, and nobody purged"))
        return broken

    def at_rest(self, ghost, store):
        broken = self._broken(ghost, store)
        left = [
            (kind, d.id) for kind in KINDS for d in documents(store, kind) if d.incarnation == "a0"
        ]
        if self._late and left:
            broken.append(("X1-left", f"all is quiet, but {left} are stored"))
        return broken
