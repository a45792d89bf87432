"""The API reference of the documentation site: python -m docs.reference FILE

It is made from signatures and docstrings. Every public name is on it, with every public method.
"""

from __future__ import annotations

import dataclasses
import enum
import inspect
import re
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any, ForwardRef, NamedTuple

import cosmosservice
from cosmosservice import CosmosServiceError, memory_tools, testing

HEAD = """\
# API reference

Everything that `from cosmosservice import …` offers, made from the docstrings. Methods of ADK's
own interface take the same arguments as there.
"""

ERRORS = """\
`AlreadyExistsError`, `SessionNotFoundError` and `StaleSessionError` are those of ADK. The others
are subclasses of `CosmosServiceError`."""


class Section(NamedTuple):
    title: str
    about: str
    values: list[Any]


def sections() -> Iterator[Section]:
    public = [
        getattr(cosmosservice, name) for name in cosmosservice.__all__ if not name.startswith("_")
    ]
    first = [
        cosmosservice.CosmosSessionService,
        cosmosservice.CosmosMemoryService,
        cosmosservice.CosmosArtifactService,
        cosmosservice.CosmosAccount,
    ]
    errors = [each for each in public if _is_a(each, Exception)]
    rest = [each for each in public if each not in first and each not in errors]
    for service in first:
        yield Section(service.__name__, "", [service])
    yield Section("What methods return, and functions", "", rest)
    errors.sort(key=lambda each: (each is not CosmosServiceError, each.__name__))
    yield Section("Errors", ERRORS, errors)
    for module in (memory_tools, testing):
        yield Section(module.__name__, _about(module), _own(module))


def _own(module: ModuleType) -> list[Any]:
    """The public functions and classes that are defined there."""
    return [
        each
        for name, each in vars(module).items()
        if name[0] != "_"
        and getattr(each, "__module__", None) == module.__name__
        and callable(each)
    ]


def page() -> str:
    lines = [HEAD]
    for title, about, values in sections():
        lines += [f"## {title}", "", about, ""]
        for value in values:
            lines += _described(value, alone=title == value.__name__)
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).rstrip() + "\n"


def _described(value: Any, *, alone: bool) -> Iterator[str]:
    if not alone:
        yield f"### `{value.__name__}`\n"
    if not inspect.isclass(value):
        yield from (_signature(value.__name__, value), "", _about(value), "")
        return
    if issubclass(value, Exception):
        yield from (_about(value), "")
        return
    made = "__init__" in vars(value) and not dataclasses.is_dataclass(value)
    if made and alone:
        yield from (_signature(value.__name__, value.__init__), "")
    yield from (_about(value), "")
    if made and alone:
        yield from (_about(value.__init__), "")
    yield from _fields(value)
    for name, member in members(value):
        call = member.fget if isinstance(member, property) else getattr(value, name)
        yield f"{'###' if alone else '####'} `{name}`\n"
        if isinstance(member, property):
            yield f"```python\n{name}: {_return_of(call)}\n```"
        else:
            yield _signature(name, call)
        yield from ("", _about(call), "")


def members(kind: type) -> list[tuple[str, Any]]:
    """Its public methods and properties, those of its bases included, in the order of the code."""
    found: dict[str, Any] = {}
    for base in reversed(kind.__mro__[:-1]):
        if base.__module__.startswith(
            ("cosmosservice", "google.adk.sessions", "google.adk.memory")
        ):
            found |= {name: each for name, each in vars(base).items() if name[0] != "_"}
    calls = (property, classmethod, staticmethod)
    own = set(vars(kind))
    rows = [
        (name, each)
        for name, each in found.items()
        if isinstance(each, calls) or inspect.isfunction(each)
    ]
    return sorted(rows, key=lambda row: (row[0] not in own, row[0]))


def _fields(kind: type) -> Iterator[str]:
    """Those of a dataclass or a named tuple, or the values of an enumeration."""
    if issubclass(kind, enum.Enum):
        yield from (f"* `{each.value!r}`" for each in kind)
    names = getattr(kind, "_fields", None) or getattr(kind, "__dataclass_fields__", None)
    if names is None:
        return
    for name in names:
        if not name.startswith("_"):
            yield f"* `{name}: {_plain(inspect.get_annotations(kind).get(name, 'Any'))}`"
    yield ""


def _signature(name: str, call: Any) -> str:
    signature = inspect.signature(call)
    words = []
    for each in signature.parameters.values():
        if each.name in ("self", "cls") or each.name.startswith("_"):
            continue
        if each.kind is each.KEYWORD_ONLY and "*" not in words:
            words.append("*")
        word = f"**{each.name}" if each.kind is each.VAR_KEYWORD else each.name
        if each.annotation is not each.empty:
            word += f": {_plain(each.annotation)}"
        if each.default is not each.empty:
            word += f" = {each.default!r}"
        words.append(word)
    kind = "async def" if inspect.iscoroutinefunction(call) else "def"
    line = f"{kind} {name}({', '.join(words)})"
    returned = _return_of(call)
    if name[0].isupper():
        line, returned = line.removeprefix("def "), ""
    arrow = f" -> {returned}" if returned else ""
    if len(line + arrow) > 88:
        body = "".join(f"    {word},\n" for word in words)
        line = f"{line.partition('(')[0]}(\n{body})"
    return f"```python\n{line}{arrow}\n```"


def _return_of(call: Any) -> str:
    found = inspect.signature(call).return_annotation
    return "" if found is inspect.Signature.empty else _plain(found)


def _plain(annotation: Any) -> str:
    """As it is written, without the modules."""
    if isinstance(annotation, ForwardRef):  # of a named tuple
        annotation = annotation.__forward_arg__
    text = annotation if isinstance(annotation, str) else inspect.formatannotation(annotation)
    return re.sub(r"\b(?:[a-z_]\w*\.)+(?=[A-Za-z])", "", text)


def _about(value: Any) -> str:
    """The docstring as Markdown: its Args, Returns and Raises as lists."""
    lines = (inspect.getdoc(value) or "").splitlines()
    made: list[str] = []
    while lines:
        line = lines.pop(0)
        if line in ("Args:", "Raises:", "Returns:", "Yields:"):
            block = []
            while lines and (not lines[0].strip() or lines[0].startswith(" ")):
                block.append(lines.pop(0))
            made += ["", f"**{line[:-1]}**", "", *_list(textwrap.dedent("\n".join(block))), ""]
        elif line.startswith("    "):  # a drawing or an example
            block = [line]
            while lines and (not lines[0].strip() or lines[0].startswith("    ")):
                block.append(lines.pop(0))
            drawn = textwrap.dedent("\n".join(block)).strip().splitlines()
            made += ["", "```text", *drawn, "```", ""]
        else:
            made.append(line.replace("``", "`"))
    return "\n".join(made).strip()


def _list(text: str) -> Iterator[str]:
    """One entry of a list for each that begins with a name."""
    for entry in re.split(r"\n(?=\S)", text.strip()):
        words = " ".join(entry.split()).replace("``", "`")
        yield "* " + re.sub(r"^(\*{0,2}\w+):", r"`\1`:", words)


def _is_a(value: Any, kind: type) -> bool:
    return inspect.isclass(value) and issubclass(value, kind)


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(page(), encoding="utf-8")
