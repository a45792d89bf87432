"""Runs a query over the documents of a container, page by page."""

import json
import time
from collections.abc import Generator, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from typing import Any, Protocol

from cosmos_emulator.query import continuation as tokens
from cosmos_emulator.query import nodes
from cosmos_emulator.query.aggregates import check_aggregate
from cosmos_emulator.query.computed import Computed
from cosmos_emulator.query.continuation import Continuation, Owner
from cosmos_emulator.query.deadline import Deadline
from cosmos_emulator.query.errors import QueryError, Unplaced
from cosmos_emulator.query.ordering import Position, Segment, SortTerm, segments, sql_order_terms
from cosmos_emulator.query.plan import ROOT, Plan, plan
from cosmos_emulator.query.policies import NO_POLICIES, Policies
from cosmos_emulator.query.pushdown import Condition, Pushdown, path_of
from cosmos_emulator.query.ranking import needs_population
from cosmos_emulator.query.rows import DEADLINE, NOW, POLICIES, Row
from cosmos_emulator.query.values import UNDEFINED, SortKey, from_client, sort_key


class Source(Protocol):
    """The documents a query sees: one partition, a range, or a whole container.

    `rows` yields (rowid, JSON text) lazily. The SQL fragments speak of `body` (the JSON text),
    `id` and `rowid`.
    """

    def rows(
        self,
        where: str | None,
        params: Sequence[Any],
        order_by: Sequence[str],
        limit: int | None,
        offset: int,
    ) -> Generator[tuple[int, str | bytes], None, None]: ...


class Verbatim(str):
    """A whole document as its stored JSON text, which can be passed on without parsing."""

    __slots__ = ()

    @classmethod
    def of(cls, body: str | bytes) -> "Verbatim":
        return cls(body if isinstance(body, str) else body.decode())


@dataclass(frozen=True, slots=True)
class Page:
    items: list[Any]
    continuation: str | None
    scanned: int
    scanned_bytes: int
    looks_up: bool  # the index is asked: for a condition or an aggregate


def run(
    text: str,
    parameters: list[dict[str, Any]],
    source: Source,
    *,
    max_items: int,
    continuation: str | None,
    max_bytes: int = 4 * 1024 * 1024,
    across_partitions: bool = False,
    policies: Policies = NO_POLICIES,
    computed_properties: Computed = (),
    verbatim: bool = False,
    deadline: Deadline | None = None,
) -> Page:
    """One page of the answer. `max_items` of -1: as many as fit into `max_bytes`. With `verbatim`
    items may be Verbatim, where that spares reading documents.

    A query across partitions aggregates as SDKs do it for the service: only `SELECT VALUE` of one
    aggregate, null where that is undefined. `policies` are those of the container, and
    `computed_properties` the names and queries that the container defines. A page ends early when
    the `deadline` is over and the query can go on from there.
    """
    try:
        query = plan(text, computed_properties)
        if query.query.group_by and query.query.order_by:
            raise QueryError("'ORDER BY' is not supported with 'GROUP BY'.", code="SC2103")
        owner = Owner(text, parameters, query.query.order_by)
        begin = tokens.read(continuation, owner) if continuation else Continuation(0)
        bindings = {**_bindings(parameters), POLICIES: policies}
        bindings[DEADLINE] = deadline or Deadline()
        this = _Run(query, bindings, source, across_partitions=across_partitions, verbatim=verbatim)
        return this.page(begin, owner, max_items if max_items > 0 else None, max_bytes)
    except RecursionError:
        raise QueryError("The query is nested too deeply.", code="SC3014") from None


