"""Query text to syntax tree."""

import re
from typing import Final

from cosmos_emulator.query import nodes
from cosmos_emulator.query.errors import QueryError

# A longer list of values can be handed over as a parameter, for ARRAY_CONTAINS.
MOST_TOKENS: Final = 40_000
_TOKEN: Final = re.compile(r"""'(?:[^'\\]|\\.)*+'?|"(?:[^"\\]|\\.)*+"?|[\w@]+|\S""", re.DOTALL)


def _check_length(text: str) -> None:
    """A text of many words takes long to read, whatever it says."""
    if len(text) > MOST_TOKENS and sum(1 for _ in _TOKEN.finditer(text)) > MOST_TOKENS:
        raise QueryError(
            f"The query is too complex: it has more than {MOST_TOKENS} words and signs.",
            code="SC3014",
        )


def parse(text: str) -> nodes.Query:
    """The tree of a query; QueryError if the text is not one."""
    _check_length(text)
    from cosmos_emulator.query.builder import (
        build,  # with lark, which takes a third of the time of importing all this
    )

    return build(text)
