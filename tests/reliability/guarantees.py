"""The guarantees, checked on the raw documents of a store, without any code of the service.

A `History` records what callers asked for and were told. A `Picture` is what is stored, and what a
reader must see. `check_guarantees` compares the two.
"""

from __future__ import annotations

import base64
import contextlib
import hashlib
import json
import re
import sqlite3
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from cosmos_emulator import Emulator

APP = "app"
_RECORD_ID = re.compile(r"[0-9a-f]{32}\.(\d{10})\.(\w+)")

Document = dict[str, Any]
Where = tuple[str, str]  # user, session
View = tuple[list[str], dict[str, Any]] | None  # event ids and state, or no session


class Broken(AssertionError):
    """Guarantees that do not hold."""


@dataclass
class History:
    """What callers were told. The values that an event's delta sets contain the event's id."""

    stored: dict[str, Where] = field(default_factory=dict)  # acknowledged events
    unmerged: set[str] = field(default_factory=set)  # stored; their shared state may follow later
    refused: set[str] = field(default_factory=set)  # events that must have left no trace
    unknown: set[str] = field(default_factory=set)  # no answer: stored or not
    cut_off: set[str] = field(default_factory=set)  # had no answer once: chunks may be left
    initial: dict[str, dict[str, Any]] = field(default_factory=dict)  # by state["born"]
    purged: set[Where] = field(default_factory=set)  # no content may be left
    damaged: set[Where] = field(default_factory=set)  # their session document was removed


class Picture:
    """Everything that is stored."""

    def __init__(self, emulator: Emulator) -> None:
        self.documents = list(_everything(emulator))
        self.sessions: dict[Where, Document] = {}
        self.logs: dict[Where, list[Document]] = {}
        self.chunks: dict[str, Document] = {}
        self.values: dict[str, Document] = {}  # parts of large values
        self.states: dict[tuple[str, str], Document] = {}  # (kind, user)
        for document in sorted(self.documents, key=lambda each: each["id"]):
            kind = document["document_type"]
            if kind == "session":
                self.sessions[_where(document)] = document
            elif kind in ("user_state", "app_state"):
                self.states[kind, document["user_id"]] = document
            elif kind == "chunk":
                self.chunks[document["id"]] = document
            elif kind == "state_value":
                self.values[document["id"]] = document
            else:
                self.logs.setdefault(_where(document), []).append(document)

    def dump(self) -> str:
        """All stored bytes: two dumps are equal if nothing was written in between."""
        return json.dumps(sorted(self.documents, key=lambda each: each["id"]), sort_keys=True)

    def live(self, where: Where) -> list[Document]:
        """The records of the session's current incarnation, with their bodies."""
        session = self.sessions.get(where)
        if session is None:
            return []
        return [
            self.body(record)
            for record in self.logs.get(where, [])
            if record["incarnation"] == session["incarnation"]
        ]

    def view(self, where: Where) -> View:
        """What a reader must see."""
        session = self.sessions.get(where)
        if session is None or session["status"] in ("deleted", "clearing", "purging", "purged"):
            return None
        records = self.live(where)
        if session["status"] == "forking":  # the next reader completes it
            source = session["source"]
            original = self.live((source["user_id"], source["session_id"]))
            records = [
                record | {"copied": True} for record in original if record["seq"] <= source["seq"]
            ]
        pending = [record for record in records if record["seq"] > session["revision"]]
        if session["status"] == "active" and _in_force(pending):
            return None
        state = self.values_of(session)
        for record in pending:
            state.update(_scope(record, ""))
        shared = [self.state("user_state", where, records), self.state("app_state", where, records)]
        events = [
            record["event_id"] for record in records if record["document_type"] == "adk_event"
        ]
        return events, state | shared[0] | shared[1]

    def state(self, kind: str, where: Where, records: list[Document]) -> dict[str, Any]:
        """User or app state with prefixes: the document, and later changes in this log."""
        prefix = "user:" if kind == "user_state" else "app:"
        document = self._state_document(kind, where[0])
        newest = {
            key: (tuple(document["stamps"][key]), value)
            for key, value in self.values_of(document).items()
        }
        for key, stamp, value in self.changes(kind, where, records):
            if key not in newest or newest[key][0] < stamp:
                newest[key] = (stamp, value)
        return {prefix + key: value for key, (_, value) in newest.items()}

    def changes(
        self, kind: str, where: Where, records: list[Document]
    ) -> list[tuple[str, tuple[int, str], Any]]:
        """What a session changes in user or app state: (key, stamp, value)."""
        prefix = "user:" if kind == "user_state" else "app:"
        session = self.sessions.get(where, {})
        found = []
        initial = session.get("initial", {})
        given = self.values_of(initial.get(prefix.rstrip(":"), {}), session.get("id"))
        for key, value in given.items():
            found.append((key, (initial["stamp"], f"create-{session['incarnation']}"), value))
        for record in records:
            if record.get("copied"):  # the source changed it
                continue
            stamp = (record["stamp"], record["event_id"])
            for key, value in _scope(record, prefix).items():
                found.append((key.removeprefix(prefix), stamp, value))
        return found

    def _state_document(self, kind: str, user: str) -> Document:
        partition = user if kind == "user_state" else f"app:{APP}"
        return self.states.get((kind, partition), {"state": {}, "stamps": {}})

    def values_of(self, document: Document, owner: str | None = None) -> Document:
        """The state in a document, including the large values that it names. Raises if they are not
        whole."""
        large = document.get("large", {})
        return document.get("state", {}) | {
            key: json.loads(_unpacked([self.values[each] for each in ids], ref))
            for key, ref in large.items()
            for ids in [_value_ids(owner or document["id"], ref)]
        }

    def body(self, event: Document) -> Document:
        """The event with the content of its chunks, as far as they are whole."""
        try:
            return self.whole(event)
        except Exception:
            return event

    def whole(self, event: Document) -> Document:
        """The event with the content of its chunks. Raises if they are not whole."""
        if "chunks" not in event:
            return event
        described = event["chunks"]
        prefix = event["id"].split(".")[0].split("-")[0]
        ids = [
            f"{prefix}-{event['incarnation']}-{described['upload']}-{number:04d}"
            for number in range(described["count"])
        ]
        return event | json.loads(_unpacked([self.chunks[each] for each in ids], described))


