"""Many processes whose requests reach the store in an order that a seed chooses.

The processes take turns (turns.py), and the seed chooses the request that goes next. A model in
plain dicts is told which log writes the store accepts, so it knows what was true at every
moment. What a caller was told must have been true between its call and its answer. Where replicas
lag, a get may show an older state. But that state was true, and it is never older than what the
same process has seen before.
"""

from __future__ import annotations

import json
import random
from collections.abc import Awaitable, Callable, Coroutine, Hashable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from google.adk.sessions import Session

from cosmos_emulator import Replicas
from cosmos_emulator.messages import Request
from cosmosservice.errors import (
    AlreadyExistsError,
    SessionNotFoundError,
    StaleSessionError,
    StateUpdatePendingError,
    StorageError,
)
from tests.reliability.guarantees import (
    APP,
    Broken,
    History,
    Picture,
    View,
    Where,
    check_guarantees,
)
from tests.reliability.simulation import Fate, Killed, Process, store
from tests.reliability.turns import Turn, Turns
from tests.support.adk import event

STEP = 0.001  # seconds that each request takes


@dataclass
class Life:
    """A session in the model."""

    incarnation: str
    revision: int
    alive: bool = True
    events: list[str] = field(default_factory=list)
    state: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Moment:
    """What was true from a step on."""

    step: int
    events: tuple[str, ...] | None  # None: no session
    state: dict[str, Any]
    incarnation: str


class Model:
    """Sessions and state in dicts. Deltas come from the callers, their order from the store."""

    def __init__(self) -> None:
        self.deltas: dict[str, dict[str, Any]] = {}  # of every event that a caller tried to append
        self.initial: dict[str, dict[str, Any]] = {}  # of every create: state["born"] → state
        self.lives: dict[Where, Life] = {}
        self.shared: dict[tuple[str, str], dict[str, tuple[tuple[int, str], Any]]] = {}
        self.moments: dict[Where, list[Moment]] = {}
        self.problems: list[str] = []

    def accept(self, step: int, request: Request) -> None:
        """Called when the store has accepted a write."""
        if request.operation not in ("create", "replace") or request.resource != "docs":
            return
        body = json.loads(request.body)
        kind = body.get("document_type")
        where = body.get("user_id"), body.get("session_id")
        life = self.lives.get(where)
        if kind == "session":
            if life is not None and body["revision"] < life.revision:
                self.problems.append(f"G3 {where}: from {life.revision} to {body['revision']}")
            if life is not None and life.incarnation == body["incarnation"]:
                life.revision = body["revision"]  # it follows the log
                return
            born = body["state"]["born"]
            self._share(where[0], self.initial[born], body.get("initial", {}).get("stamp", 0), "")
            own = {k: v for k, v in self.initial[born].items() if not k.startswith(_SHARED)}
            self.lives[where] = Life(body["incarnation"], body["revision"], state=own)
        elif (
            request.operation != "create" or life is None or body["incarnation"] != life.incarnation
        ):
            return
        elif kind == "adk_event":
            delta = self.deltas[body["event_id"]]
            life.events.append(body["event_id"])
            life.state.update({k: v for k, v in delta.items() if not k.startswith(_SHARED)})
            self._share(where[0], delta, body["stamp"], body["event_id"])
        elif kind in ("tombstone", "restored"):
            life.alive = kind == "restored"
        else:
            return
        self._mark(where, step)

    def _share(self, user: str, delta: dict[str, Any], stamp: int, source: str) -> None:
        for key, value in delta.items():
            if key.startswith(_SHARED):
                scope = ("user", user) if key.startswith("user:") else ("app", "")
                known = self.shared.setdefault(scope, {})
                if key not in known or known[key][0] < (stamp, source):
                    known[key] = (stamp, source), value

    def _mark(self, where: Where, step: int) -> None:
        life = self.lives[where]
        events = tuple(life.events) if life.alive else None
        self.moments.setdefault(where, [Moment(0, None, {}, "")]).append(
            Moment(step, events, dict(life.state), life.incarnation)
        )

    def between(self, where: Where, start: int, end: int) -> list[Moment]:
        """What was true at some time between `start` and `end`."""
        moments = self.moments.get(where, [Moment(0, None, {}, "")])
        last_before = max(i for i, each in enumerate(moments) if each.step <= start)
        return [each for each in moments[last_before:] if each.step <= end]

    def session(self, where: Where) -> tuple[list[str], dict[str, Any]] | None:
        """What a reader must see at the end."""
        life = self.lives.get(where)
        if life is None or not life.alive:
            return None
        shared = self.shared.get(("user", where[0]), {}) | self.shared.get(("app", ""), {})
        return life.events, life.state | {key: value for key, (_, value) in shared.items()}


