"""What the requests of a warm turn cost, measured on the emulator."""

from __future__ import annotations

from collections import defaultdict
from statistics import mean
from typing import NamedTuple

from benchmarks.cosmos import InProcess
from benchmarks.lanes import EVENTS_OF_A_TURN, Turn
from benchmarks.material import history


class Charges(NamedTuple):
    """Request units of each request of a turn: a get, and appends of 1 KB."""

    read: float  # of the session, user and app document, each
    query: float  # for later events, of which there are none
    create: float  # of an event
    replace: float  # of the session document, once

    @property
    def events(self) -> float:
        """What a turn costs in the events container."""
        return self.query + EVENTS_OF_A_TURN * self.create

    @property
    def sessions(self) -> float:
        return 3 * self.read + self.replace

    @property
    def turn(self) -> float:
        return self.events + self.sessions


async def of_a_turn() -> Charges:
    """Of a turn after 20 events, on a session that this process has seen."""
    peer = InProcess("charges")
    await peer.open()
    try:
        await peer.seed("session", history(20))
        turn = Turn(peer, iter(["session"] * 2))
        await turn()
        peer.emulator.clear_requests()
        await turn()
        found: dict[str, list[float]] = defaultdict(list)
        for request in peer.emulator.requests:
            found[request.operation].append(request.charge)
    finally:
        await peer.close()
    assert {name: len(units) for name, units in found.items()} == {
        "read": 3,
        "query": 1,
        "create": EVENTS_OF_A_TURN,
        "replace": 1,
    }
    return Charges(**{name: mean(units) for name, units in found.items()})
