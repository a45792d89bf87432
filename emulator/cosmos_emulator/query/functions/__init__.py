"""The built-in functions, by family.

`FUNCTIONS` are undefined as soon as an argument is; `LAZY_FUNCTIONS` see undefined arguments.
`CLOCK_FUNCTIONS` are given the time of the request, as ticks.
"""

from typing import Final

from cosmos_emulator.query.functions import (
    arrays,
    datetimes,
    maths,
    spatial,
    strings,
    types,
)
from cosmos_emulator.query.functions.function import Function

FUNCTIONS: Final[dict[str, Function]] = {
    **strings.FUNCTIONS,
    **arrays.FUNCTIONS,
    **maths.FUNCTIONS,
    **datetimes.FUNCTIONS,
    **spatial.FUNCTIONS,
}
LAZY_FUNCTIONS: Final[dict[str, Function]] = {**types.LAZY_FUNCTIONS, **arrays.LAZY_FUNCTIONS}
CLOCK_FUNCTIONS: Final[dict[str, Function]] = datetimes.CLOCK_FUNCTIONS

__all__ = ["CLOCK_FUNCTIONS", "FUNCTIONS", "LAZY_FUNCTIONS", "Function"]
