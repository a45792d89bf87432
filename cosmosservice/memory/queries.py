"""The texts of all queries. They are constants: no value is ever part of one.

A query by tokens has a fixed number of parameters. Unused ones repeat the first token.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

CANDIDATES: Final = 60  # memories that one query looks at
NEIGHBOURS: Final = 50  # vectors that one query looks at
MOST_TOKENS: Final = 60
MOST_SHARED: Final = 5_000  # memories of other sessions: their places are a parameter of 150 kB

# ARRAY_CONTAINS uses the index, ARRAY_CONTAINS_ANY does not.
ANY_OF_8: Final = " OR ".join(f"ARRAY_CONTAINS(c.tokens, @t{number})" for number in range(8))
ANY_OF_16: Final = " OR ".join(f"ARRAY_CONTAINS(c.tokens, @t{number})" for number in range(16))
ANY_OF_24: Final = " OR ".join(f"ARRAY_CONTAINS(c.tokens, @t{number})" for number in range(24))
ANY_OF_60: Final = " OR ".join(f"ARRAY_CONTAINS(c.tokens, @t{number})" for number in range(60))

SMALL: Final = (
    f"SELECT TOP {CANDIDATES} c.id, c.of, c.at, c.beside, c.time, c.length, c.asks, c.tokens,"
    " c.counts, c._rid"
)
OF_LIVES: Final = "c.session_id, c.incarnation, c.also_in, c.lives"
SMALL_WITH_LIVES: Final = f"{SMALL}, {OF_LIVES}"
OF_SESSION: Final = "(c.session_id = @session_id OR ARRAY_CONTAINS(c.also_in, @session_id))"
IN_SESSION: Final = f" AND {OF_SESSION}"
OF_AUTHOR: Final = " AND c.author = @author"
IN_TIME: Final = " AND c.time >= @since AND c.time <= @until"
NEWEST: Final = " ORDER BY c.time DESC"

# By the number of tokens, and whether a session is given.
HAVING: Final = {
    (8, False): f"{SMALL} FROM c WHERE ({ANY_OF_8}){NEWEST}",
    (8, True): f"{SMALL_WITH_LIVES} FROM c WHERE ({ANY_OF_8}){IN_SESSION}{NEWEST}",
    (16, False): f"{SMALL} FROM c WHERE ({ANY_OF_16}){NEWEST}",
    (16, True): f"{SMALL_WITH_LIVES} FROM c WHERE ({ANY_OF_16}){IN_SESSION}{NEWEST}",
    (24, False): f"{SMALL} FROM c WHERE ({ANY_OF_24}){NEWEST}",
    (24, True): f"{SMALL_WITH_LIVES} FROM c WHERE ({ANY_OF_24}){IN_SESSION}{NEWEST}",
    (60, False): f"{SMALL} FROM c WHERE ({ANY_OF_60}){NEWEST}",
    (60, True): f"{SMALL_WITH_LIVES} FROM c WHERE ({ANY_OF_60}){IN_SESSION}{NEWEST}",
}

# By the number of places, and whether an author and a time are given.
CONTENTS: Final = {
    (8, False, False): f"SELECT * FROM c WHERE ({ANY_OF_8})",
    (8, False, True): f"SELECT * FROM c WHERE ({ANY_OF_8}){IN_TIME}",
    (8, True, False): f"SELECT * FROM c WHERE ({ANY_OF_8}){OF_AUTHOR}",
    (8, True, True): f"SELECT * FROM c WHERE ({ANY_OF_8}){OF_AUTHOR}{IN_TIME}",
    (16, False, False): f"SELECT * FROM c WHERE ({ANY_OF_16})",
    (16, False, True): f"SELECT * FROM c WHERE ({ANY_OF_16}){IN_TIME}",
    (16, True, False): f"SELECT * FROM c WHERE ({ANY_OF_16}){OF_AUTHOR}",
    (16, True, True): f"SELECT * FROM c WHERE ({ANY_OF_16}){OF_AUTHOR}{IN_TIME}",
    (24, False, False): f"SELECT * FROM c WHERE ({ANY_OF_24})",
    (24, False, True): f"SELECT * FROM c WHERE ({ANY_OF_24}){IN_TIME}",
    (24, True, False): f"SELECT * FROM c WHERE ({ANY_OF_24}){OF_AUTHOR}",
    (24, True, True): f"SELECT * FROM c WHERE ({ANY_OF_24}){OF_AUTHOR}{IN_TIME}",
    (60, False, False): f"SELECT * FROM c WHERE ({ANY_OF_60})",
    (60, False, True): f"SELECT * FROM c WHERE ({ANY_OF_60}){IN_TIME}",
    (60, True, False): f"SELECT * FROM c WHERE ({ANY_OF_60}){OF_AUTHOR}",
    (60, True, True): f"SELECT * FROM c WHERE ({ANY_OF_60}){OF_AUTHOR}{IN_TIME}",
}

NEAREST: Final = (
    f"SELECT TOP {NEIGHBOURS} c.beside, VectorDistance(c.embedding, @vector) AS nearness FROM c"
    " WHERE c.kind = @kind ORDER BY VectorDistance(c.embedding, @vector)"
)
NEAREST_IN_SESSION: Final = (
    f"SELECT TOP {NEIGHBOURS} c.beside, VectorDistance(c.embedding, @vector) AS nearness FROM c"
    " WHERE c.kind = @kind AND (c.session_id = @session_id OR ARRAY_CONTAINS(@shared, c.beside))"
    " ORDER BY VectorDistance(c.embedding, @vector)"
)
# Of the memories that a session shares with the one that added them. Their vectors do not say so.
SHARED: Final = (
    f"SELECT TOP {MOST_SHARED} c.at FROM c WHERE ARRAY_CONTAINS(c.also_in, @session_id)"
    " ORDER BY c.time DESC"
)

# The last memories of a conversation, the last first. One of them nearly always has `complete`.
TAIL: Final = (
    "SELECT TOP 20 c.id, c.at, c.complete FROM c WHERE c.at >= @first AND c.at < @end"
    " ORDER BY c.at DESC"
)

FROM: Final = (
    "SELECT TOP @count * FROM c WHERE c.time >= @from AND NOT IS_DEFINED(c.of) ORDER BY c.time"
)
FROM_IN_SESSION: Final = (
    "SELECT TOP @count * FROM c WHERE c.time >= @from AND NOT IS_DEFINED(c.of)"
    f"{IN_SESSION} ORDER BY c.time"
)
LATEST: Final = (
    "SELECT TOP @count * FROM c WHERE c.time > -1e300 AND NOT IS_DEFINED(c.of) ORDER BY c.time DESC"
)

BESIDE: Final = "SELECT c.id FROM c WHERE c.id >= @first AND c.id < @end"
ALL: Final = f"SELECT c.id, c.kind, c.of, {OF_LIVES}, c._etag FROM c"
ALL_IN_SESSION: Final = f"SELECT c.id, c.kind, c.of, {OF_LIVES}, c._etag FROM c WHERE {OF_SESSION}"

WITH_VECTOR: Final = "SELECT c.of, c.owner FROM c WHERE c.kind = @kind"
MEMORIES: Final = "SELECT c.id, c.owner FROM c WHERE c.kind = @kind"

# Not answered by the index: for a migration, which reads everything.
OWNERS: Final = "SELECT DISTINCT VALUE c.owner FROM c"
OWNERS_WITH_APPS: Final = "SELECT DISTINCT c.owner, c.app_name FROM c WHERE IS_DEFINED(c.app_name)"
DOCUMENTS: Final = "SELECT * FROM c"


def slots(count: int) -> int:
    """The number of parameters of the smallest query that takes this many tokens."""
    return next(size for size in (8, 16, 24, 60) if count <= size)


def filled(tokens: Sequence[str]) -> dict[str, Any]:
    """The parameters for these tokens: at least one, at most MOST_TOKENS."""
    size = slots(len(tokens))
    every = [*tokens, *[tokens[0]] * (size - len(tokens))]
    return {f"t{number}": token for number, token in enumerate(every)}
