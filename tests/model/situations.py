"""The parts of scenarios: what is stored at first, and what processes do.

Session ids are "1" and "2", incarnations "a0", "a1" … and "b0".
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from tests.model import lifecycle, protocol, retention, whole_reads
from tests.model.checker import Explorer, Process, Result
from tests.model.invariants import Invariants
from tests.model.steps import NO_STATE, record, record_id
from tests.model.store import EMPTY, Frozen


@dataclass
class Scenario:
    processes: list[Process]
    store: Frozen
    crashes: int = 0
    lost_replies: int = 0
    token_on_error: bool = True
    residues: frozenset[str] = field(default_factory=frozenset)
    invariants: Callable[[Frozen, frozenset[str]], Any] = Invariants

    def check(self, limit: int = 3_000_000, until: str | None = None) -> Result:
        stale = frozenset(p.name for p in self.processes if p.stale)
        explorer = Explorer(
            self.processes,
            self.store,
            self.invariants(self.store, stale),
            crashes=self.crashes,
            lost_replies=self.lost_replies,
            token_on_error=self.token_on_error,
            limit=limit,
        )
        return explorer.run(until)


# ------------------------------------------------------------------ what is stored at first


def event(seq, event_id, incarnation):
    return record("event", incarnation, seq, event_id, session=Frozen({event_id: 1}))


def tombstone(seq, incarnation):
    return record("tombstone", incarnation, seq, "T:old")


def session_document(
    incarnation, status="active", first_seq=1, revision=0, shows=(), replaced=None
):
    """`replaced`: the first sequence number of the predecessors that is not erased."""
    doc = Frozen(
        status=status,
        incarnation=incarnation,
        first_seq=first_seq,
        revision=revision,
        state=Frozen.fromkeys(shows, 1),
    )
    return doc if replaced is None else doc.having(replaced=replaced)


def log_snapshot(*records):
    return Frozen({record_id(r): (1, r) for r in records})


def stored(rules, sessions, shared_documents=False):
    """A store. `sessions` maps an id to its session document (or None) and its records."""
    store = {}
    for sid, (doc, *records) in sessions.items():
        store["session" + sid] = (Frozen({"s": (1, doc)}) if doc else EMPTY,)
        store["log" + sid] = (log_snapshot(*records),)
    for scope in rules.shared:
        store[scope] = (Frozen({"d": (1, NO_STATE)}) if shared_documents else EMPTY,)
    return Frozen(store)


def fresh_session(rules, *sids, shared_documents=False):
    names = {"1": "a0", "2": "b0"}
    sessions = {sid: (session_document(names[sid]),) for sid in sids or "1"}
    return stored(rules, sessions, shared_documents)


def one_event(rules, shared_documents=False):
    doc = session_document("a0", revision=1, shows="z")
    return stored(rules, {"1": (doc, event(1, "z", "a0"))}, shared_documents)


def deleted_session(rules):
    doc = session_document("a0", "deleted", revision=2, shows="z")
    return stored(rules, {"1": (doc, event(1, "z", "a0"), tombstone(2, "a0"))})


def recreated_session(rules):
    doc = session_document("a1", first_seq=3, revision=2, replaced=1)
    return stored(rules, {"1": (doc, event(1, "z", "a0"), tombstone(2, "a0"))})


def with_past(store, sid, docs, logs):
    """The store with all earlier versions of a session's document and log. None: not there yet."""
    docs = tuple(Frozen({"s": (v, doc)}) if doc else EMPTY for v, doc in enumerate(docs))
    logs = tuple(log_snapshot(*records) for records in logs)
    return Frozen({**store, "session" + sid: docs, "log" + sid: logs})


def two_events(rules, *later_docs, later=()):
    """A session with two events, and its past."""
    y, z = event(1, "y", "a0"), event(2, "z", "a0")
    docs = [
        None,
        session_document("a0"),
        session_document("a0", revision=1, shows="y"),
        session_document("a0", revision=2, shows="yz"),
        *later_docs,
    ]
    logs = [(), (y,), (y, z), *((y, z, *later[: i + 1]) for i in range(len(later)))]
    return with_past(stored(rules, {"1": (docs[-1],)}), "1", docs, logs)


