"""The query language of Azure Cosmos DB for NoSQL."""

from cosmos_emulator.query.computed import check_computed
from cosmos_emulator.query.description import Split, describe, fixed_key, speaks_of, split
from cosmos_emulator.query.engine import Page, Source, Verbatim, run
from cosmos_emulator.query.errors import ContinuationError, QueryError
from cosmos_emulator.query.indexing import check_order, paths_used
from cosmos_emulator.query.ordering import (
    array_lookup,
    index_terms,
    indexed_arrays,
    sql_order_terms,
)

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
