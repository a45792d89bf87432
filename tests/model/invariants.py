"""What must hold: ghost variables that follow the processes, and the invariants over them.

The numbers follow the guarantees G1 to G10; I11 is the consistent snapshot of G4, I12 the life of a
session document, I13 the completeness of a purge. An incarnation has *lives*: life 0 until it
is deleted, life 1 after the first restore, and so on.
"""

from __future__ import annotations

from tests.model.protocol import own_attempt
from tests.model.steps import fold, tombstone_in_force
from tests.model.store import EMPTY, Frozen, document, documents

TRANSITIONS = {
    ("active", "active"),
    ("active", "deleted"),
    ("deleted", "restoring"),
    ("restoring", "active"),
    ("deleted", "purging"),
    ("purging", "purged"),
    # What it replaced is erased: only the mark that says so goes.
    ("deleted", "deleted"),
    ("restoring", "restoring"),
}


def history(store: Frozen) -> Frozen:
    """The ghost of a store in which everything stored was acknowledged long ago."""
    created, dead, lives, seen = {}, {}, {}, {}
    for partition in store:
        if partition.startswith("log"):
            records = documents(store, partition)
            for rec in records:
                seen.setdefault(rec.incarnation, rec.seq)
                if rec.kind in ("event", "stub"):
                    created[rec.event_id] = (rec.incarnation, rec.seq, rec.session)
                elif rec.kind == "tombstone":
                    dead[rec.incarnation] = rec.seq
                else:
                    dead.pop(rec.incarnation)
                    lives[rec.incarnation] = lives.get(rec.incarnation, 0) + 1
        elif partition.startswith("session"):
            doc = document(store, partition, "s")
            if doc is not None:
                seen.setdefault(doc.incarnation, doc.first_seq)
    return Frozen(
        returned=frozenset(created),
        rejected=frozenset(),
        started=EMPTY,  # event -> what had returned before
        deleted_before=EMPTY,  # event -> lives whose delete had returned before
        dead=Frozen(dead),  # incarnation -> tombstone in force
        lives=Frozen(lives),  # incarnation -> how often it was restored
        deletes_returned=frozenset(),  # (incarnation, life)
        past=EMPTY,  # shared key -> events it showed before
        created=Frozen(created),  # event -> (incarnation, seq, session delta)
        touches=EMPTY,  # event -> shared keys it touches
        running=EMPTY,  # (process, operation) -> what it knew when it began
        incarnations=Frozen(seen),
        won=EMPTY,  # (incarnation, marker) -> event appended from it
    )


def without_key(mapping: Frozen, key) -> Frozen:
    return mapping.without(key) if key in mapping else mapping


