"""All orders in which the requests of a few processes can reach the store.

The processes take turns (reliability/turns.py). Which one goes next is a choice, and a run is the
list of its choices. `every_order` plays a scene once for each list: it replays a run up to a
choice, and takes the next alternative there. A limit on interruptions keeps only the orders that
interrupt processes at most that often. Most races need only a few.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Hashable, Iterator
from typing import Any, TypeVar

from tests.artifacts.processes import Process
from tests.reliability.simulation import Fate, simulate
from tests.reliability.turns import Turn, Turns

T = TypeVar("T")


class Schedule:
    """Releases held requests one by one, as the choices say. After the last choice, it takes the
    first."""

    def __init__(self, choices: list[int], interruptions: int | None = None) -> None:
        self._choices = choices
        self._left = interruptions
        self._last: Hashable = 0  # the process whose request was released last
        self._turns = Turns(self._choose, pause=0.001)
        self.taken: list[tuple[int, int]] = []  # each choice, and the number of alternatives

    def hold(self, number: int, process: Process) -> None:
        self._turns.hold(process, number)

    async def run(self, *work: Coroutine[Any, Any, T]) -> list[T]:
        return await self._turns.play(*work)

    def _choose(self, held: list[Hashable]) -> Turn | None:
        if not held:
            return None  # a process pauses
        # The longest-waiting request of each process, starting with the process that went last.
        waiting = sorted(set(held), key=lambda each: (each != self._last, each))
        goes_on = waiting[0] == self._last
        turn = len(self.taken)
        choice = self._choices[turn] if turn < len(self._choices) else 0
        self.taken.append((choice, 1 if goes_on and self._left == 0 else len(waiting)))
        self._last = waiting[choice]
        if goes_on and choice and self._left is not None:
            self._left -= 1
        return held.index(self._last), Fate.ARRIVES


Scene = Callable[[Schedule], Coroutine[Any, Any, T]]


def every_order(scene: Scene[T], interruptions: int | None = None) -> Iterator[T]:
    """Plays the scene in every order, and yields what it returned."""
    choices: list[int] | None = []
    while choices is not None:
        schedule = Schedule(choices, interruptions)
        yield simulate(lambda schedule=schedule: scene(schedule))
        choices = _next(schedule.taken)


def _next(taken: list[tuple[int, int]]) -> list[int] | None:
    """The choices of the next run: takes the next alternative at the last choice that has one."""
    for turn in range(len(taken) - 1, -1, -1):
        choice, of = taken[turn]
        if choice + 1 < of:
            return [each for each, _ in taken[:turn]] + [choice + 1]
    return None
