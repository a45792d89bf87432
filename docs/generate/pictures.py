"""Pictures of what the command line prints: python -m docs.generate.pictures

The command itself runs in a terminal of fixed width; rich draws what it printed as SVG.
"""

from __future__ import annotations

import asyncio
import io
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from google.adk.events import Event
from google.genai import types
from rich.console import Console
from rich.terminal_theme import MONOKAI
from rich.text import Text

from cosmosservice import CosmosSessionService
from cosmosservice.cli.demo.script import event

FOLDER = Path(__file__).parents[1] / "images"
WIDTH = 92
NAMES = {"app_name": "shop", "user_id": "ada", "session_id": "order-7"}
SHOW = ["sessions", "show", "--app", "shop", "--user", "ada", "order-7"]
_BEGAN = 1_790_000_000.0


def timeline() -> str:
    """What `sessions show` prints of a conversation, with its colours."""
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(_converse(f"{folder}/shop.db"))
        return _printed(SHOW, folder)


def _printed(arguments: list[str], folder: str) -> str:
    environment = os.environ | {
        "COSMOSDB_ENDPOINT": "embedded:shop.db",
        "COLUMNS": str(WIDTH),
        "FORCE_COLOR": "1",
        "COLORTERM": "truecolor",
        "TERM": "xterm-256color",
        "TZ": "UTC",
        "PYTHONIOENCODING": "utf-8",
    }
    command = [sys.executable, "-m", "cosmosservice.cli", *arguments]
    return subprocess.run(
        command, cwd=folder, env=environment, check=True, stdout=subprocess.PIPE, encoding="utf-8"
    ).stdout


async def _converse(path: str) -> None:
    async with CosmosSessionService.embedded(path) as service:
        session = await service.create_session(**NAMES)
        for event in _events():
            await service.append_event(session, event)


def _events() -> list[Event]:
    ask = {"name": "find_order", "id": "call-1", "args": {"number": 7}}
    answer = {
        "name": "find_order",
        "id": "call-1",
        "response": {"status": "on its way", "day": "Friday"},
    }
    return [
        _event(0.0, "user", types.Part(text="Where is my order?")),
        _event(1.4, "clerk", types.Part(function_call=types.FunctionCall(**ask)), tokens=(412, 18)),
        _event(
            1.9,
            "clerk",
            types.Part(function_response=types.FunctionResponse(**answer)),
            delta={"order": 7, "user:last_order": 7},
        ),
        _event(
            3.2,
            "clerk",
            types.Part(text="Order 7 is on its way. It arrives on Friday."),
            tokens=(467, 31),
        ),
        _event(41.0, "user", types.Part(text="Thank you! Please ring twice.")),
        _event(
            42.6,
            "clerk",
            types.Part(text="I have told the driver."),
            tokens=(502, 12),
            delta={"note": "ring twice"},
        ),
    ]


def _event(
    after: float,
    author: str,
    part: types.Part,
    tokens: tuple[int, int] | None = None,
    delta: dict[str, object] | None = None,
) -> Event:
    made = event(author, int(after > 40), part, delta, tokens)
    made.timestamp = _BEGAN + after
    return made


def drawn(printed: str, title: str) -> str:
    console = Console(record=True, width=WIDTH, file=io.StringIO(), color_system="truecolor")
    console.print(Text.from_ansi(printed.rstrip("\n")))
    picture = console.export_svg(title=title, theme=MONOKAI, unique_id="terminal")
    # Rich's template loads its font from another site; whoever looks has a monospace of their own.
    picture = re.sub(r"\s*@font-face \{.*?\}", "", picture, flags=re.DOTALL)
    return picture.replace("Fira Code", "ui-monospace, SFMono-Regular, Menlo, Consolas")


if __name__ == "__main__":
    FOLDER.joinpath("timeline.svg").write_text(
        drawn(timeline(), f"cosmosservice {' '.join(SHOW)}"), encoding="utf-8"
    )