class Invariants:
    def __init__(self, store: Frozen, stale: frozenset[str] = frozenset()):
        self._history, self._stale = history(store), stale

    def initial(self) -> Frozen:
        return self._history

    def apply(self, ghost, marks, process, op, before, after):
        """The ghost after one step, and the invariants this step broke."""
        if not marks and before is after:
            return ghost, ()
        broken: list[tuple[str, str]] = []
        for mark in marks:
            starting = getattr(self, "_start_" + mark[0], None)
            if starting:
                ghost = starting(ghost, process, before, *mark[1:])
        if before is not after:
            kind = op[1].rstrip("0123456789")
            ghost = getattr(self, "_changed_" + kind, self._changed_shared)(
                ghost, op, before, after, broken
            )
        for mark in marks:
            ending = getattr(self, "_" + mark[0], None)
            if ending and mark[0].endswith("_end"):
                ghost = ending(ghost, process, after, broken, *mark[1:])
        return ghost, broken

    @staticmethod
    def older(ghost, a, b) -> bool:
        """Whether a is older than b: by real time, by its place in a log, or by a chain of both."""
        if a == b:
            return False
        if a is None:
            return True
        seen, waiting = set(), [b]
        while waiting:
            x = waiting.pop()
            earlier = set(ghost.started.get(x, ()))
            place = ghost.created.get(x)
            if place:
                earlier |= {
                    y for y, p in ghost.created.items() if p[0] == place[0] and p[1] < place[1]
                }
            if a in earlier:
                return True
            waiting += earlier - seen
            seen |= earlier
        return False

    # -------------------------------------------------------------- an operation begins

    @staticmethod
    def _begin(ghost, process, operation, known):
        if (process, operation) in ghost.running:
            return ghost
        return ghost.having(running=ghost.running.put((process, operation), known))

    @staticmethod
    def _live(ghost, store, sid):
        """(incarnation, life) of the session if the log says that it lives."""
        doc = document(store, "session" + sid, "s")
        if doc is None or doc.incarnation in ghost.dead:
            return None
        return doc.incarnation, ghost.lives.get(doc.incarnation, 0)

    def _start_append(self, ghost, process, store, sid, event_id, incarnation, n, keys):
        if event_id in ghost.started:
            return ghost
        return ghost.having(
            started=ghost.started.put(event_id, ghost.returned),
            deleted_before=ghost.deleted_before.put(event_id, ghost.deletes_returned),
            touches=ghost.touches.put(event_id, keys) if keys else ghost.touches,
        )

    def _start_get(self, ghost, process, store, sid):
        known = (ghost.returned, ghost.deletes_returned, self._live(ghost, store, sid))
        return self._begin(ghost, process, "get", known)

    def _start_delete(self, ghost, process, store, sid):
        doc = document(store, "session" + sid, "s")
        target = None
        if doc and doc.status in ("active", "restoring"):
            life = ghost.lives.get(doc.incarnation, 0)
            announced = doc.status == "restoring" and doc.incarnation in ghost.dead
            target = (doc.incarnation, life + announced)
        return self._begin(ghost, process, "delete", target)

    def _start_create(self, ghost, process, store, sid, incarnation, keys):
        known = (self._live(ghost, store, sid) is None, ghost.incarnations, ghost.lives)
        ghost = self._begin(ghost, process, "create", known)
        if keys:
            event_id = "i:" + incarnation
            ghost = ghost.having(
                started=ghost.started.put(event_id, ghost.returned),
                touches=ghost.touches.put(event_id, keys),
            )
        return ghost

    def _start_restore(self, ghost, process, store, sid):
        doc = document(store, "session" + sid, "s")
        dead = doc is not None and doc.incarnation in ghost.dead
        known = (doc.incarnation, ghost.lives) if dead else None
        return self._begin(ghost, process, "restore", known)

    def _start_purge(self, ghost, process, store, sid):
        doc = document(store, "session" + sid, "s")
        bound = doc.revision if doc is not None and doc.status in ("deleted", "purging") else 0
        return self._begin(ghost, process, "purge", bound)

    def _start_purge_replaced(self, ghost, process, store, sid):
        doc = document(store, "session" + sid, "s")
        bound = doc.first_seq - 1 if doc is not None else 0
        return self._begin(ghost, process, "purge_replaced", bound)

    # -------------------------------------------------------------- a document changed

    def _changed_log(self, ghost, op, before, after, broken):
        sid = op[1].removeprefix("log")
        doc = document(after, "session" + sid, "s")
        old, new = document(before, op[1], op[2]), document(after, op[1], op[2])
        if old is not None:
            if new is not None and new.kind == "event":
                if new.event_id != old.event_id:
                    broken.append(("I1-lost", f"{old.event_id} overwritten by {new.event_id}"))
            elif old.incarnation not in ghost.dead:
                broken.append(("I1-lost", f"{old.event_id} erased from a live session"))
            return ghost
        inc = new.incarnation
        if new.kind == "event":
            if new.event_id in ghost.created:
                broken.append(("I1-duplicate", f"{new.event_id} is stored a second time"))
            if new.event_id in ghost.rejected:
                broken.append(("I5-trace", f"rejected {new.event_id} is in the log"))
            if inc in ghost.dead:
                broken.append(
                    ("I6-append-after-tombstone", f"{new.event_id} at {new.seq} of dead {inc}")
                )
            elif doc is None or doc.incarnation != inc:
                broken.append(
                    ("I7-append-to-nobody", f"{new.event_id} stored in {inc}, which nobody shows")
                )
            place = (inc, new.seq, new.session)
            return ghost.having(created=ghost.created.put(new.event_id, place))
        if new.kind == "tombstone":
            if sum(r.event_id == new.event_id for r in documents(after, op[1])) > 1:
                broken.append(("I9-delete-twice", f"{new.event_id} put a second tombstone"))
            return ghost.having(dead=ghost.dead.put(inc, new.seq))
        erased = [r.seq for r in documents(after, op[1]) if r.kind == "stub"]
        erased = [s for s in erased if doc is not None and s >= doc.first_seq]
        if erased and doc.incarnation == inc:
            broken.append(("I1-lost", f"{inc} restored although {erased} are erased"))
        return ghost.having(
            dead=without_key(ghost.dead, inc),
            lives=ghost.lives.put(inc, ghost.lives.get(inc, 0) + 1),
        )

    def _changed_session(self, ghost, op, before, after, broken):
        log = "log" + op[1].removeprefix("session")
        old, new = document(before, op[1], "s"), document(after, op[1], "s")
        if old is None or old.incarnation != new.incarnation:
            ghost = self._incarnated(ghost, log, old, new, after, broken)
        else:
            if (old.status, new.status) not in TRANSITIONS:
                broken.append(("I12-transition", f"{old.status} -> {new.status}"))
            if new.revision < old.revision or new.first_seq != old.first_seq:
                broken.append(("I3-revision-back", f"{old.revision} -> {new.revision}"))
        if new.status == "purged":
            left = [r.event_id for r in documents(after, log) if self._unerased(r, new.revision)]
            if left:
                broken.append(("I13-unerased", f"purged, but {left} are stored"))
        bound = new.get("replaced", new.first_seq) - 1
        left = [r.event_id for r in documents(after, log) if self._unerased(r, bound)]
        if left:
            broken.append(("I13-unerased", f"nothing says that {left} of predecessors are stored"))
        if new.status in ("active", "deleted", "restoring"):
            span = range(new.first_seq, new.revision + 1)
            records = {r.seq: r for r in documents(after, log) if r.incarnation == new.incarnation}
            records = [records[s] for s in span if s in records and records[s].kind != "stub"]
            state = fold(EMPTY, records)
            if len(records) != len(span):
                broken.append(("I3-fold", f"revision {new.revision}, but records are missing"))
            elif state != new.state:
                broken.append(("I3-fold", f"state {dict(new.state)} != fold {dict(state)}"))
            elif (tombstone_in_force(records) is None) != (new.status == "active"):
                broken.append(("I3-status", f"{new.status} at revision {new.revision}"))
        return ghost

    @staticmethod
    def _unerased(rec, bound):
        return rec.kind == "event" and rec.seq <= bound

    def _incarnated(self, ghost, log, old, new, after, broken):
        if old is not None and old.incarnation not in ghost.dead:
            broken.append(("I7-clobber", f"live {old.incarnation} became {new.incarnation}"))
        if new.incarnation in ghost.incarnations:
            broken.append(("I9-create-twice", new.incarnation))
        if old is not None and old.status == "purging":
            left = [r.event_id for r in documents(after, log) if self._unerased(r, old.revision)]
            if left:
                broken.append(("I13-unerased", f"purge of {left} forgotten by a new incarnation"))
        if old is not None and new.first_seq <= old.revision:
            broken.append(("I7-range", f"{new.incarnation} begins at {new.first_seq} again"))
        event_id = "i:" + new.incarnation.rstrip("'")
        if event_id in ghost.touches:
            place = (new.incarnation, new.first_seq - 1, EMPTY)
            ghost = ghost.having(created=ghost.created.put(event_id, place))
        return ghost.having(incarnations=ghost.incarnations.put(new.incarnation, new.first_seq))

    def _changed_body(self, ghost, op, before, after, broken):
        return ghost

    def _changed_shared(self, ghost, op, before, after, broken):
        scope = op[1]
        old, new = document(before, scope, "d"), document(after, scope, "d")
        for key in old.state if old else ():
            if key not in new.state:
                broken.append(("I8-lost-key", f"{scope}:{key} vanished"))
        for key, (_, writer) in new.stamps.items():
            earlier = old.stamps[key][1] if old and key in old.stamps else None
            if earlier == writer:
                continue
            past = ghost.past.get((scope, key), frozenset())
            if writer in past:
                broken.append(("I8-applied-twice", f"{scope}:{key}: {writer} undid {earlier}"))
            if earlier:
                past |= {earlier}
                ghost = ghost.having(past=ghost.past.put((scope, key), past))
            newer = sorted(x for x in past if self.older(ghost, writer, x))
            if newer:
                broken.append(
                    ("I8-older-over-newer", f"{scope}:{key}: {writer} overwrites newer {newer[0]}")
                )
            if writer in ghost.rejected:
                broken.append(("I5-trace", f"rejected {writer} reached {scope} state"))
        return ghost

    # -------------------------------------------------------------- an operation returned

    @staticmethod
    def _known(ghost, process, operation):
        known = ghost.running[(process, operation)]
        return known, ghost.having(running=ghost.running.without((process, operation)))

    def _append_end(self, ghost, process, store, broken, sid, event_id, inc, n, outcome, rebase):
        records = documents(store, "log" + sid)
        stored = any(r.event_id == event_id and r.kind == "event" for r in records)
        if outcome == "ok":
            if not stored and inc not in ghost.dead:
                broken.append(("I1-lost", f"{event_id} returned, but is not in the log"))
            place = ghost.created.get(event_id, (inc, n + 1))[1]
            if (inc, self._life_at(records, inc, place)) in ghost.deleted_before.get(event_id, ()):
                broken.append(("I6-append-after-delete", f"{event_id} began after the delete"))
            crossed = [
                r.seq
                for r in records
                if r.incarnation == inc and r.kind == "tombstone" and n < r.seq < place
            ]
            if crossed:
                broken.append(
                    ("I6-append-across-delete", f"{event_id} from marker {n} behind {crossed}")
                )
            if not rebase:
                winner = ghost.won.get((inc, n), event_id)
                if winner != event_id:
                    broken.append(("I2-two-winners", f"{winner} and {event_id} from marker {n}"))
                ghost = ghost.having(won=ghost.won.put((inc, n), event_id))
            return ghost.having(returned=ghost.returned | {event_id})
        if event_id not in ghost.created:
            ghost = ghost.having(rejected=ghost.rejected | {event_id})
        elif event_id not in ghost.returned:
            broken.append(("I9-false-reject", f"{event_id} reported {outcome}, but was stored"))
        live = self._live(ghost, store, sid)
        fresh = process not in self._stale
        if outcome == "notfound" and live and live[0] == inc and (fresh or live[1] == 0):
            broken.append(("I6-false-notfound", f"{event_id} of the live {inc}"))
        return ghost

    @staticmethod
    def _life_at(records, incarnation, seq):
        return sum(
            r.kind == "restored" and r.incarnation == incarnation and r.seq <= seq for r in records
        )

    def _get_end(self, ghost, process, store, broken, sid, shown):
        (returned, deletes_returned, live), ghost = self._known(ghost, process, "get")
        fresh = process not in self._stale
        if shown is None:
            if fresh and live is not None and self._live(ghost, store, sid) == live:
                broken.append(("I4-none", f"get is None for the live {live}"))
            return ghost
        inc = shown.incarnation
        life = (inc, self._life_at(documents(store, "log" + sid), inc, shown.n))
        if fresh and life in deletes_returned:
            broken.append(("I6-get-after-delete", f"get shows {inc} after its delete returned"))
        if any(owner != inc for owner in shown.owners):
            broken.append(("I7-get", f"{inc} shows records of {set(shown.owners)}"))
        places = {e: p for e, p in ghost.created.items() if p[0] == inc and e[:2] != "i:"}
        expected = sorted((p[1], e) for e, p in places.items() if p[1] <= shown.n)
        state = {}
        for _, event_id in expected:
            state.update(places[event_id][2])
        expected = tuple(e for _, e in expected)
        if expected != shown.event_ids:
            broken.append(
                ("I11-torn-events", f"marker {shown.n} shows {shown.event_ids}, not {expected}")
            )
        if state != shown.state:
            broken.append(
                ("I11-torn-state", f"marker {shown.n} shows {dict(shown.state)}, not {state}")
            )
        if fresh:
            for event_id in sorted(returned & set(places) - set(shown.event_ids)):
                broken.append(("I4-event", f"{event_id} returned before, get does not show it"))
        for event_id in sorted(shown.event_ids + (tuple(returned) if fresh else ())):
            for key in ghost.touches.get(event_id, ()):
                if self.older(ghost, shown.shown.get(key), event_id):
                    name = "I11-torn-delta" if event_id in shown.event_ids else "I4-delta"
                    broken.append((name, f"get shows {key}={shown.shown.get(key)}, not {event_id}"))
        return ghost

    def _delete_end(self, ghost, process, store, broken, sid):
        target, ghost = self._known(ghost, process, "delete")
        if target is None:
            return ghost
        doc = document(store, "session" + sid, "s")
        if doc and doc.status == "active" and doc.incarnation == target[0]:
            life = self._life_at(documents(store, "log" + sid), target[0], doc.revision)
            if life == target[1]:
                broken.append(("I6-delete-noop", f"delete returned, {target} is active"))
        return ghost.having(deletes_returned=ghost.deletes_returned | {target})

    def _create_end(self, ghost, process, store, broken, sid, incarnation, outcome):
        (dead, incarnations, lives), ghost = self._known(ghost, process, "create")
        if outcome == "exists":
            doc = document(store, "session" + sid, "s")
            if doc and own_attempt(doc, incarnation):
                broken.append(("I9-create-false-exists", f"own create of {incarnation}"))
            elif dead and (ghost.incarnations, ghost.lives) == (incarnations, lives):
                broken.append(("I6-half-deleted", "AlreadyExists although the session is gone"))
        elif not any(i.rstrip("'") == incarnation for i in ghost.incarnations):
            broken.append(("I9-create-lost", incarnation))
        elif "i:" + incarnation in ghost.touches:
            ghost = ghost.having(returned=ghost.returned | {"i:" + incarnation})
        return ghost

    def _restore_end(self, ghost, process, store, broken, sid, outcome):
        known, ghost = self._known(ghost, process, "restore")
        if known is None:
            return ghost
        inc, lives = known
        again = ghost.lives.get(inc, 0) > lives.get(inc, 0)
        doc = document(store, "session" + sid, "s")
        same = doc is not None and doc.incarnation == inc
        if same and outcome in ("restored", "active") and not again:
            broken.append(("I14-restore-noop", f"restore says {outcome}, {inc} is dead"))
        if same and outcome == "notfound" and doc.status in ("active", "deleted", "restoring"):
            broken.append(("I14-restore-notfound", f"{inc} is {doc.status}"))
        return ghost

    def _purge_end(self, ghost, process, store, broken, sid, outcome):
        bound, ghost = self._known(ghost, process, "purge")
        left = [r.event_id for r in documents(store, "log" + sid) if self._unerased(r, bound)]
        if left and outcome == "done":
            broken.append(("I13-unerased", f"purge returned, but {left} are stored"))
        return ghost

    def _purge_replaced_end(self, ghost, process, store, broken, sid):
        bound, ghost = self._known(ghost, process, "purge_replaced")
        left = [r.event_id for r in documents(store, "log" + sid) if self._unerased(r, bound)]
        if left and process not in self._stale:
            broken.append(("I13-unerased", f"predecessors were purged, but {left} are stored"))
        return ghost

    # -------------------------------------------------------------- all is quiet

    def at_rest(self, ghost, store):
        """After everybody ended, repairs included: no committed delta is lost."""
        broken = []
        for event_id in ghost.created:
            for scope, key in ghost.touches.get(event_id, ()):
                doc = document(store, scope, "d")
                shown = doc.stamps[key][1] if doc and key in doc.stamps else None
                if self.older(ghost, shown, event_id):
                    broken.append(("I8-delta-lost", f"{event_id} committed, {scope}:{key}={shown}"))
        return broken
