"""The query language of Azure Cosmos DB for NoSQL."""

from .engine import Page, Source, run
from .errors import ContinuationError, QueryError
from .pushdown import sql_order_terms

__all__ = ["ContinuationError", "Page", "QueryError", "Source", "run", "sql_order_terms"]