def holding(sid="1", incarnation="a0", n=0, event_ids=()):
    """A session object that a process holds."""
    return Frozen(sid=sid, incarnation=incarnation, n=n, newest=0, event_ids=tuple(event_ids))


# ------------------------------------------------------------------ what processes do


def appends(rules, session, *event_ids, key=None, app_key=None, **options):
    """Appends events one after the other. The last one writes `key` of the user's state."""

    def body(proc):
        held, i = session, 0
        while i < len(event_ids):
            event_id = event_ids[i]
            last = i == len(event_ids) - 1
            user = Frozen({key: event_id}) if key and last else EMPTY
            app = Frozen({app_key: event_id}) if app_key and last else EMPTY
            held = yield from protocol.append(
                rules,
                proc,
                held,
                event_id,
                Frozen({event_id: 1}),
                user,
                app,
                **{"project": last, **options},
            )
            held = held[1]
            i += 1

    return body


def appends_again(rules, session, event_id, key=None, **options):
    """The caller tries the same event again from its first session object."""

    def body(proc):
        user = Frozen({key: event_id}) if key else EMPTY
        delta = Frozen({event_id: 1})
        done = yield from protocol.append(
            rules, proc, session, event_id, delta, user, project=False, **options
        )
        done = None
        done = yield from protocol.append(rules, proc, session, event_id, delta, user, **options)
        return done

    return body


def gets_and_appends(rules, event_id, key=None, sid="1", repair=False, **options):
    def body(proc):
        session = yield from protocol.get(rules, proc, sid, repair)
        if session is not None:
            user = Frozen({key: event_id}) if key else EMPTY
            delta = Frozen({event_id: 1})
            yield from protocol.append(rules, proc, session, event_id, delta, user, **options)

    return body


def gets(rules, *sids):
    """Reads, and repairs, one session after the other."""

    def body(proc):
        i = 0
        while i < len(sids):
            session = yield from protocol.get(rules, proc, sids[i])
            session = None
            i += 1
        return session

    return body


def reader_at_rest(rules, *processes, sids="1"):
    """Begins when the others have ended. Repairs everything, then reads once more."""
    return Process("R", gets(rules, *sids, *sids), after=tuple(p.name for p in processes))


def deletes(rules, sid="1"):
    return lambda proc: protocol.delete(rules, proc, sid)


def creates(rules, incarnation, key=None, sid="1", expires=False):
    user = Frozen({key: "i:" + incarnation}) if key else EMPTY
    return lambda proc: protocol.create(rules, proc, sid, incarnation, user, expires=expires)


def restores(rules, sid="1"):
    return lambda proc: lifecycle.restore(rules, proc, sid)


def purges(rules, sid="1"):
    return lambda proc: lifecycle.purge(rules, proc, sid)


def purges_replaced(rules, sid="1"):
    return lambda proc: lifecycle.purge_replaced(rules, proc, sid)


def one_after_the_other(*bodies):
    def body(proc):
        i = 0
        while i < len(bodies):
            yield from bodies[i](proc)
            i += 1

    return body


def purges_user(rules, *sids, include_state=False):
    return lambda proc: lifecycle.purge_user(rules, proc, *sids, include_state=include_state)


def iterates(rules, sid="1"):
    return lambda proc: whole_reads.iterate(rules, proc, sid)


def repairs(rules, sid="1"):
    return lambda proc: whole_reads.repair(rules, proc, sid)


def uses(rules, times, pause, sid="1"):
    """Uses a session repeatedly, with a pause before each use."""

    def body(proc):
        i = 0
        while i < times:
            yield ("wait", pause)
            yield from retention.use(rules, proc, sid)
            i += 1

    return body


def skewed(rules, offset):
    """How far a process's time is from the server's: not at all, unless the rule is omitted."""
    return offset if rules.without("time is the server's") else 0
