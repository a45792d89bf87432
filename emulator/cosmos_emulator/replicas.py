"""Replicas that lag: which of its past states a container shows to a read.

    Emulator(replicas=Replicas(lag=0.05))                    # every replica lags by 50 ms
    Emulator(replicas=Replicas(lag=(0, 0.5), seed=7))        # up to half a second, by seed
    Emulator(replicas=Replicas(lag={"events": math.inf}))    # one container; the others keep up

    replicas.hold("events")      # its replicas stay where they are; writes go on
    replicas.catch_up("events")  # they apply what was written so far, held or not
    replicas.release()           # nothing is held any more

Every range of every container has its own replicas. Each only moves forward, but two reads may use
two different ones. Time is the emulator's: `emulator.clock.advance` moves it.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from cosmos_emulator import forks
from cosmos_emulator.history import History

Lag = float | tuple[float, float]

FORGET_EVERY = 256  # reads of a range between two removals of history that nobody can see any more


@dataclass(slots=True)
class _Replica:
    lsn: int = 0
    held_lag: float | None = None  # by how much it lagged when it was held


class Replicas:
    """By how many seconds the replicas lag, and which of them a test holds back.

    `lag` is a number, a pair (each read picks a lag between the two), infinite, or a mapping from
    container names to these; a container that is not in it does not lag. `time` returns the
    seconds used to measure lag, by default those of the emulator.
    """

    def __init__(
        self,
        lag: Lag | Mapping[str, Lag] = 0.0,
        *,
        seed: int = 0,
        count: int = 3,
        time: Callable[[], float] | None = None,
    ) -> None:
        if count < 1:
            raise ValueError(f"a range needs at least one replica, not {count}")
        self._lags = dict(lag) if isinstance(lag, Mapping) else {}
        self._lag: Lag = 0.0 if isinstance(lag, Mapping) else lag
        for given in (self._lag, *self._lags.values()):
            _check(given)
        self._random = random.Random(seed)
        self._count = count
        self._time = time
        self._held: dict[str | None, float | None] = {}
        self._caught_up: dict[str | None, float] = {}
        self._replicas: dict[tuple[int, str], list[_Replica]] = {}
        self._reads = 0
        self._last = 0.0
        self._lock = forks.lock()
        self._history: History | None = None

    def hold(self, *containers: str) -> None:
        """Stops the replicas of these containers where they are; of all, if none is named."""
        now = self._now()
        if not containers:
            kept = {name: since for name, since in self._held.items() if since is not None}
            self._held = {None: now, **kept}
            return
        for name in containers:
            if self._held_since(name) is None:
                self._held = {**self._held, name: now}

    def release(self, *containers: str) -> None:
        """Lets the replicas of these containers go on; of all, if none is named."""
        self._held = {**self._held, **dict.fromkeys(containers)} if containers else {}

    def catch_up(self, *containers: str) -> None:
        """Lets the replicas apply everything written up to now, even if they are held."""
        now = self._now()
        names: tuple[str | None, ...] = containers or (None,)
        self._caught_up = {**self._caught_up, **dict.fromkeys(names, now)}

    def attach(self, time: Callable[[], float]) -> Callable[[], float]:
        """Attaches to an emulator; returns the clock with which to record writes."""
        if self._history is not None or self._replicas:
            raise ValueError("these replicas belong to another emulator already")
        self._time = self._time or time
        return self._now

    def follow(self, history: History) -> None:
        self._history = history

    @property
    def history(self) -> History:
        if self._history is None:
            raise ValueError("these replicas belong to no emulator yet")
        return self._history

    def position(self, number: int, name: str, range_id: str) -> int:
        """The LSN of the replica that a read of a range uses. Call it with the storage's lock
        held."""
        replicas = self._replicas.get((number, range_id))
        if replicas is None:
            replicas = self._replicas[number, range_id] = [_Replica() for _ in range(self._count)]
        replica = self._random.choice(replicas)
        since = self._held_since(name)
        if since is None:
            lag, moment = self._drawn(name), self._now()
            replica.held_lag = None
        else:
            if replica.held_lag is None:
                replica.held_lag = self._drawn(name)
            lag, moment = replica.held_lag, since
        moment = max(moment - lag, self._floor(name))
        replica.lsn = max(replica.lsn, self.history.lsn_at(number, moment))
        self._forget_old_versions(number, name, since)
        return replica.lsn

    def _forget_old_versions(self, number: int, name: str, since: float | None) -> None:
        self._reads += 1
        if self._reads % FORGET_EVERY == 0:
            moment = (self._now() if since is None else since) - _bounds(self._lag_of(name))[1]
            moment = max(moment, self._floor(name))
            self.history.forget(number, self.history.lsn_at(number, moment))

    def _floor(self, name: str) -> float:
        caught_up = self._caught_up
        return max(caught_up.get(name, -math.inf), caught_up.get(None, -math.inf))

    def _held_since(self, name: str) -> float | None:
        held = self._held
        return held[name] if name in held else held.get(None)

    def _lag_of(self, name: str) -> Lag:
        return self._lags.get(name, self._lag)

    def _drawn(self, name: str) -> float:
        low, high = _bounds(self._lag_of(name))
        return low if low == high else self._random.uniform(low, high)

    def _now(self) -> float:
        """The time. No two moments are the same, so that a write is before a hold or after it."""
        if self._time is None:
            raise ValueError("these replicas belong to no emulator yet")
        with self._lock:
            self._last = max(self._time(), math.nextafter(self._last, math.inf))
            return self._last

    def __repr__(self) -> str:
        return f"<Replicas lag={self._lags or self._lag}>"


def _bounds(lag: Lag) -> tuple[float, float]:
    return lag if isinstance(lag, tuple) else (lag, lag)


def _check(lag: Lag) -> None:
    low, high = _bounds(lag)
    if not 0 <= low <= high:
        raise ValueError(f"a lag is a number of seconds or a pair of them, not {lag}")
