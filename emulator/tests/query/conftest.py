"""A container that is only an SQLite table."""

import json

import pytest

from cosmos_emulator.files import Connection
from cosmos_emulator.query import run, sql_order_terms


class Table:
    """The documents of one partition, as the emulator stores them."""

    def __init__(self, documents=(), indexed=(), composite=()):
        self.connection = Connection(":memory:")
        self.connection.execute("CREATE TABLE docs (pk TEXT, id TEXT, body TEXT)")
        self.connection.execute("CREATE INDEX by_id ON docs (pk, id)")
        for number, paths in enumerate([*([path] for path in indexed), composite]):
            terms = ", ".join(term for path in paths for term in sql_order_terms(path)) or "id"
            self.connection.execute(f"CREATE INDEX by_{number} ON docs (pk, {terms})")
        self.statements = []
        for document in documents:
            self.add(document)

    def add(self, document):
        document = {"id": f"{self.count():04}", **document}
        self.connection.execute(
            "INSERT INTO docs VALUES ('p', ?, ?)", (document["id"], json.dumps(document))
        )

    def remove(self, id):
        self.connection.execute("DELETE FROM docs WHERE id = ?", (id,))

    def count(self):
        return self.connection.execute("SELECT count(*) FROM docs").fetchone()[0]

    def rows(self, where, params, order_by, limit, offset):
        sql = "SELECT rowid, body FROM docs WHERE pk = 'p'"
        if where is not None:
            sql += f" AND ({where})"
        sql += " ORDER BY " + ", ".join(order_by)
        if limit is not None:
            sql += f" LIMIT {limit}"
        self.statements.append((sql, params))
        yield from self.connection.execute(sql, params)

    def plan(self):
        """SQLite's query plan for the last statement."""
        sql, params = self.statements[-1]
        rows = self.connection.execute(f"EXPLAIN QUERY PLAN {sql}", params)
        return "; ".join(row[3] for row in rows)

    def query(self, text, max_items=-1, **parameters):
        """All pages of the answer."""
        named = [{"name": f"@{name}", "value": value} for name, value in parameters.items()]
        items, token = [], None
        while True:
            page = run(text, named, self, max_items=max_items, continuation=token)
            items += page.items
            token = page.continuation
            if token is None:
                return items
            assert 0 < len(page.items) <= max_items or max_items < 0


@pytest.fixture
def table():
    tables = []

    def make(*documents, indexed=(), composite=()):
        tables.append(Table(documents, indexed, composite))
        return tables[-1]

    yield make
    for one in tables:
        one.connection.close()


@pytest.fixture
def value(table):
    """Evaluates one expression, with parameters."""
    container = table()

    def evaluate(expression, **parameters):
        items = container.query(f"SELECT VALUE [{expression}]", **parameters)
        return items[0][0] if items[0] else "undefined"

    return evaluate
