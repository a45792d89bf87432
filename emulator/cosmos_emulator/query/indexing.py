"""Whether a container's indexing policy can serve the order that a query asks for."""

from collections.abc import Callable
from typing import Any

from cosmos_emulator.query import nodes
from cosmos_emulator.query.errors import QueryError
from cosmos_emulator.query.plan import plan


def check_order(
    text: str, indexing_policy: dict[str, Any], included: Callable[[tuple[str, ...]], bool]
) -> None:
    """QueryError where the service has no index to sort by: a path that is not excluded, and for
    several keys a composite index."""
    order = plan(text).query.order_by
    paths = [nodes.property_path(item.expression) for item in order]
    if not order or any(path is None for path in paths):
        return
    if len(order) == 1:
        assert paths[0] is not None
        if not included(paths[0][1]):
            raise QueryError(
                "The index path corresponding to the specified order-by item is excluded.",
                code="SC2204",
            )
        return
    wanted = [
        ("/" + "/".join(path[1]), item.descending)
        for path, item in zip(paths, order, strict=True)
        if path is not None
    ]
    reversed_order = [(path, not descending) for path, descending in wanted]
    for index in indexing_policy.get("compositeIndexes") or []:
        columns = [_column(column) for column in index]
        if columns in (wanted, reversed_order):
            return
    raise QueryError(
        "The order by query does not have a corresponding composite index that it can be served "
        "from.",
        code="SC2203",
    )


def paths_used(text: str) -> list[tuple[str, ...]]:
    """The paths of documents by which a query filters and sorts, each once."""
    query = plan(text).query
    if not query.sources:
        return []
    root = query.sources[0].alias
    found: dict[tuple[str, ...], None] = {}
    skipped: set[int] = set()
    for node in nodes.walk((query.where or (), query.order_by)):
        if not isinstance(node, nodes.Member) or id(node) in skipped:
            continue
        path = nodes.property_path(node)
        if path is not None and path[0] == root:
            found.setdefault(path[1])
            # What the path goes through is not a path of its own.
            inner = node.target
            while isinstance(inner, nodes.Member):
                skipped.add(id(inner))
                inner = inner.target
    return list(found)


def _column(column: dict[str, Any]) -> tuple[str, bool]:
    path = str(column.get("path", "")).replace('"', "")
    return path, column.get("order") == "descending"
