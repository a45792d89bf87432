"""A query made ready to run: its clauses as closures, and their evaluation in memory."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import islice
from typing import Any

from cosmos_emulator.query import nodes
from cosmos_emulator.query.aggregates import has_aggregate
from cosmos_emulator.query.compiler import Grouping, Scope, compile_expression
from cosmos_emulator.query.computed import Computed, with_computed
from cosmos_emulator.query.deadline import Deadline
from cosmos_emulator.query.errors import QueryError
from cosmos_emulator.query.parser import parse
from cosmos_emulator.query.ranking import (
    Score,
    compile_score,
    is_distance,
    is_score,
    needs_population,
    ranked,
)
from cosmos_emulator.query.rows import DEADLINE, Evaluate, Row
from cosmos_emulator.query.values import UNDEFINED, identity, sort_key

# Where a row holds the document it starts from.
ROOT = "#root"

Bind = Callable[[Row], Iterator[Row]]


@dataclass(frozen=True, slots=True)
class Plan:
    """`inner` is the query that FROM is made of, if it is one over the whole container."""

    query: nodes.Query
    inner: "Plan | None"
    bind: Bind
    where: Evaluate | None
    keys: tuple[Evaluate, ...]
    grouping: Grouping | None
    order: tuple[tuple[Evaluate, bool], ...]
    score: Score | None
    reads_documents: bool
    project: Evaluate
    top: Evaluate | None
    offset: Evaluate | None
    limit: Evaluate | None

    def rows(self, row: Row) -> Iterator[Row]:
        """The rows that FROM makes of one document and WHERE lets through."""
        where = self.where
        if where is None:
            return self.bind(row)
        return (bound for bound in self.bind(row) if where(bound) is True)

    def window(self, row: Row) -> tuple[int, int | None]:
        """How many results to skip, and how many to return at most."""
        skip = 0 if self.offset is None else _count(self.offset(row), "OFFSET")
        counts = [
            _count(clause(row), name)
            for clause, name in ((self.top, "TOP"), (self.limit, "LIMIT"))
            if clause is not None
        ]
        return skip, min(counts, default=None)

    def evaluate(self, outer: Row, documents: Iterable[Row]) -> Iterator[Any]:
        """All results, computed in memory from the rows of the documents."""
        _step(outer)
        population: list[Row] = []
        if needs_population(self.query):
            documents = population = list(documents)
        bound: Iterator[Row] = (row for document in documents for row in self.rows(document))
        if self.grouping is not None:
            bound = self._groups(outer, bound)
        elif self.score is not None:
            bound = iter(ranked(list(bound), self._bound_all(population), self.score))
        elif self.order:
            bound = iter(self._sorted(bound))
        results: Iterator[Any] = (
            value for row in bound if (value := self.project(row)) is not UNDEFINED
        )
        if self.query.distinct:
            results = _distinct(results)
        skip, most = self.window(outer)
        return islice(results, skip, None if most is None else skip + most)

    def _bound_all(self, documents: Iterable[Row]) -> list[Row]:
        """The rows of all documents, also those that WHERE leaves out."""
        return [row for document in documents for row in self.bind(document)]

    def _sorted(self, rows: Iterable[Row]) -> list[Row]:
        ordered = list(rows)
        for key, descending in reversed(self.order):
            # A reversed sort keeps ties in their order; the service reverses them as well.
            if descending:
                ordered.reverse()
            ordered.sort(key=lambda row, key=key: sort_key(key(row)), reverse=descending)  # type: ignore[misc]
        return ordered

    def _groups(self, outer: Row, rows: Iterable[Row]) -> Iterator[Row]:
        grouping = self.grouping
        assert grouping is not None
        groups: dict[Any, tuple[Row, list[Any]]] = {}
        if not self.keys:
            groups[()] = (dict(outer), [make() for _, make, _ in grouping.aggregates])
        for row in rows:
            values = [key(row) for key in self.keys]
            group = tuple(identity(value) for value in values)
            if group not in groups:
                slots = {f"#key{at}": value for at, value in enumerate(values)}
                groups[group] = (
                    {**outer, **slots},
                    [make() for _, make, _ in grouping.aggregates],
                )
            for aggregate, (_, _, argument) in zip(
                groups[group][1], grouping.aggregates, strict=True
            ):
                aggregate.add(argument(row))
        for row, totals in groups.values():
            for aggregate, (slot, _, _) in zip(totals, grouping.aggregates, strict=True):
                row[slot] = aggregate.result()
            yield row


def _count(value: Any, clause: str) -> int:
    if type(value) is not int or value < 0:
        raise QueryError(f"The {clause} count must be a non-negative integer.", code="SC2062")
    return value


def _distinct(values: Iterable[Any]) -> Iterator[Any]:
    seen: set[Any] = set()
    for value in values:
        key = identity(value)
        if key not in seen:
            seen.add(key)
            yield value


@lru_cache(maxsize=256)
def plan(text: str, computed: Computed = ()) -> Plan:
    """The plan of a query over a container with these computed properties."""
    query = parse(text)
    _check_order(query)
    return _compile(with_computed(query, computed), frozenset(), top_level=True)


def _subquery(query: nodes.Query, outer: frozenset[str]) -> Callable[[Row], Iterator[Any]]:
    inner = _compile(query, outer, top_level=False)
    return lambda row: inner.evaluate(row, [row])


def _compile(query: nodes.Query, outer: frozenset[str], *, top_level: bool) -> Plan:
    inner = None
    if top_level and query.sources and isinstance(query.sources[0].collection, nodes.Query):
        inner = _compile(query.sources[0].collection, outer, top_level=True)
        results = replace(query.sources[0], collection=nodes.Path("", ()))
        query = replace(query, sources=(results, *query.sources[1:]))
    bind, names = _from(query.sources, outer, top_level=top_level)
    scope = Scope(names, _subquery)
    grouping = (
        Grouping(query.group_by) if query.group_by or has_aggregate(query.selection) else None
    )
    scored = query.ranked or any(is_distance(item.expression) for item in query.order_by)
    return Plan(
        query=query,
        inner=inner,
        bind=bind,
        where=None if query.where is None else compile_expression(query.where, scope),
        keys=tuple(compile_expression(key, scope) for key in query.group_by),
        grouping=grouping,
        order=()
        if scored
        else tuple(
            (compile_expression(item.expression, scope), _descends(item)) for item in query.order_by
        ),
        score=compile_score(query, scope) if scored else None,
        reads_documents=inner is not None or _reads_documents(query),
        project=_project(query, Scope(names, _subquery, grouping)),
        top=_window_clause(query.top),
        offset=_window_clause(query.offset),
        limit=_window_clause(query.limit),
    )


def _descends(item: nodes.Order) -> bool:
    # The closest vectors come first, unless the query says otherwise.
    return item.descending or (is_score(item.expression) and not item.direction_given)


def _window_clause(node: nodes.Expression | None) -> Evaluate | None:
    return None if node is None else compile_expression(node, Scope(frozenset(), _subquery))


def _from(
    sources: tuple[nodes.Source, ...], outer: frozenset[str], *, top_level: bool
) -> tuple[Bind, frozenset[str]]:
    names = outer
    binds: list[Bind] = []
    for at, source in enumerate(sources):
        binds.append(_source(source, names, is_root=top_level and at == 0))
        if source.alias:
            if source.alias in names - outer:
                raise QueryError(
                    f"The input alias '{source.alias}' is specified more than once in the FROM "
                    "clause.",
                    code="SC2011",
                )
            names |= {source.alias}

    def bind(row: Row) -> Iterator[Row]:
        rows: Iterator[Row] = iter((row,))
        for one in binds:
            rows = _each(one, rows)
        return rows

    return (binds[0] if len(binds) == 1 else bind), names


def _each(bind: Bind, rows: Iterator[Row]) -> Iterator[Row]:
    for row in rows:
        _step(row)
        yield from bind(row)


def _step(row: Row) -> None:
    deadline: Deadline | None = row.get(DEADLINE)
    if deadline is not None:
        deadline.step()


def _source(source: nodes.Source, names: frozenset[str], *, is_root: bool) -> Bind:
    alias = source.alias
    if isinstance(source.collection, nodes.Query):
        results = _subquery(source.collection, names)
    else:
        results = _path(source.collection, names, is_root=is_root)

    def bind(row: Row) -> Iterator[Row]:
        for value in results(row):
            yield {**row, alias: value}

    def iterate(row: Row) -> Iterator[Row]:
        for value in results(row):
            if type(value) is list:
                for item in value:
                    yield {**row, alias: item}

    return iterate if source.iterate else bind


def _path(
    path: nodes.Path, names: frozenset[str], *, is_root: bool
) -> Callable[[Row], Iterator[Any]]:
    # The first name of the outermost FROM is the container, whatever it is called.
    start = ROOT if is_root else path.name
    if not is_root and path.name not in names:
        raise QueryError(f"Identifier '{path.name}' could not be resolved.", code="SC2001")

    def results(row: Row) -> Iterator[Any]:
        value: Any = row[start]
        for step in path.steps:
            if not _has(value, step):
                return
            value = value[step]
        if value is not UNDEFINED:
            yield value

    return results


def _has(value: Any, step: str | int) -> bool:
    if type(step) is int:
        return type(value) is list and step < len(value)
    return type(value) is dict and step in value


def _project(query: nodes.Query, scope: Scope) -> Evaluate:
    match query.selection:
        case nodes.Star():
            if len(query.sources) != 1:
                raise QueryError("'SELECT *' is only valid with a single input set.", code="SC2040")
            return compile_expression(nodes.Reference(query.sources[0].alias), scope)
        case nodes.Value(expression):
            return compile_expression(expression, scope)
        case nodes.Properties(items):
            return compile_expression(nodes.ObjectLiteral(items), scope)


def _check_order(query: nodes.Query) -> None:
    """A container can be sorted only by what its index covers: paths of its documents."""
    if query.ranked:
        return
    for item in query.order_by:
        path = nodes.property_path(item.expression)
        if is_distance(item.expression) or is_score(item.expression):
            continue
        if path is None or not path[1]:
            raise QueryError(
                "Unsupported ORDER BY clause. ORDER BY item expression could not be mapped to a "
                "document path.",
                code="SC2201",
            )
        if any(path[0] == source.alias for source in query.sources[1:]):
            raise QueryError(
                "Order-by over correlated collections is not supported.", code="SC2202"
            )


def _reads_documents(query: nodes.Query) -> bool:
    """Whether the answer depends on what is in the documents that WHERE lets through, and not only
    on their number."""
    if len(query.sources) != 1 or query.sources[0].iterate:
        return True
    collection = query.sources[0].collection
    if isinstance(collection, nodes.Query) or collection.steps:
        return True
    parts = (query.selection, query.group_by, query.order_by)
    return any(
        isinstance(node, nodes.Reference | nodes.Subquery | nodes.Star)
        for node in nodes.walk(parts)
    )
