"""All orders in which the requests of a few processes can reach the store.

Every request is held until all processes wait for theirs. Then one of them is released. Which one
is a choice, and a run is the list of its choices. `every_order` plays a scene once for each list:
it replays a run up to a choice, and takes the next alternative there. A limit on interruptions
keeps only the orders that interrupt processes at most that often. Most races need only a few.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterator
from typing import Any, TypeVar

from cosmos_emulator.messages import Request
from tests.artifacts.processes import Process
from tests.reliability.simulation import Fate, all_waiting, simulate

T = TypeVar("T")


class Schedule:
    """Releases held requests one by one, as the choices say. After the last choice, it takes the
    first."""

    def __init__(self, choices: list[int], interruptions: int | None = None) -> None:
        self._choices = choices
        self._left = interruptions
        self._last = 0  # the process whose request was released last
        self._held: list[tuple[int, asyncio.Future[None]]] = []
        self.taken: list[tuple[int, int]] = []  # each choice, and the number of alternatives

    def hold(self, number: int, process: Process) -> None:
        async def wait(request: Request) -> Fate:
            if request.resource == "docs":
                gate: asyncio.Future[None] = asyncio.get_running_loop().create_future()
                self._held.append((number, gate))
                await gate
            return Fate.ARRIVES

        process.wire.hold = wait

    async def run(self, *work: Coroutine[Any, Any, T]) -> list[T]:
        tasks = [asyncio.ensure_future(each) for each in work]
        while not all(task.done() for task in tasks):
            await all_waiting()
            self._held = [each for each in self._held if not each[1].cancelled()]
            if not self._held:
                await asyncio.sleep(0.001)  # a process pauses
                continue
            # The longest-waiting request of each process, starting with the process that went last.
            waiting = sorted(
                {number for number, _ in self._held}, key=lambda each: (each != self._last, each)
            )
            goes_on = waiting[0] == self._last
            turn = len(self.taken)
            choice = self._choices[turn] if turn < len(self._choices) else 0
            self.taken.append((choice, 1 if goes_on and self._left == 0 else len(waiting)))
            self._last = waiting[choice]
            if goes_on and choice and self._left is not None:
                self._left -= 1
            number = next(n for n, each in enumerate(self._held) if each[0] == self._last)
            self._held.pop(number)[1].set_result(None)
        return [task.result() for task in tasks]


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