def _bindings(parameters: list[dict[str, Any]]) -> Row:
    bindings: Row = {NOW: time.time_ns() // 100}
    for parameter in parameters:
        name = parameter.get("name")
        if type(name) is not str or not name.startswith("@"):
            raise Unplaced(
                f"Invalid query. Specified parameter name '{name}' is invalid. Parameter names "
                "should be in the format of symbol '@' followed by a valid identifier. E.g. "
                "@param1"
            )
        if name in bindings:
            raise Unplaced(f"Invalid query. Specified duplicate parameter name '{name}'.")
        bindings[name] = from_client(parameter.get("value", UNDEFINED))
    return bindings


@dataclass(slots=True)  # not frozen, which would make each one three times as slow
class _Result:
    value: Any
    size: int
    keys: tuple[SortKey, ...] = ()
    rowid: int = 0
    of_row: int = 0


_ALL = Segment(None, (), ("rowid",))
# Instead of a result: the page ends here.
_PAUSE = object()


class _Run:
    def __init__(
        self,
        query: Plan,
        parameters: Row,
        source: Source,
        *,
        across_partitions: bool,
        verbatim: bool = False,
    ) -> None:
        self._one_aggregate = query.grouping is not None and not query.keys
        self._across_partitions = across_partitions
        if across_partitions and self._one_aggregate:
            check_aggregate(query.query)
        self._plan = query
        self._parameters = parameters
        self._deadline: Deadline = parameters[DEADLINE]
        self._source = source
        self._reading: Generator[Any, None, None] | None = None
        self._skip, self._most = query.window(parameters)
        self._alias = None if query.inner else _root_alias(query.query)
        self._terms = self._pushed_order()
        self._condition = self._pushed_condition()
        self._type_is_fixed = self._sorted_type_is_fixed()
        self._whole = verbatim and self._selects_documents()
        self._verbatim = self._whole and self._is_whole_rows()
        self._scanned = 0
        self._scanned_bytes = 0

    def page(self, begin: Continuation, owner: Owner, most: int | None, max_bytes: int) -> Page:
        try:
            return self._page(begin, owner, most, max_bytes)
        finally:
            # An error holds on to what raised it: its rows must not stay open as long.
            if self._reading is not None:
                self._reading.close()

    def _page(self, begin: Continuation, owner: Owner, most: int | None, max_bytes: int) -> Page:
        streaming = self._terms is not None
        if self._verbatim and (begin.keys is not None or not begin.returned):
            results = self._texts(begin, most)
        else:
            results = self._stream(begin, most) if streaming else self._computed(begin)
        left = None if self._most is None else self._most - begin.returned
        items: list[Any] = []
        size = 0
        last: _Result | None = None
        more = False
        with closing(results):
            for result in results:
                if left is not None and len(items) >= left:
                    break
                if result.value is _PAUSE:
                    more, last = True, result
                    break
                full = len(items) == most or (
                    items
                    and (size + result.size > max_bytes or (streaming and self._deadline.is_over()))
                )
                if full:
                    more = True
                    break
                items.append(result.value)
                size += result.size
                last = result
                if left is not None and len(items) == left:
                    break
        token = None
        if more and last is not None:
            returned = begin.returned + len(items)
            following = (
                tokens.continuation_after(
                    returned, self._keys_of(last), last.rowid, last.of_row + 1
                )
                if streaming
                else Continuation(returned)
            )
            token = tokens.write(following, owner)
        looks_up = self._plan.where is not None or self._plan.grouping is not None
        return Page(items, token, self._scanned, self._scanned_bytes, looks_up)

    # What SQLite does

    def _pushed_condition(self) -> Condition | None:
        innermost = self._plan
        while innermost.inner is not None:
            innermost = innermost.inner
        alias, where = _root_alias(innermost.query), innermost.query.where
        if alias is None or where is None or needs_population(innermost.query):
            return None
        sorted_by = self._terms[0].path if self._terms else ()
        return Pushdown(alias, self._parameters, sorted_by=sorted_by).condition(where)

    def _pushed_order(self) -> list[SortTerm] | None:
        """The order as SQL; None if the answer must be computed as a whole."""
        query = self._plan.query
        plan = self._plan
        whole = plan.grouping or plan.inner or plan.score or query.distinct
        if whole or not query.sources:
            return None
        terms = []
        for item in query.order_by:
            path = None if self._alias is None else path_of(item.expression, self._alias)
            sql = sql_order_terms(path) if path else []
            if not path or not sql:
                return None
            terms.append(SortTerm(path, tuple(sql), item.descending))
        return terms

    def _sorted_type_is_fixed(self) -> bool:
        where = self._plan.query.where
        if not self._terms or self._alias is None or where is None:
            return False
        pushdown = Pushdown(self._alias, self._parameters)
        return pushdown.fixed_rank(where, self._terms[0].path) is not None

    def _selects_documents(self) -> bool:
        """Whether every result is a document as it is stored."""
        query = self._plan.query
        star = isinstance(query.selection, nodes.Star)
        return star and self._alias is not None and len(query.sources) == 1

    def _is_whole_rows(self) -> bool:
        """Whether the rows that SQLite finds are the answer as they are."""
        where, condition = self._plan.query.where, self._condition
        same = where is None or (condition is not None and condition.same)
        return same and self._terms is not None and not self._skip

    # The three ways through the documents

    def _texts(self, begin: Continuation, most: int | None) -> Generator[_Result, None, None]:
        """The rows themselves, from `begin` on."""
        assert self._terms is not None
        start = None if begin.keys is None else (begin.keys, begin.rowid)
        limit = self._limit(most, 0, 0) if start is None else None
        reached = start is None
        for segment in segments(self._terms, start, type_is_fixed=self._type_is_fixed):
            for rowid, body in self._rows(segment, limit, resumed=start is not None):
                if not reached:
                    position = (self._keys(json.loads(body)), rowid)
                    assert start is not None
                    reached = position != start and not self._is_before(position, start)
                if reached:
                    yield _Result(Verbatim.of(body), len(body), rowid=rowid)

    def _keys_of(self, result: _Result) -> tuple[SortKey, ...]:
        if isinstance(result.value, Verbatim) and not result.keys:
            return self._keys(json.loads(result.value))
        return result.keys

    def _stream(self, begin: Continuation, most: int | None) -> Generator[_Result, None, None]:
        """Results in SQLite's order, from `begin` on; reads no more than is asked for."""
        resumed = None if begin.keys is None else (begin.keys, begin.rowid)
        # A continuation without keys is a count: all results before it are computed again.
        skip = self._skip + begin.returned if resumed is None else 0
        limit = self._limit(most, begin.returned, skip)
        for position, document, body in self._documents(resumed, limit):
            done = begin.of_row if position == resumed else 0
            of_row = -1
            for of_row, value in self._results(document, done):
                if value is not UNDEFINED:
                    if skip:
                        skip -= 1
                    elif self._whole:
                        yield _Result(Verbatim.of(body), len(body), *position, of_row)
                    else:
                        yield _Result(value, self._size(value, len(body)), *position, of_row)
                if not skip and self._should_pause(position):
                    yield _Result(_PAUSE, 0, *position, of_row)
            if of_row < 0 and not skip and position != resumed and self._should_pause(position):
                yield _Result(_PAUSE, 0, *position, of_row)

    def _should_pause(self, position: Position) -> bool:
        """Whether the time is over, and the next page would find the position again."""
        return (
            self._deadline.is_over()
            and tokens.continuation_after(0, *position, of_row=0).keys is not None
        )

    def _documents(
        self, resumed: Position | None, limit: int | None
    ) -> Iterator[tuple[Position, Any, str | bytes]]:
        """The documents from a position on, with their own."""
        assert self._terms is not None
        last = resumed
        again = False
        while True:
            start = last
            for segment in segments(self._terms, start, type_is_fixed=self._type_is_fixed):
                fetched = 0
                for rowid, body in self._rows(segment, limit, resumed=start is not None):
                    fetched += 1
                    document = json.loads(body)
                    position = (self._keys(document), rowid)
                    if start is not None and (
                        self._is_before(position, start) or (again and position == start)
                    ):
                        continue
                    last = position
                    yield position, document, body
                if fetched == limit:
                    break
            else:
                return
            # The limit was a guess that was too low: continue after the last row.
            limit = None
            again = True

    def _computed(self, begin: Continuation) -> Generator[_Result, None, None]:
        """All results at once, those of earlier pages left out."""
        at = -1
        for at, value in enumerate(self._evaluated(self._plan)):
            if at >= begin.returned:
                yield _Result(value, len(json.dumps(value)))
        if at < 0 and self._across_partitions and self._one_aggregate and not self._skip:
            yield _Result(None, 0)

    def _evaluated(self, query: Plan) -> Iterator[Any]:
        parameters = self._parameters
        if not query.query.sources:
            return query.evaluate(parameters, [parameters])
        values: Iterator[Any]
        if query.inner is not None:
            values = self._evaluated(query.inner)
        elif not query.reads_documents and self._is_indexed(query):
            # Counting needs no more than the index.
            query = replace(query, where=None)
            met = self._condition or Condition("1")
            values = (None for _ in self._source.rows(met.sql, met.params, ("rowid",), None, 0))
        else:
            values = (json.loads(body) for _, body in self._rows(_ALL, None, resumed=False))
        return query.evaluate(parameters, ({**parameters, ROOT: value} for value in values))

    def _is_indexed(self, query: Plan) -> bool:
        """Whether the condition of SQLite lets through what WHERE would, and nothing else."""
        return query.where is None or (self._condition is not None and self._condition.same)

    def _rows(
        self, segment: Segment, limit: int | None, *, resumed: bool
    ) -> Iterator[tuple[int, str | bytes]]:
        where = [] if segment.where is None else [f"({segment.where})"]
        params = list(segment.params)
        if self._condition is not None:
            # After a continuation, the index scan starts there, not where the condition would.
            where.append(f"{'+' if resumed else ''}({self._condition.sql})")
            params += self._condition.params
        rows = self._source.rows(" AND ".join(where) or None, params, segment.order_by, limit, 0)
        self._reading = rows
        for rowid, body in rows:
            self._deadline.step(len(body))
            self._scanned += 1
            self._scanned_bytes += len(body)
            yield rowid, body

    def _limit(self, most: int | None, returned: int, skip: int) -> int | None:
        """How many rows are certainly enough, if every row gives one result."""
        exact = self._plan.query.where is None or (
            self._condition is not None and self._condition.exact
        )
        if not exact or len(self._plan.query.sources) != 1:
            return None
        left = None if self._most is None else self._most - returned
        # One more than the page, to know whether there is another.
        wanted = [n for n in (left, None if most is None else most + 1) if n is not None]
        return min(wanted) + skip + 1 if wanted else None

    def _results(self, document: Any, done: int) -> Iterator[tuple[int, Any]]:
        """The results of the rows that FROM makes of a document, numbered; undefined for those that
        WHERE leaves out. The first `done` rows are those of earlier pages."""
        row = {**self._parameters, ROOT: document}
        where, project = self._plan.where, self._plan.project
        for at, bound in enumerate(self._plan.bind(row)):
            if at < done:
                continue
            if at == done:
                self._deadline.begin()
            kept = where is None or where(bound) is True
            yield at, project(bound) if kept else UNDEFINED

    def _size(self, value: Any, of_document: int) -> int:
        if isinstance(self._plan.query.selection, nodes.Star):
            return of_document
        return len(json.dumps(value))

    def _keys(self, document: Any) -> tuple[SortKey, ...]:
        keys = []
        for term in self._terms or []:
            value = document
            for name in term.path:
                value = value.get(name, UNDEFINED) if type(value) is dict else UNDEFINED
            keys.append(sort_key(value))
        return tuple(keys)

    def _is_before(self, position: Position, other: Position) -> bool:
        terms = self._terms or []
        for term, key, other_key in zip(terms, position[0], other[0], strict=True):
            if key != other_key:
                return key > other_key if term.descending else key < other_key
        if terms and terms[-1].descending:
            return position[1] > other[1]
        return position[1] < other[1]


def _root_alias(query: nodes.Query) -> str | None:
    """The alias of the documents themselves, if FROM names them."""
    if not query.sources:
        return None
    first = query.sources[0]
    whole = isinstance(first.collection, nodes.Path) and not first.collection.steps
    return first.alias if whole and not first.iterate else None