_SHARED = ("user:", "app:")


@dataclass
class Call:
    """One call of a process: the steps of its start and end, and what it was told."""

    name: str
    where: Where
    start: int
    end: int = 0
    outcome: str = ""
    event_id: str = ""
    marker: str = ""
    shared: dict[str, Any] = field(default_factory=dict)


class World:
    """A store, its processes, the model, and all calls."""

    def __init__(
        self, seed: int, *, losses: float = 0.0, kills: float = 0.0, lag: float = 0.0
    ) -> None:
        self.random = random.Random(seed)
        self.lag = lag
        self.emulator = store(Replicas((0.0, lag), seed=seed) if lag else None)
        self._seen: dict[tuple[Process, Where], int] = {}  # the moment that was last shown
        self.model = Model()
        self.history = History()
        self.calls: list[Call] = []
        self.step = 0
        self.rebasing = False  # if so, several events from one marker may be stored
        self.clocks_agree = True  # if so, a later write of a key wins
        self._losses, self._kills = losses, kills
        self._turns = Turns(self._choose, pause=0.05, step=STEP)
        self._numbers = 0

    def process(self, **options: Any) -> Process:
        """One more process. Its requests are held from now on."""
        process = self._watched(**options)
        self._turns.hold(process)
        return process

    def _watched(self, **options: Any) -> Process:
        process = Process(self.emulator, **options)
        process.wire.accepted = lambda request: self.model.accept(self.step, request)
        return process

    async def play(self, *actors: Coroutine[Any, Any, None]) -> None:
        """Runs all actors to the end, one request at a time."""
        await self._turns.play(*actors)

    def _choose(self, waiting: list[Hashable]) -> Turn | None:
        self.step += 1
        if self.step > 100_000:
            raise Broken("G10: it does not come to an end")
        if waiting and self.random.random() > 0.05:
            return self.random.randrange(len(waiting)), self._fate()
        return None

    def _fate(self) -> Fate:
        luck = self.random.random()
        if luck < self._kills:
            return self.random.choice([Fate.KILLED_BEFORE, Fate.KILLED_AFTER])
        if luck < self._kills + self._losses:
            return self.random.choice([Fate.DROPPED_BEFORE, Fate.DROPPED_AFTER])
        return Fate.ARRIVES

    # --- calls

    async def call(
        self, name: str, where: Where, work: Callable[[Call], Awaitable[Any]], **details: Any
    ) -> Any:
        """Does the work, and records what its caller was told. Returns None if that was a
        failure."""
        call = Call(name, where, self.step, **details)
        self.calls.append(call)
        try:
            result = await work(call)
            call.outcome = "ok"
            return result
        except (AlreadyExistsError, SessionNotFoundError, StaleSessionError) as error:
            call.outcome = type(error).__name__
        except StateUpdatePendingError:
            call.outcome = "unmerged"
        except StorageError:
            call.outcome = "unknown"
        except Killed:
            call.outcome = "killed"
            raise
        finally:
            call.end = self.step
        return None

    def name(self, kind: str) -> str:
        self._numbers += 1
        return f"{kind}{self._numbers:03d}"

    async def create(self, process: Process, where: Where, **state: Any) -> Session | None:
        born = self.name("born")
        initial = {"born": born} | dict.fromkeys(state, born)
        self.model.initial[born] = initial
        self.history.initial[born] = {k: v for k, v in initial.items() if not k.startswith(_SHARED)}

        async def work(call: Call) -> Session:
            session = await process.service.create_session(**_who(where), state=dict(initial))
            call.marker = _incarnation(session)
            return session

        result: Session | None = await self.call("create", where, work)
        return result

    async def append(
        self, process: Process, session: Session, *keys: str, name: str | None = None
    ) -> bool:
        """Whether the event is stored, as far as the caller knows."""
        where = session.user_id, session.id
        event_id = name or self.name("event")
        delta = dict.fromkeys(keys, event_id)
        self.model.deltas[event_id] = delta
        self.history.unknown.add(event_id)
        said = event(event_id, id=event_id, delta=dict(delta))
        await self.call(
            "append",
            where,
            lambda _: process.service.append_event(session, said),
            event_id=event_id,
            marker=str(session._storage_update_marker),
            shared={key: event_id for key in keys if key.startswith(_SHARED)},
        )
        outcome = self.calls_of(event_id)[-1].outcome
        if outcome in ("ok", "unmerged"):
            self.history.stored[event_id] = where
            if outcome == "unmerged":
                self.history.unmerged.add(event_id)
        elif outcome != "unknown":
            self.history.unknown.discard(event_id)
            self.history.refused.add(event_id)
        return outcome in ("ok", "unmerged")

    def calls_of(self, event_id: str) -> list[Call]:
        return [each for each in self.calls if each.event_id == event_id]

    async def get(self, process: Process, where: Where) -> Session | None:
        async def work(call: Call) -> Session | None:
            found = await process.service.get_session(**_who(where))
            if self.lag:
                self._saw_late(process, call, found)
            else:
                self._saw(call, found)
            return found

        result: Session | None = await self.call("get", where, work)
        return result

    def _saw(self, call: Call, found: Session | None) -> None:
        moments = self.model.between(call.where, call.start, self.step)
        if found is None:
            if all(each.events is not None for each in moments):
                raise Broken(f"G4: a get shows no session at {call.start}…{self.step}: {moments}")
            return
        events = tuple(each.id for each in found.events)
        own = _own(found)
        if not any(each.events == events and each.state == own for each in moments):
            raise Broken(f"G4: a get shows {events} {own}, which never was: {moments}")
        call.shared = {k: v for k, v in found.state.items() if k.startswith(_SHARED)}

    def _saw_late(self, process: Process, call: Call, found: Session | None) -> None:
        """What was shown was true once, and not before what this process saw last."""
        moments = self.model.between(call.where, 0, self.step)
        shown = found and (tuple(each.id for each in found.events), _own(found))
        matching = [
            number
            for number, each in enumerate(moments)
            if shown == (None if each.events is None else (each.events, each.state))
        ]
        last = self._seen.get((process, call.where), 0)
        if not matching or matching[-1] < last:
            raise Broken(f"G4: a get shows {shown} after {moments[last]}: {moments}")
        self._seen[process, call.where] = next(each for each in matching if each >= last)

    def catch_up(self) -> None:
        if self.emulator.replicas is not None:
            self.emulator.replicas.catch_up()

    async def delete(self, process: Process, where: Where) -> None:
        work = partial(process.service.delete_session, **_who(where))
        await self.call("delete", where, lambda _: work())

    async def restore(self, process: Process, where: Where) -> None:
        work = partial(process.service.restore_session, **_who(where))
        await self.call("restore", where, lambda _: work())

    async def repair(self, process: Process, where: Where) -> None:
        work = partial(process.service.repair_session, **_who(where))
        await self.call("repair", where, lambda _: work())

    async def purge(self, process: Process, where: Where) -> None:
        work = partial(process.service.purge_session, **_who(where))
        await self.call("purge", where, lambda _: work())

    # --- at the end

    async def check(self) -> Picture:
        """What callers were told is true, and what is stored agrees with the model."""
        for call in self.calls:
            self._truthful(call)
        self._one_winner()
        self._order()
        check_guarantees(self.emulator, self.history)
        # State that a killed process did not merge becomes visible when its session is read.
        await self._look()
        picture = check_guarantees(self.emulator, self.history)
        for where, seen in (await self._look()).items():
            expected = self.model.session(where)
            if seen != expected:
                raise Broken(f"a reader sees {seen}, the model has {expected}")
        if Picture(self.emulator).dump() != picture.dump():
            raise Broken("a second look writes something")
        if self.model.problems:
            raise Broken("\n".join(self.model.problems))
        return picture

    async def _look(self) -> dict[Where, View]:
        """What a new process sees of every session. It may complete what a killed process began."""
        self.catch_up()
        reader = self._watched()
        views: dict[Where, View] = {}
        for where in sorted(self.model.lives):
            found = await reader.service.get_session(**_who(where))
            views[where] = found and ([each.id for each in found.events], found.state)
        await reader.service.close()
        return views

    def _truthful(self, call: Call) -> None:
        moments = self.model.between(call.where, call.start, call.end)
        alive = [each for each in moments if each.events is not None]
        gone = [each for each in moments if each.events is None]
        true = {
            ("create", "ok"): any(each.incarnation == call.marker for each in alive),
            # A process that reads an old log does not see that a delete is under way.
            ("create", "AlreadyExistsError"): bool(alive) or bool(self.lag),
            ("delete", "ok"): bool(gone),
            ("restore", "ok"): bool(alive),
            ("append", "ok"): any(call.event_id in each.events for each in alive),
            ("append", "unmerged"): any(call.event_id in each.events for each in alive),
            ("append", "SessionNotFoundError"): bool(gone)
            or all(each.incarnation not in call.marker for each in moments),
            ("append", "StaleSessionError"): True,  # see _one_winner
        }
        if not true.get((call.name, call.outcome), True):
            raise Broken(f"{call} is not true: {moments}")

    def _one_winner(self) -> None:
        """Of the events with one expected version, one is stored. The callers of the others were
        told."""
        starts: dict[tuple[Where, str], list[Call]] = {}
        for call in self.calls:
            if call.name == "append":
                starts.setdefault((call.where, call.marker), []).append(call)
        for (where, marker), calls in starts.items():
            events = [event for each in self.model.moments[where] for event in each.events or ()]
            stored = {call.event_id for call in calls} & set(events)
            stale = [call for call in calls if call.outcome == "StaleSessionError"]
            if len(stored) > 1 and not self.rebasing:
                raise Broken(f"G2 {marker}: {stored} were all stored")
            if stale and not self._moved(where, marker, stale):
                raise Broken(f"G9 {marker}: told of a conflict that never was")

    def _moved(self, where: Where, marker: str, calls: list[Call]) -> bool:
        """Whether a record of another call follows the marker."""
        _, incarnation, seq, *_ = marker.split(":")
        own = {call.event_id for call in calls}
        return any(
            record["incarnation"] == incarnation
            and record["seq"] == int(seq) + 1
            and record["event_id"] not in own
            for record in Picture(self.emulator).logs.get(where, [])
        )

    def _order(self) -> None:
        """What returned before something else began comes before it, in logs and in shared
        state."""
        done = [c for c in self.calls if c.name == "append" and c.outcome in ("ok", "unmerged")]
        created = {
            record["event_id"]: (where, record["seq"])
            for where, records in Picture(self.emulator).logs.items()
            for record in records
        }
        for first in done:
            for second in done:
                if first.end >= second.start:
                    continue
                one, two = created[first.event_id], created[second.event_id]
                if one[0] == two[0] and one[1] > two[1]:
                    raise Broken(f"{first} comes after {second} in the log")
        if not self.clocks_agree or self.lag:
            return
        writes = {call.event_id: call for call in done if call.outcome == "ok"}
        for reader in [call for call in self.calls if call.name == "get"]:
            for key, value in reader.shared.items():
                shown = writes.get(value)
                for write in writes.values():
                    if key not in write.shared or not _same_scope(key, write, reader):
                        continue
                    # Clocks agree here, so that a later write has the larger stamp.
                    if shown is not None and shown.end < write.start and write.end < reader.start:
                        raise Broken(f"G8 {key}: {reader} shows {value}, {write} was later")


def _same_scope(key: str, write: Call, reader: Call) -> bool:
    return key.startswith("app:") or write.where[0] == reader.where[0]


def _own(session: Session) -> dict[str, Any]:
    return {key: value for key, value in session.state.items() if not key.startswith(_SHARED)}


def _who(where: Where) -> dict[str, str]:
    return {"app_name": APP, "user_id": where[0], "session_id": where[1]}


def _incarnation(session: Session) -> str:
    return str(session._storage_update_marker).split(":")[1]