def _unpacked(parts: list[Document], described: Document) -> bytes:
    return _raw(tuple(each["data"] for each in parts), described["sha256"])


@lru_cache(maxsize=64)  # a check unpacks the same chunks again and again
def _raw(data: tuple[str, ...], sha256: str) -> bytes:
    raw = zlib.decompress(b"".join(map(base64.b64decode, data)))
    assert hashlib.sha256(raw).hexdigest() == sha256
    return raw


def _value_ids(owner: str, ref: Document) -> list[str]:
    prefix = f"value-{hashlib.sha256(owner.encode()).hexdigest()[:32]}"
    return [
        f"{prefix}-{ref['generation']}-{ref['value']}-{number:04d}"
        for number in range(ref["count"])
    ]


def _everything(emulator: Emulator) -> Iterator[Document]:
    """Straight from the tables: no request that could fail or change anything."""
    with contextlib.closing(tables_of(emulator)) as tables:
        for (number,) in tables.execute("SELECT num FROM containers").fetchall():
            for (body,) in tables.execute(f"SELECT body FROM items_{number}"):
                yield json.loads(body)


def tables_of(emulator: Emulator) -> sqlite3.Connection:
    """A copy of all that the emulator stores, in its own form."""
    tables = sqlite3.connect(":memory:")
    tables.deserialize(emulator.dump())
    return tables


def check_guarantees(emulator: Emulator, history: History, *, flushed: bool = False) -> Picture:
    """Raises Broken with all problems. `flushed`: every session was read and flushed since."""
    picture = Picture(emulator)
    problems: list[str] = []
    for where in picture.logs.keys() | picture.sessions.keys():
        problems += _log(picture, where)
        problems += _session(picture, where, history)
        if flushed:
            problems += _followed(picture, where)
    problems += _events(picture, history)
    problems += _chunks(picture, history)
    problems += _shared_state(picture, history, flushed)
    if problems:
        raise Broken("\n".join(problems))
    return picture


