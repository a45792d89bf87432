"""The query language of Azure Cosmos DB for NoSQL."""

from .computed import check_computed
from .description import Split, describe, fixed_key, speaks_of, split
from .engine import Page, Source, Verbatim, run
from .errors import ContinuationError, QueryError
from .indexing import check_order, paths_used
from .ordering import array_lookup, index_terms, indexed_arrays, sql_order_terms

__all__ = [
    "ContinuationError",
    "Page",
    "QueryError",
    "Source",
    "Split",
    "Verbatim",
    "array_lookup",
    "check_computed",
    "check_order",
    "describe",
    "fixed_key",
    "index_terms",
    "indexed_arrays",
    "paths_used",
    "run",
    "speaks_of",
    "split",
    "sql_order_terms",
]
