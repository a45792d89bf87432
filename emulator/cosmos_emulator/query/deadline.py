"""How long a query may take.

The service ends a page after five seconds and hands out a continuation. A query that cannot go
on (one that sorts, groups or counts in memory) is refused when it has taken so long that its client
has left. The time is the machine's own: `emulator.clock` does not move it.
"""

import time
from collections.abc import Callable
from typing import Final

from cosmos_emulator.query.errors import QueryError

PAGE_SECONDS: Final = 5.0
QUERY_SECONDS: Final = 60.0  # an SDK waits for 65

_OFTEN: Final = 16  # steps between two looks at the clock
_LARGE: Final = 4096  # characters that take as long as a step


class GivenUp(QueryError):
    """Nobody waits for the answer any more."""

    def __init__(self) -> None:
        super().__init__("The client has left.")


class Deadline:
    """The time that one page has left. `rest` is called now and then while the query runs, and says
    whether somebody still waits for it."""

    def __init__(
        self,
        clock: Callable[[], float] = time.monotonic,
        rest: Callable[[], bool] = lambda: True,
    ) -> None:
        self._clock = clock
        self._rest = rest
        self._steps = 0
        now = clock()
        self._query_ends = now + QUERY_SECONDS
        self._page_ends = now + PAGE_SECONDS
        self._has_begun = False

    def begin(self) -> None:
        """The page makes progress from here: what was before it was found again."""
        if not self._has_begun:
            self._has_begun = True
            self._page_ends = self._clock() + PAGE_SECONDS

    def is_over(self) -> bool:
        """Whether the page should end with what it has."""
        return self._clock() >= self._page_ends

    def step(self, size: int = 0) -> None:
        """Part of the work is done, on a text of this size; raises if the query must not go on."""
        self._steps += 1 + size // _LARGE
        if self._steps >= _OFTEN:
            self._steps = 0
            self.look()

    def look(self) -> None:
        """Raises if the query must not go on."""
        if not self._rest():
            raise GivenUp
        if self._clock() >= self._query_ends:
            raise QueryError(
                f"The query was ended after {QUERY_SECONDS:.0f} seconds.", code="SC3016"
            )
