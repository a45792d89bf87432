"""The invariants over the ghost variables.

The numbers follow the guarantees G1 to G10. The others are: I11, the consistent snapshot of G4;
I12, the life of a session document; I13, a purge is complete; I14, what restore reports; I15,
erased state stays erased; I16, reading the whole log is complete; I17, a reported hole is one; I18,
a fork is whole, and is what was reported.
"""

from __future__ import annotations

from tests.model.forks import own_attempt
from tests.model.ghost import Ghost, content_of, without_key
from tests.model.steps import fold, tombstone_in_force
from tests.model.store import EMPTY, document, documents

TRANSITIONS = {
    ("active", "active"),
    ("active", "deleted"),
    ("deleted", "restoring"),
    ("restoring", "active"),
    ("restoring", "deleted"),  # restored and deleted again before any process wrote the document
    ("deleted", "purging"),
    ("purging", "purged"),
    ("forking", "active"),
    ("forking", "purging"),
    # What it replaced is erased: only the mark of that is removed.
    ("deleted", "deleted"),
    ("restoring", "restoring"),
}


class Invariants(Ghost):
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
        if new.kind == "lost":
            return ghost.having(lost=ghost.lost - {(inc, new.seq)})
        if new.kind == "event":
            if new.event_id in ghost.created:
                broken.append(("I1-duplicate", f"{new.event_id} is stored a second time"))
            if new.event_id in ghost.rejected:
                broken.append(("I5-trace", f"rejected {new.event_id} is in the log"))
            if inc in ghost.dead and new.event_id[:2] == "f:":
                pass  # copied into a fork that was ended: it must not stay, see `at_rest`
            elif inc in ghost.dead:
                broken.append(
                    ("I6-append-after-tombstone", f"{new.event_id} at {new.seq} of dead {inc}")
                )
            elif doc is None or doc.incarnation != inc:
                broken.append(
                    ("I7-append-to-nobody", f"{new.event_id} stored in {inc}, which nobody shows")
                )
            created = (inc, new.seq, new.session)
            return ghost.having(created=ghost.created.put(new.event_id, created))
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
            restores=ghost.restores.put(inc, ghost.restores.get(inc, 0) + 1),
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
            if old.status == "forking":
                ghost = self._forked(ghost, log, old, new, after, broken)
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
            lost = sum((new.incarnation, seq) in ghost.lost for seq in span)
            if len(records) + lost != len(span):
                broken.append(("I3-fold", f"revision {new.revision}, but records are missing"))
            elif state != new.state:
                broken.append(("I3-fold", f"state {dict(new.state)} != fold {dict(state)}"))
            elif (tombstone_in_force(records) is None) != (new.status == "active"):
                broken.append(("I3-status", f"{new.status} at revision {new.revision}"))
        return ghost

    @staticmethod
    def _forked(ghost, log, old, new, after, broken):
        """A fork is complete, or was ended."""
        inc, source = old.incarnation, old.source
        there = documents(after, "log" + source.sid)
        there = [r for r in there if r.incarnation == source.incarnation and r.kind == "event"]
        if new.status == "purging":
            if len([r for r in there if r.seq <= source.seq]) == source.events:
                broken.append(("I18-denied", f"{inc} is ended, although its source is there"))
            return ghost.having(dead=ghost.dead.put(inc, 0), ended=ghost.ended | {inc})
        events = ((p[1], e) for e, p in ghost.created.items() if p[0] == source.incarnation)
        wanted = [("f:" + e) for seq, e in sorted(events) if seq <= source.seq]
        found = [r.event_id for r in documents(after, log) if r.incarnation == inc]
        if wanted != found or new.revision - new.first_seq + 1 != len(wanted):
            broken.append(("I18-fork", f"{found} up to {new.revision}, not {wanted}"))
        return ghost.having(completed=ghost.completed | {inc})

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
            created = (new.incarnation, new.first_seq - 1, EMPTY)
            ghost = ghost.having(created=ghost.created.put(event_id, created))
        return ghost.having(incarnations=ghost.incarnations.put(new.incarnation, new.first_seq))

    def _changed_body(self, ghost, op, before, after, broken):
        return ghost

    def _changed_shared(self, ghost, op, before, after, broken):
        scope = op[1]
        old, new = document(before, scope, "d"), document(after, scope, "d")
        if new is None or new.get("erased") != (old.get("erased") if old else None):
            gone = {e for e, keys in ghost.touches.items() if any(k[0] == scope for k in keys)}
            ended = {e for e in gone if e in ghost.created and ghost.created[e][0] in ghost.dead}
            ghost = ghost.having(erased=ghost.erased | ended, forgotten=ghost.forgotten | gone)
            if new is None:
                return ghost
            old = None
        for key in old.state if old else ():
            if key not in new.state:
                broken.append(("I8-lost-key", f"{scope}:{key} vanished"))
        for key, (_, writer) in new.stamps.items():
            earlier = old.stamps[key][1] if old and key in old.stamps else None
            if earlier == writer:
                continue
            if writer in ghost.erased:
                broken.append(("I15-returned", f"{scope}:{key} of {writer}, which was erased"))
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
            seq = ghost.created.get(event_id, (inc, n + 1))[1]
            if (inc, self._restores_at(records, inc, seq)) in ghost.deleted_before.get(
                event_id, ()
            ):
                broken.append(("I6-append-after-delete", f"{event_id} began after the delete"))
            crossed = [
                r.seq
                for r in records
                if r.incarnation == inc and r.kind == "tombstone" and n < r.seq < seq
            ]
            if crossed:
                broken.append(
                    ("I6-append-across-delete", f"{event_id} from marker {n} after {crossed}")
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
        if outcome == "stale" and not any(r.incarnation == inc and r.seq > n for r in records):
            broken.append(("I5-false-stale", f"{event_id}: nothing follows marker {n}"))
        return ghost

    @staticmethod
    def _restores_at(records, incarnation, seq):
        return sum(
            r.kind == "restored" and r.incarnation == incarnation and r.seq <= seq for r in records
        )

    def _get_end(self, ghost, process, store, broken, sid, shown):
        known, ghost = self._known(ghost, process, "get")
        returned, deletes_returned, live, erased = known
        fresh = process not in self._stale
        if shown is None:
            if fresh and live is not None and self._live(ghost, store, sid) == live:
                broken.append(("I4-none", f"get is None for the live {live}"))
            return ghost
        inc = shown.incarnation
        shown_at = (inc, self._restores_at(documents(store, "log" + sid), inc, shown.n))
        if fresh and shown_at in deletes_returned:
            broken.append(("I6-get-after-delete", f"get shows {inc} after its delete returned"))
        if any(owner != inc for owner in shown.owners):
            broken.append(("I7-get", f"{inc} shows records of {set(shown.owners)}"))
        created = {e: p for e, p in ghost.created.items() if p[0] == inc and e[:2] != "i:"}
        expected = sorted((p[1], e) for e, p in created.items() if p[1] <= shown.n)
        state = {}
        for _, event_id in expected:
            state.update(created[event_id][2])
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
            for event_id in sorted(returned & set(created) - set(shown.event_ids)):
                broken.append(("I4-event", f"{event_id} returned before, get does not show it"))
            for key, writer in shown.shown.items():
                if writer in erased:
                    broken.append(("I15-returned", f"get shows {key} of {writer}"))
        due = set(shown.event_ids) | (returned if fresh else set())
        for event_id in sorted(due - ghost.forgotten):
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
            restored = self._restores_at(documents(store, "log" + sid), target[0], doc.revision)
            if restored == target[1]:
                broken.append(("I6-delete-noop", f"delete returned, {target} is active"))
        return ghost.having(deletes_returned=ghost.deletes_returned | {target})

    def _create_end(self, ghost, process, store, broken, sid, incarnation, outcome):
        (dead, incarnations, restores), ghost = self._known(ghost, process, "create")
        if outcome == "exists":
            doc = document(store, "session" + sid, "s")
            if doc and own_attempt(doc, incarnation):
                broken.append(("I9-create-false-exists", f"own create of {incarnation}"))
            elif dead and (ghost.incarnations, ghost.restores) == (incarnations, restores):
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
        inc, restores = known
        again = ghost.restores.get(inc, 0) > restores.get(inc, 0)
        doc = document(store, "session" + sid, "s")
        same = doc is not None and doc.incarnation == inc
        if same and outcome in ("restored", "active") and not again:
            broken.append(("I14-restore-noop", f"restore says {outcome}, {inc} is dead"))
        if same and outcome == "notfound" and doc.status in ("active", "deleted", "restoring"):
            broken.append(("I14-restore-notfound", f"{inc} is {doc.status}"))
        return ghost

    def _purge_end(self, ghost, process, store, broken, sid, outcome):
        (known, incarnation), ghost = self._known(ghost, process, "purge")
        left = sorted(e for _, e in known & content_of(store, sid))
        if left and outcome == "done":
            broken.append(("I13-unerased", f"purge returned, but {left} are stored"))
        doc = document(store, "session" + sid, "s")
        same = doc is not None and doc.incarnation == incarnation
        if same and doc.status == "deleted" and outcome == "done":
            broken.append(("I13-unerased", f"purge returned, but {incarnation} has its state"))
        return ghost

    def _purge_user_end(self, ghost, process, store, broken, include_state):
        known, ghost = self._known(ghost, process, "purge_user")
        for sid, content in known:
            left = sorted(e for _, e in content & content_of(store, sid))
            if left:
                broken.append(("I13-unerased", f"purge_user returned, but {left} are stored"))
        return ghost

    def _iterate_end(self, ghost, process, store, broken, sid, incarnation, event_ids):
        """Complete, or an error, also for a process with stale reads. `incarnation` is that of the
        delivered events; None if the process reports that there is no session, or that it was
        deleted meanwhile."""
        (live, known), ghost = self._known(ghost, process, "iterate")
        if live is None:
            return ghost
        if incarnation == live[0] and known - set(event_ids):
            broken.append(("I16-incomplete", f"{event_ids} of {sorted(known)}"))
        if incarnation != live[0] and self._live(ghost, store, sid) == live:
            broken.append(("I16-incomplete", f"nothing is shown of the live {live}"))
        return ghost

    def _fork_end(self, ghost, process, store, broken, target, incarnation, outcome):
        if outcome == "ok" and incarnation not in ghost.completed:
            broken.append(("I18-lost", f"the fork {incarnation} returned, but never was complete"))
        if outcome == "ok":
            copies = [e for e, p in ghost.created.items() if p[0] == incarnation]
            return ghost.having(returned=ghost.returned | set(copies))
        doc = document(store, "session" + target, "s")
        own = doc is not None and doc.incarnation == incarnation
        if own and doc.status not in ("purging", "purged"):
            broken.append(("I18-denied", f"{outcome}, but {incarnation} is {doc.status}"))
        return ghost

    def _repair_end(self, ghost, process, store, broken, sid, holes):
        there = documents(store, "log" + sid)
        there = {(r.seq, r.incarnation) for r in there if r.kind != "lost"}
        if set(holes) & there:
            broken.append(("I17-false-hole", f"{sorted(set(holes) & there)} are stored"))
        (live, last), ghost = self._known(ghost, process, "repair")
        doc = document(store, "session" + sid, "s")
        if live and doc is not None and doc.incarnation == live[0] and doc.revision < last:
            broken.append(("I17-late", f"repaired, but at {doc.revision} of {last}"))
        return ghost

    def _purge_replaced_end(self, ghost, process, store, broken, sid):
        bound, ghost = self._known(ghost, process, "purge_replaced")
        left = [r.event_id for r in documents(store, "log" + sid) if self._unerased(r, bound)]
        if left and process not in self._stale:
            broken.append(("I13-unerased", f"predecessors were purged, but {left} are stored"))
        return ghost

    # -------------------------------------------------------------- all processes have ended

    def at_rest(self, ghost, store):
        """After all processes have ended, including repairs: no committed delta is lost."""
        broken = []
        for sid in sorted(p.removeprefix("body") for p in store if p.startswith("body")):
            doc = document(store, "session" + sid, "s")
            left = [body.event_id for body in documents(store, "body" + sid)]
            if left and (doc is None or doc.status == "purged"):
                broken.append(("I13-unerased", f"the session is gone, the bodies {left} are not"))
        for log in sorted(p for p in store if p.startswith("log")):
            left = [r for r in documents(store, log) if r.incarnation in ghost.ended]
            left = [r.event_id for r in left if r.kind == "event"]
            if left:
                broken.append(("I13-unerased", f"the fork was ended, its copies {left} are stored"))
        for event_id in set(ghost.created) - ghost.forgotten:
            for scope, key in ghost.touches.get(event_id, ()):
                doc = document(store, scope, "d")
                shown = doc.stamps[key][1] if doc and key in doc.stamps else None
                if self.older(ghost, shown, event_id):
                    broken.append(("I8-delta-lost", f"{event_id} committed, {scope}:{key}={shown}"))
        return broken
