"""Whether a container's indexing policy can serve the order that a query asks for."""

from typing import Any

from . import nodes
from .errors import QueryError
from .plan import plan


def check_order(text: str, indexing_policy: dict[str, Any]) -> None:
    """QueryError where the service has no index to sort by: several keys need a composite one."""
    order = plan(text).query.order_by
    paths = [nodes.property_path(item.expression) for item in order]
    if len(order) < 2 or any(path is None for path in paths):
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


def _column(column: dict[str, Any]) -> tuple[str, bool]:
    path = str(column.get("path", "")).replace('"', "")
    return path, column.get("order") == "descending"
