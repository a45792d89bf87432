"""The query language of Azure Cosmos DB for NoSQL."""

from .description import describe, must_be_merged
from .engine import Page, Source, run
from .errors import ContinuationError, QueryError
from .indexing import check_order
from .ordering import index_terms, sql_order_terms

__all__ = [
    "ContinuationError",
    "Page",
    "QueryError",
    "Source",
    "check_order",
    "describe",
    "index_terms",
    "must_be_merged",
    "run",
    "sql_order_terms",
]
