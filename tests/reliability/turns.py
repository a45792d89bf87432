"""Processes take turns: one request at a time reaches the store, and a rule says which.

Every request for a document is held until all processes wait. Then the rule chooses one of them, or
lets time pass. The rule of interleaving.py draws from a seed; that of artifacts/interleaving.py
tries every order.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Hashable
from typing import Any, TypeVar

from cosmos_emulator.messages import Request
from tests.reliability.simulation import Fate, VirtualLoop, all_waiting

T = TypeVar("T")

Turn = tuple[int, Fate]  # the index of the request that goes next, and what happens to it
Choose = Callable[[list[Hashable]], Turn | None]


class Turns:
    """`choose` gets the names of the processes whose requests are held, the longest-waiting first.
    None lets `pause` seconds pass. A request takes `step` seconds."""

    def __init__(self, choose: Choose, *, pause: float, step: float = 0.0) -> None:
        self._choose = choose
        self._pause = pause
        self._step = step
        self._held: list[tuple[Hashable, asyncio.Future[Fate]]] = []

    def hold(self, process: Any, name: Hashable = None) -> None:
        """Holds the requests of this process from now on."""

        async def wait(request: Request) -> Fate:
            if request.resource != "docs":
                return Fate.ARRIVES
            turn: asyncio.Future[Fate] = asyncio.get_running_loop().create_future()
            self._held.append((name, turn))
            return await turn

        process.wire.hold = wait

    async def play(self, *work: Coroutine[Any, Any, T]) -> list[T]:
        """Runs all work to its end."""
        loop = asyncio.get_running_loop()
        assert isinstance(loop, VirtualLoop)
        tasks = [asyncio.create_task(each) for each in work]
        while True:
            await all_waiting()
            self._held = [each for each in self._held if not each[1].done()]
            if all(task.done() for task in tasks):
                return [task.result() for task in tasks]
            turn = self._choose([name for name, _ in self._held])
            if turn is None:
                await asyncio.sleep(self._pause)
            else:
                index, fate = turn
                self._held.pop(index)[1].set_result(fate)
                loop.advance(self._step)
