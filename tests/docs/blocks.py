"""Runs the code blocks of a page, one after the other, in an empty folder.

```python       is run, with `await` at the top level as in `python -m asyncio`
```bash run     `cosmosservice …` and `export …` are run
```bash         is only parsed: bash must accept it, and `cosmosservice` its options
"""

from __future__ import annotations

import ast
import asyncio
import inspect
import os
import re
import shlex
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import click
from click.testing import CliRunner

from cosmosservice.cli.commands import cli

_BLOCK = re.compile(r"^```([^\n]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_TOP_LEVEL_AWAIT = ast.PyCF_ALLOW_TOP_LEVEL_AWAIT


class Block(NamedTuple):
    kind: str
    text: str
    line: int


def blocks(page: Path) -> list[Block]:
    text = page.read_text(encoding="utf-8")
    return [
        Block(found[1].strip(), found[2], text.count("\n", 0, found.start(2)) + 1)
        for found in _BLOCK.finditer(text)
    ]


class Reader:
    """A reader who types in what a page shows."""

    def __init__(self, page: Path) -> None:
        self._page = page
        self._names: dict[str, Any] = {"__name__": "__main__"}

    def follow(self) -> None:
        with asyncio.Runner() as runner:
            for block in blocks(self._page):
                if block.kind == "python":
                    self._python(block, runner)
                elif block.kind == "bash run":
                    for line in commands(block.text):
                        self._shell(line)

    def _python(self, block: Block, runner: asyncio.Runner) -> None:
        text = "\n" * (block.line - 1) + block.text  # so that errors name the page's line
        code = compile(text, str(self._page), "exec", _TOP_LEVEL_AWAIT, dont_inherit=True)

        async def run() -> None:
            result = eval(code, self._names)
            if inspect.iscoroutine(result):
                await result

        runner.run(run())

    def _shell(self, line: str) -> None:
        words = shlex.split(line, comments=True)
        if words[0] == "export":
            os.environ.update([word.split("=", 1) for word in words[1:]])
            return
        assert words[0] == "cosmosservice", f"only parsed blocks may have: {line}"
        result = CliRunner().invoke(cli, words[1:])
        assert result.exit_code == 0, f"{line}\n{result.output}\n{result.exception!r}"


def commands(text: str) -> Iterator[str]:
    """The lines of a shell block, with continued lines joined."""
    for line in text.replace("\\\n", " ").splitlines():
        if line.strip() and not line.lstrip().startswith("#"):
            yield line.strip()


def check_shell(text: str) -> None:
    """bash can read it, and `cosmosservice` has these commands and options."""
    subprocess.run(["bash", "-n"], input=text, text=True, check=True)
    for line in commands(text):
        if re.match(r"(\w+=\S+ )*cosmosservice ", line):
            words = shlex.split(line, comments=True)
            check_options(words[words.index("cosmosservice") + 1 :])


def check_options(words: list[str]) -> None:
    command: click.Command = cli
    parent = None
    while isinstance(command, click.Group) and not words[0].startswith("-"):
        parent = click.Context(command, parent=parent, info_name=command.name)
        name, *words = words
        found = command.get_command(parent, name)
        assert found is not None, name
        command = found
    if command.name != "emulator":  # its options are another program's
        context = click.Context(command, parent=parent)
        command.make_parser(context).parse_args(list(words))  # values are not looked at
