"""Imports inside the package: no cycle, and no module imports from a layer above its own.

Imports inside functions and under TYPE_CHECKING count too: people read them as well.
"""

from __future__ import annotations

import ast
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[2] / "cosmosservice"

# From the bottom up. The members of one layer do not import each other.
LAYERS = [
    {"version", "errors", "scopes", "ids"},
    {"hosting", "data_converters"},
    {"account"},
    {"sessions.store", "memory", "artifacts"},
    {"sessions"},
    {"containers", "cosmos_session_service", "cosmos_memory_service", "cosmos_artifact_service"},
    {"__init__"},
    {"explore", "memory_tools", "selftest", "testing"},
    {"adk", "cli"},
]
LAYER = {package: number for number, packages in enumerate(LAYERS) for package in packages}


def module_name(path: Path) -> str:
    parts = path.relative_to(PACKAGE).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {module_name(path): path for path in sorted(PACKAGE.rglob("*.py"))}


def imports(module: str, text: str) -> set[str]:
    """The modules of the package that this one imports; `` is the package itself."""
    is_package = MODULES.get(module, PACKAGE).name == "__init__.py"
    found = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            named = [each.name for each in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                above = ["cosmosservice", *module.split(".")] if module else ["cosmosservice"]
                above = above[: len(above) - node.level + is_package]
                base = ".".join([*above, *filter(None, [base])])
            # A name is a module itself, or comes from the module before it.
            names = [f"{base}.{each.name}" for each in node.names]
            named = [name if _own(name) in MODULES else base for name in names]
        else:
            continue
        found |= {_own(name) for name in named if name.split(".")[0] == "cosmosservice"}
    return found


def _own(name: str) -> str:
    return name.removeprefix("cosmosservice").removeprefix(".")


def package(module: str) -> str:
    parts = module.split(".")
    if parts[:2] == ["sessions", "store"]:
        return "sessions.store"
    return parts[0] or "__init__"


GRAPH = {name: imports(name, path.read_text("utf-8")) for name, path in MODULES.items()}


def goes_up(module: str, imported: str) -> bool:
    here, there = package(module), package(imported)
    return here != there and LAYER[there] >= LAYER[here]


def test_no_module_imports_itself_by_way_of_others():
    try:
        TopologicalSorter(GRAPH).prepare()
    except CycleError as cycle:
        pytest.fail(" imports ".join(reversed(cycle.args[1])))


def test_every_module_has_a_layer():
    assert {package(module) for module in MODULES} <= LAYER.keys()


def test_nothing_imports_from_a_layer_above_its_own():
    upwards = [
        f"{module} imports {imported}"
        for module, imported_ones in GRAPH.items()
        for imported in sorted(imported_ones)
        if goes_up(module, imported)
    ]
    assert not upwards, "\n".join(upwards)


@pytest.mark.parametrize(
    ("module", "text", "imported"),
    [
        ("errors", "from cosmosservice.account import container", "account.container"),
        ("errors", "def f():\n    import cosmosservice.cli.doctor", "cli.doctor"),
        (
            "hosting.resources",
            "if TYPE_CHECKING:\n    from cosmosservice import CosmosSessionService",
            "",
        ),
        ("account.container", "from ..sessions import stores", "sessions.stores"),
        ("account.container", "from ..memory.store import X", "memory.store"),
    ],
)
def test_an_import_that_goes_up_is_seen_wherever_it_stands(module, text, imported, monkeypatch):
    monkeypatch.setitem(MODULES, "memory.store", PACKAGE / "memory" / "store.py")
    assert imports(module, text) == {imported}
    assert goes_up(module, imported)
