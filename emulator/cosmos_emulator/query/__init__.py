"""The query language of Azure Cosmos DB for NoSQL."""

from .description import Split, describe, speaks_of, split
from .engine import Page, Source, Verbatim, run
from .errors import ContinuationError, QueryError
from .indexing import check_order
from .ordering import array_lookup, index_terms, indexed_arrays, sql_order_terms

__all__ = [
    "ContinuationError",
    "Page",
    "QueryError",
    "Source",
    "Split",
    "Verbatim",
    "array_lookup",
    "check_order",
    "describe",
    "index_terms",
    "indexed_arrays",
    "run",
    "speaks_of",
    "split",
    "sql_order_terms",
]
