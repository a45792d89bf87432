"""No query text is built from values, neither in the source nor on the wire."""

from __future__ import annotations

import ast
import datetime
import pathlib

import pytest
from azure.cosmos.aio import ContainerProxy
from google.genai import types

import cosmosservice
from cosmosservice.artifacts import bodies, collecting, sweeping, versions
from cosmosservice.memory import queries as memory_queries
from cosmosservice.sessions.store import queries
from tests.support.adk import event

SOURCE = pathlib.Path(cosmosservice.__file__).parent
MODULES = sorted(SOURCE.rglob("*.py"))
SQL = ("SELECT ", "ORDER BY ", " FROM c", "WHERE c.", "c.id ", "c.app_name =")


def constants(tree: ast.Module) -> set[str]:
    """Names in capitals that the module assigns once, or imports: they cannot contain values."""
    names: list[str] = []
    for node in tree.body:
        if isinstance(node, ast.Assign):
            names += [target.id for target in node.targets if isinstance(target, ast.Name)]
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            names.append(node.target.id)
        elif isinstance(node, ast.ImportFrom):
            names += [alias.asname or alias.name for alias in node.names]
    return {name for name in names if name.isupper() and names.count(name) == 1}


def is_sql(node: ast.AST) -> bool:
    return any(
        isinstance(part, ast.Constant)
        and isinstance(part.value, str)
        and any(word in part.value for word in SQL)
        for part in ast.walk(node)
    )


def made_of_counts(tree: ast.Module) -> bool:
    """Whether all public functions that return text take numbers and flags alone, so that the text
    cannot contain a value."""
    takes = [
        argument.annotation
        for node in tree.body
        if isinstance(node, ast.FunctionDef) and not node.name.startswith("_")
        if isinstance(node.returns, ast.Name) and node.returns.id == "str"
        for argument in (*node.args.args, *node.args.kwonlyargs)
    ]
    return bool(takes) and all(
        isinstance(each, ast.Name) and each.id in ("int", "bool") for each in takes
    )


def put_together(tree: ast.Module) -> list[str]:
    """The places where SQL text is combined with something that is not a constant."""
    fixed = constants(tree)
    if made_of_counts(tree):
        tree.body = [node for node in tree.body if not isinstance(node, ast.FunctionDef)]
    docstrings = {
        id(node.body[0].value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
        and node.body
        and isinstance(node.body[0], ast.Expr)
    }
    found = []
    for node in ast.walk(tree):
        if id(node) in docstrings:
            continue
        parts: list[ast.expr] = []
        if isinstance(node, ast.JoinedStr):
            parts = [part.value for part in node.values if isinstance(part, ast.FormattedValue)]
        elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add | ast.Mod):
            parts = [node.left, node.right]
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            if node.func.attr in ("format", "join", "replace", "format_map"):
                parts = [node.func.value, *node.args, *(each.value for each in node.keywords)]
        elif isinstance(node, ast.AugAssign):
            parts = [node.value]
        if not parts or not is_sql(node):
            continue
        for part in parts:
            named = isinstance(part, ast.Name) and part.id in fixed
            if not named and not isinstance(part, ast.Constant | ast.JoinedStr):
                found.append(f"line {node.lineno}: {ast.unparse(part)}")
    return found


@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.relative_to(SOURCE).as_posix())
def test_sql_is_made_of_constants_alone(path):
    assert put_together(ast.parse(path.read_text())) == []


@pytest.mark.parametrize(
    "line",
    [
        "text = f\"SELECT * FROM c WHERE c.id = '{user}'\"",
        'text = "SELECT * FROM c WHERE c.id = " + user',
        'text = "SELECT * FROM c WHERE c.id = %s" % user',
        'text = "SELECT * FROM c WHERE c.id = {}".format(user)',
        'text = " ".join(["SELECT * FROM c", where])',
        'text += " ORDER BY " + field',
        'def having(name: str) -> str:\n    return f"SELECT {name} FROM c"',
    ],
)
def test_the_check_sees_what_it_looks_for(line):
    assert put_together(ast.parse(line))


HOSTILE = "x' OR '1'='1' --\"; @app"


async def test_what_is_sent_is_the_text_of_the_source_and_values_travel_as_parameters(
    cosmos, open_service, monkeypatch
):
    known = {
        value
        for module in (queries, memory_queries, bodies, collecting, sweeping, versions)
        for value in vars(module).values()
        if isinstance(value, str)
    }
    sent = {}
    query_items = ContainerProxy.query_items

    def listen(self, query, *, parameters, **options):
        sent[query] = [each["name"] for each in parameters]
        return query_items(self, query, parameters=parameters, **options)

    monkeypatch.setattr(ContainerProxy, "query_items", listen)
    account = cosmos.account()
    memory, artifacts = cosmos.memory(account=account), cosmos.artifacts(account=account)
    service = open_service(account=account, ttl=3600)
    who = {"app_name": HOSTILE, "user_id": HOSTILE}
    this = who | {"session_id": HOSTILE}
    session = await service.create_session(**this, state={HOSTILE: HOSTILE})
    for _ in range(3):
        await service.append_event(session, event(HOSTILE, delta={HOSTILE: HOSTILE}))
    await memory.add_session_to_memory(session)
    file = types.Part(text=HOSTILE)
    await artifacts.save_artifact(**this, filename=HOSTILE, artifact=file)
    fresh = open_service(account=cosmos.account())
    assert len((await fresh.get_session(**this)).events) == 3
    page = await fresh.list_sessions_page(**who, limit=1)
    await fresh.list_sessions_page(**who, limit=1, continuation=page.continuation)
    await fresh.list_sessions(app_name=HOSTILE)
    assert len([each async for each in fresh.iter_events(**this, page_size=2)]) == 3
    await fresh.repair_session(**this)
    await fresh.delete_session(**this)
    await fresh.restore_session(**this)
    await fresh.delete_session(**this)
    await fresh.purge_deleted(older_than=datetime.timedelta(0), app_name=HOSTILE)
    await fresh.purge_user(**who)
    assert len(sent) >= 12
    assert sent.keys() <= known
    for text, names in sent.items():
        assert names or "@" not in text
        assert all(name in text for name in names)
