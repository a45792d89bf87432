"""The built-in functions, by family.

`FUNCTIONS` are undefined as soon as an argument is; `LAZY_FUNCTIONS` see undefined arguments.
"""

from typing import Final

from . import types
from .function import Function

FUNCTIONS: Final[dict[str, Function]] = {}
LAZY_FUNCTIONS: Final[dict[str, Function]] = types.LAZY_FUNCTIONS

__all__ = ["FUNCTIONS", "LAZY_FUNCTIONS", "Function"]
