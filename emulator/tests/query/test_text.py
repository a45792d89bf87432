"""A query written out again is the same query."""

import ast
from pathlib import Path

import pytest

from cosmos_emulator.query.errors import QueryError
from cosmos_emulator.query.parser import parse
from cosmos_emulator.query.text import query_text


def queries():
    """Every query in the test modules beside this one."""
    for file in sorted(Path(__file__).parent.glob("test_*.py")):
        for node in ast.walk(ast.parse(file.read_text())):
            match node:
                case ast.Constant(value=str() as text) if text.startswith("SELECT "):
                    yield text


def test_every_query_reads_the_same_after_it_was_written():
    read = 0
    for text in set(queries()):
        try:
            tree = parse(text)
        except QueryError:
            continue
        assert parse(query_text(tree)) == tree, text
        read += 1
    assert read > 100


@pytest.mark.parametrize(
    "text",
    [
        'SELECT c["order"], c["a b"], c.first.x FROM c WHERE c["value"] = 1',
        'SELECT VALUE {"it\'s": "\\"\\\\\\u00e9\\ud83d\\ude00\\n"} FROM c',
        "SELECT VALUE -(-(c.x)) - -1 FROM c WHERE c.x < 1e999 OR c.x > -1e999",
        "SELECT c.a, 1, c.b + 1, c.c AS d FROM Root AS c JOIN t IN c['tags'][0] WHERE NOT t = null",
        "SELECT VALUE ARRAY(SELECT VALUE t FROM t IN c.tags) FROM c WHERE EXISTS(SELECT 1 FROM c)",
        "SELECT VALUE (SELECT VALUE 1) FROM (SELECT VALUE c.x FROM c) AS x",
        "SELECT VALUE c.a ?? c.b ? 'x' : undefined FROM c WHERE c.x NOT BETWEEN 1 AND 2 AND true",
        "SELECT VALUE c.a FROM c WHERE c.a LIKE 'a!%' ESCAPE '!' AND c.b NOT IN (1, 'x', @p)",
        "SELECT DISTINCT TOP @n VALUE c.a FROM c.items ORDER BY c.a ASC, c.b DESC, c.c",
        "SELECT * FROM c ORDER BY RANK FullTextScore(c.text, 'a') OFFSET @o LIMIT 5",
        "SELECT VALUE ALL(SELECT VALUE 1) AND FIRST(SELECT VALUE 1) AND LAST(SELECT VALUE 1)",
        "SELECT VALUE ~c.a << 2 || 'x' | c.b ^ 1 & 3 FROM c",
    ],
)
def test_all_kinds_of_expressions(text):
    tree = parse(text)
    assert parse(query_text(tree)) == tree