def _log(picture: Picture, where: Where) -> list[str]:
    """Each sequence number is taken once, there is no hole, and nothing follows a tombstone."""
    problems = []
    records = picture.logs.get(where, [])
    expected = 1
    last: Document | None = None
    for record in records:
        found = _RECORD_ID.fullmatch(record["id"])
        if found is None or (int(found[1]), found[2]) != (record["seq"], record["incarnation"]):
            problems.append(f"G1 {where}: {record['id']} is not what it says")
        if record["seq"] != expected:
            problems.append(f"G1 {where}: {record['seq']} stands where {expected} should")
        expected = record["seq"] + 1
        if last is not None:
            same = last["incarnation"] == record["incarnation"]
            ended = last["document_type"] == "tombstone"
            if same and ended != (record["document_type"] == "restored"):
                problems.append(f"G6 {where}: {record['document_type']} after a tombstone")
            if not same and not ended:
                problems.append(f"G7 {where}: an incarnation ends without a tombstone")
        last = record
    return problems


def _session(picture: Picture, where: Where, history: History) -> list[str]:
    session = picture.sessions.get(where)
    if session is None and where in history.damaged:
        return []
    if session is None:
        return [f"G3 {where}: a log without a session document"]
    records = picture.live(where)
    revision, status = session["revision"], session["status"]
    problems = []
    if records and records[0]["seq"] != session["first_seq"]:
        problems.append(f"G3 {where}: the log begins at {records[0]['seq']}")
    if revision >= session["first_seq"] and (not records or records[-1]["seq"] < revision):
        problems.append(f"G3 {where}: revision {revision} is beyond the log")
    done = [record for record in records if record["seq"] <= revision]
    if status == "forking" and revision >= session["first_seq"]:
        problems.append(f"G3 {where}: followed before the fork was complete")
    if status != "forking" and (status == "active") == _in_force(done):
        problems.append(f"G6 {where}: status {status} at revision {revision} contradicts the log")
    if status in ("clearing", "purging", "purged"):
        if session["state"] or (status == "purged" and "large" in session):
            problems.append(f"purge {where}: the state is still there")
        return problems
    state = dict(history.initial[session["state"]["born"]])
    for record in done:
        state.update(_scope(record, ""))
    try:
        found = picture.values_of(session)
    except Exception as problem:
        return [*problems, f"G3 {where}: a large value is lost ({problem!r})"]
    if found != state:
        problems.append(f"G3 {where}: state {found} is not the fold {state}")
    return problems


def _followed(picture: Picture, where: Where) -> list[str]:
    """After a reader: nothing is half done."""
    session, records = picture.sessions[where], picture.live(where)
    if session["status"] in ("restoring", "forking", "purging"):
        return [f"{where}: still {session['status']}"]
    if records and session["revision"] != records[-1]["seq"]:
        return [f"G3 {where}: revision {session['revision']} of {records[-1]['seq']}"]
    return []


def _events(picture: Picture, history: History) -> list[str]:
    problems = []
    created: dict[str, list[Where]] = {}
    for where, records in picture.logs.items():
        for record in records:
            if record["document_type"] in ("adk_event", "stub") and not record.get("copied"):
                created.setdefault(record["event_id"], []).append(where)
            if record["document_type"] == "adk_event" and where in history.purged:
                problems.append(f"purge {where}: event {record['event_id']} is still there")
    for event_id, where in history.stored.items():
        if created.get(event_id) != [where]:
            problems.append(f"G1 {event_id}: stored in {where}, found in {created.get(event_id)}")
    for event_id, found in created.items():
        if len(found) > 1:
            problems.append(f"G1 {event_id}: stored {len(found)} times")
        if event_id not in history.stored.keys() | history.unknown:
            problems.append(f"G5 {event_id}: nobody was told that it is stored")
    text = json.dumps([each for each in picture.documents if not _left_behind(each, history)])
    traces = [each for each in history.refused if f'"{each}"' in text]
    return problems + [f"G5 {each}: refused, but it left a trace" for each in traces]


