"""Collects the package's messages about problems: its exceptions and its log."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from cosmosservice import errors

PACKAGE = Path(errors.__file__).parent
LOUD = {"warning", "error", "exception"}  # log levels that need attention
CLASSES = {name for name in errors.__all__ if name.endswith("Error")}
SHOWN = CLASSES | {"Problem", "UsageProblem", "UsageError", "BadParameter", "ValueError", "exit"}
# ValueErrors there are caught where they are raised.
INNER = {"data_converters", "bodies.py"}


class Message(NamedTuple):
    where: str
    kind: str
    words: tuple[str, ...]  # what a user would search for


def messages() -> Iterator[Message]:
    for path in sorted(PACKAGE.rglob("*.py")):
        inner = INNER & set(path.relative_to(PACKAGE).parts)
        tree = ast.parse(path.read_text(encoding="utf-8"))
        for node in ast.walk(tree):
            if not isinstance(node, ast.Call) or not node.args:
                continue
            kind = _kind(node.func)
            if kind is None or (kind == "ValueError" and inner):
                continue
            words = _words(_pieces(node.args[0], tree))
            if words:
                where = f"{path.relative_to(PACKAGE.parent)}:{node.lineno}"
                yield Message(where, kind, words)


def _kind(function: ast.expr) -> str | None:
    if isinstance(function, ast.Name):
        return function.id if function.id in SHOWN else None
    if isinstance(function, ast.Attribute) and isinstance(function.value, ast.Name):
        owner, name = function.value.id, function.attr
        if owner == "logger" and name in LOUD:
            return f"log {name}"
        if owner in ("click", "sys") and name in SHOWN:
            return name
        if (owner, name) == ("advice", "append"):
            return "advice"
    return None


def _pieces(node: ast.expr, tree: ast.Module) -> list[str]:
    """The text between the placeholders."""
    if isinstance(node, ast.Constant):
        return re.split(r"%[a-z.]", node.value) if isinstance(node.value, str) else []
    if isinstance(node, ast.JoinedStr):
        text = "".join(
            piece.value if isinstance(piece, ast.Constant) else "\0" for piece in node.values
        )
        return text.split("\0")
    if isinstance(node, ast.BinOp):
        return _pieces(node.left, tree) + _pieces(node.right, tree)
    if isinstance(node, ast.Name):
        values = [
            each.value
            for each in ast.walk(tree)
            if isinstance(each, ast.Assign)
            and isinstance(each.targets[0], ast.Name)
            and each.targets[0].id == node.id
        ]
        found = values[0] if values else ast.Constant(getattr(errors, node.id, None))
        return _pieces(found, tree)
    return []


def _words(pieces: list[str]) -> tuple[str, ...]:
    """The first words that are not placeholders, and those of the longest piece."""
    pieces = [piece for piece in pieces if re.search(r"[A-Za-z]{2,}", piece)]
    first = [piece for piece in pieces if len(re.findall(r"[A-Za-z]{2,}", piece)) >= 3][:1]
    longest = sorted(pieces, key=len)[-1:]
    return tuple({" ".join(piece.strip(" .:,;()").split()[:6]) for piece in first + longest})
