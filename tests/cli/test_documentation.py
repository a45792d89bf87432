"""docs/command-line.md and docs/migration.md name the existing commands and options."""

import re
import shlex
from pathlib import Path

import click
import pytest

from cosmosservice.cli.commands import cli

DOCS = Path(__file__).parents[2] / "docs"


def all_commands(group=cli, path=()):
    for name, command in group.commands.items():
        if isinstance(command, click.Group):
            yield from all_commands(command, (*path, name))
        else:
            yield " ".join((*path, name)), command


COMMANDS = dict(all_commands())


def test_every_command_is_described_and_no_other():
    rows = re.findall(
        r"^\| `cosmosservice ([a-z -]+)", (DOCS / "command-line.md").read_text(), re.M
    )
    assert sorted(row.strip() for row in rows) == sorted(COMMANDS)


@pytest.mark.parametrize("page", ["command-line.md", "migration.md"])
def test_examples_are_commands_with_options_that_exist(page):
    examples = re.findall(r"^cosmosservice (.*)$", (DOCS / page).read_text(), re.M)
    assert examples
    for example in examples:
        name = next(n for n in sorted(COMMANDS, reverse=True) if example.startswith(n))
        declared = {opt for parameter in COMMANDS[name].params for opt in parameter.opts}
        assert set(re.findall(r"(?<= )--?[a-z-]+", example)) <= declared, example


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_says_what_it_is_for_within_80_columns(command, name, monkeypatch):
    assert (COMMANDS[name].help or "").strip()
    monkeypatch.setenv("COLUMNS", "80")
    assert max(map(len, command(*name.split(), "--help").out.splitlines())) <= 80


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_help_ends_with_an_example_that_parses(name, folder):
    for file in ("greeter.jsonl", "tea.png"):
        folder.joinpath(file).touch()
    command = COMMANDS[name]
    examples = re.findall(r"^  cosmosservice (.*)$", command.epilog or "", re.M)
    assert examples
    for example in examples:
        words = shlex.split(example)
        path = name.split()
        assert words[: len(path)] == path
        command.make_context(name, words[len(path) :]).close()


@pytest.mark.parametrize("group", [[], ["sessions"], ["memory"], ["artifacts"]])
def test_lists_of_commands_are_not_cut(command, group, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    assert "..." not in command(*group, "--help").out.partition("Commands:")[2]