def _chunks(picture: Picture, history: History) -> list[str]:
    problems = []
    used = set()
    for where, records in picture.logs.items():
        if _erasing(picture, where):
            continue
        for record in records:
            if "chunks" not in record:
                continue
            try:
                picture.whole(record)
            except Exception as problem:
                problems.append(f"G1 {record['event_id']}: its body is lost ({problem!r})")
            used.add((record["event_id"], record["chunks"]["upload"]))
    for chunk in picture.chunks.values():
        upload = chunk["id"].split("-")[-2]
        known = (chunk["event_id"], upload) in used
        erasing = _erasing(picture, _where(chunk))
        if not known and not erasing and not _left_behind(chunk, history):
            problems.append(f"G5 {chunk['event_id']}: a chunk that belongs to no event")
        if _where(chunk) in history.purged:
            problems.append(f"purge: a chunk of {chunk['event_id']} is still there")
    return problems


def _erasing(picture: Picture, where: Where) -> bool:
    """A purge that is under way, or was interrupted, has begun to remove chunks."""
    return picture.sessions.get(where, {}).get("status") == "purging"


def _left_behind(document: Document, history: History) -> bool:
    """An interrupted writer may leave chunks. Nobody reads them, and a purge removes them."""
    return document["document_type"] == "chunk" and document["event_id"] in history.cut_off


def _shared_state(picture: Picture, history: History, flushed: bool) -> list[str]:
    """For each key the largest stamp wins. Nothing merged is older than what was acknowledged."""
    problems = []
    made: dict[tuple[str, str, str], list[tuple[tuple[int, str], Any]]] = {}
    for where in picture.logs.keys() | picture.sessions.keys():
        records = [picture.body(record) for record in picture.logs.get(where, [])]
        for kind in ("user_state", "app_state"):
            partition = where[0] if kind == "user_state" else f"app:{APP}"
            for key, stamp, value in picture.changes(kind, where, records):
                made.setdefault((kind, partition, key), []).append((stamp, value))
    for (kind, partition, key), changes in made.items():
        document = picture.states.get((kind, partition), {"state": {}, "stamps": {}})
        current = tuple(document["stamps"].get(key, (0, "")))
        erased = document.get("erased", -1)
        values = _whole_state(picture, document, problems)
        for stamp, value in changes:
            due = flushed or (stamp[1] in history.stored and stamp[1] not in history.unmerged)
            if due and stamp > current and stamp[0] > erased:
                problems.append(f"G8 {kind} {key}: {value!r} of {stamp} is lost to {current}")
            if stamp == current and values.get(key) != value:
                problems.append(f"G8 {kind} {key}: not the value of {stamp}")
    for (kind, partition), document in picture.states.items():
        for key, (stamp, source) in document["stamps"].items():
            origins = [each for each, _ in made.get((kind, partition, key), [])]
            gone = source.startswith("create-") or _purged(picture, source)
            if (stamp, source) not in origins and not gone:
                problems.append(f"G5 {kind} {key}: comes from {source}, which is not stored")
        if {*document["state"], *document.get("large", {})} != document["stamps"].keys():
            problems.append(f"G8 {kind}: keys without stamps, or stamps without keys")
    return problems


def _whole_state(picture: Picture, document: Document, problems: list[str]) -> Document:
    try:
        return picture.values_of(document)
    except Exception as problem:
        problems.append(f"G8 {document['id']}: a large value is lost ({problem!r})")
        return {}


def _purged(picture: Picture, event_id: str) -> bool:
    """Whether the event is erased, or is being erased: a large event loses its body first."""
    return any(
        record["event_id"] == event_id
        and (record["document_type"] == "stub" or _erasing(picture, where))
        for where, records in picture.logs.items()
        for record in records
    )


def _where(document: Document) -> Where:
    return document["user_id"], document["session_id"]


def _in_force(records: list[Document]) -> bool:
    """Whether a tombstone is in force at the end of these records."""
    marks = [r["document_type"] for r in records if r["document_type"] in ("tombstone", "restored")]
    return marks[-1:] == ["tombstone"]


def _scope(record: Document, prefix: str) -> dict[str, Any]:
    """What the event changes in one scope. The prefix "" is the session's own scope."""
    delta = (record.get("actions") or {}).get("state_delta", {})
    if prefix:
        return {key: value for key, value in delta.items() if key.startswith(prefix)}
    return {key: value for key, value in delta.items() if not key.startswith(("user:", "app:"))}
