"""The texts of all queries. No value is ever part of one.

A query by tokens has one of few numbers of parameters, so that there are few texts. Unused ones
repeat the first token.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from itertools import combinations
from typing import Any, Final

CANDIDATES: Final = 250  # memories that one query looks at
TOGETHER: Final = 100  # memories with several common words
NEWEST: Final = 20  # memories of an author who is asked for by name
NEIGHBOURS: Final = 100  # vectors that one query looks at
COMPARED: Final = 50  # memories found by words whose vectors are compared, too
MOST_TOKENS: Final = 60
MOST_COUNTED: Final = 6  # words of one question
MOST_COMMON: Final = 5  # common words whose combinations one query asks for
MOST_FORMS: Final = 8  # forms of a common word
MOST_SHARED: Final = 5_000  # memories of other sessions: their `at`s are a parameter of 150 kB

SMALL: Final = (
    "c.id, c.of, c.at, c.beside, c.time, c.length, c.asks, c.author, c.memory_id, c.tokens, c._rid"
)
SOURCES: Final = "c.session_id, c.incarnation, c.also_in, c.incarnations"
OF_SESSION: Final = "(c.session_id = @session_id OR ARRAY_CONTAINS(c.also_in, @session_id))"
IN_SESSION: Final = f" AND {OF_SESSION}"
SHORTEST: Final = " ORDER BY c.length, c.time DESC"
LAST: Final = " ORDER BY c.time DESC"


def _has(*parameters: str) -> str:
    """ARRAY_CONTAINS uses the index, ARRAY_CONTAINS_ANY does not."""
    return "(" + " OR ".join(f"ARRAY_CONTAINS(c.tokens, @{each})" for each in parameters) + ")"


def _any_of(name: str, count: int) -> str:
    return _has(*(f"{name}{number}" for number in range(count)))


def _rows(most: int, condition: str, order: str, *, in_session: bool) -> str:
    """The small fields of memories."""
    fields = f"{SMALL}, {SOURCES}" if in_session else SMALL
    within = IN_SESSION if in_session else ""
    return f"SELECT TOP {most} {fields} FROM c WHERE {condition}{within}{order}"


@cache
def having(count: int, *, in_session: bool) -> str:
    """The shortest memories that have one of the tokens, which score highest."""
    return _rows(CANDIDATES, _any_of("t", count), SHORTEST, in_session=in_session)


@cache
def chosen(count: int, *, of_author: bool, in_session: bool) -> str:
    """Of these, those that a filter allows, and questions, which may lead to one."""
    author = " AND c.author = @author" if of_author else ""
    allowed = f"((c.time >= @since AND c.time <= @until{author}) OR c.asks = true)"
    condition = f"{_any_of('t', count)} AND {allowed}"
    return _rows(CANDIDATES, condition, SHORTEST, in_session=in_session)


@cache
def how_many(count: int, *, in_session: bool) -> str:
    """The number of memories that have one of the tokens: answered by the index alone."""
    within = IN_SESSION if in_session else ""
    return f"SELECT VALUE COUNT(1) FROM c WHERE {_any_of('t', count)}{within}"


@cache
def newest(count: int, *, in_session: bool) -> str:
    """The newest memories that have one of the tokens."""
    return _rows(NEWEST, _any_of("t", count), LAST, in_session=in_session)


@cache
def together(words: int, level: int, *, in_session: bool) -> str:
    """The shortest memories that have at least `level` of these words, each of which has
    MOST_FORMS tokens."""
    each = [_has(*(f"w{word}_{form}" for form in range(MOST_FORMS))) for word in range(words)]
    sets = (" AND ".join(chosen) for chosen in combinations(each, level))
    condition = "(" + " OR ".join(f"({all_of})" for all_of in sets) + ")"
    return _rows(TOGETHER, condition, SHORTEST, in_session=in_session)


@cache
def around(turns: int, count: int, *, in_session: bool) -> str:
    """The memories of these turns that have one of the tokens."""
    condition = f"{_any_of('p', turns)} AND {_any_of('t', count)}"
    return _rows(CANDIDATES, condition, "", in_session=in_session)


@cache
def contents(count: int) -> str:
    """The memories of these turns."""
    return f"SELECT * FROM c WHERE {_any_of('p', count)}"


NEAREST: Final = (
    f"SELECT TOP {NEIGHBOURS} c.of, c.beside, VectorDistance(c.embedding, @vector) AS similarity"
    " FROM c WHERE c.made = @made ORDER BY VectorDistance(c.embedding, @vector)"
)
NEAREST_IN_SESSION: Final = (
    f"SELECT TOP {NEIGHBOURS} c.of, c.beside, VectorDistance(c.embedding, @vector) AS similarity"
    " FROM c WHERE c.made = @made"
    " AND (c.session_id = @session_id OR ARRAY_CONTAINS(@shared, c.beside))"
    " ORDER BY VectorDistance(c.embedding, @vector)"
)


@cache
def similarity(count: int) -> str:
    """How near these vectors are."""
    ids = ", ".join(f"@v{number}" for number in range(count))
    return (
        "SELECT c.of, c.beside, VectorDistance(c.embedding, @vector) AS similarity"
        f" FROM c WHERE c.id IN ({ids}) AND c.made = @made"
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
ALL: Final = f"SELECT c.id, c.kind, c.of, {SOURCES}, c._etag FROM c"
ALL_IN_SESSION: Final = f"SELECT c.id, c.kind, c.of, {SOURCES}, c._etag FROM c WHERE {OF_SESSION}"

WITH_VECTOR: Final = "SELECT c.of, c.owner FROM c WHERE c.made = @made AND IS_DEFINED(c.of)"
MEMORIES: Final = "SELECT c.id, c.owner FROM c WHERE c.kind = @kind"

# Not answered by the index: for a migration, which reads everything.
OWNERS: Final = "SELECT DISTINCT VALUE c.owner FROM c"
OWNERS_WITH_APPS: Final = "SELECT DISTINCT c.owner, c.app_name FROM c WHERE IS_DEFINED(c.app_name)"
DOCUMENTS: Final = "SELECT * FROM c"


def slots(count: int) -> int:
    """The number of parameters of the smallest query that takes this many tokens."""
    return next(size for size in (8, 16, 24, MOST_TOKENS) if count <= size)


def filled(name: str, tokens: Sequence[str], size: int | None = None) -> dict[str, Any]:
    """The parameters for these tokens, of which there is at least one. The last are repeated."""
    size = slots(len(tokens)) if size is None else size
    every = [*tokens, *[tokens[0]] * (size - len(tokens))]
    return {f"{name}{number}": token for number, token in enumerate(every[:size])}
