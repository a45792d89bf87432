"""Rows, as expressions see them.

A row is a dict of the aliases in scope and of the parameters (`@name`). Slots whose names start
with `#` hold what GROUP BY and the aggregates computed before the row is projected, and these:
"""

from collections.abc import Callable
from typing import Any, Final

NOW: Final = "#now"  # the time of the request, in ticks
POLICIES: Final = "#policies"  # those of the container
DEADLINE: Final = "#deadline"  # what says whether there is time left

Row = dict[str, Any]
Evaluate = Callable[[Row], Any]
