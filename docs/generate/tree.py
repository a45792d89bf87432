"""The map of both packages in CONTRIBUTING.md: a line per module, from the docstring of each."""

from __future__ import annotations

import ast
import re
import textwrap
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "CONTRIBUTING.md"
_MAP = re.compile(r"(<!-- generated: map -->\n).*?(<!-- end -->)", re.DOTALL)
_COLUMN = 32
PACKAGES = ("cosmosservice", "emulator/cosmos_emulator")


def tree() -> str:
    packages = [_package(ROOT / each, 4) for each in PACKAGES]
    return "\n\n".join("\n".join(lines) for lines in packages)


def _package(folder: Path, indent: int) -> list[str]:
    lines = _line(f"{folder.name}/", folder / "__init__.py", indent)
    for path in sorted(folder.glob("*.py")):
        if path.stem not in ("__init__", "__main__"):
            lines += _line(path.stem, path, indent + 2)
    for path in sorted(folder.iterdir()):
        if (path / "__init__.py").exists():
            lines += _package(path, indent + 2)
    return lines


def _line(name: str, path: Path, indent: int) -> list[str]:
    text = ast.get_docstring(ast.parse(path.read_text("utf-8"))) or ""
    paragraph = " ".join(text.partition("\n\n")[0].split())
    sentence = re.split(r"(?<=[a-z`)])\. |\.$|:$", paragraph)[0]
    begin = f"{' ' * indent}{name}".ljust(_COLUMN - 1) + " "
    return textwrap.wrap(sentence, 118, initial_indent=begin, subsequent_indent=" " * (_COLUMN + 2))


def with_map(text: str) -> str:
    return _MAP.sub(lambda found: f"{found[1]}\n{tree()}\n\n{found[2]}", text)
