"""`cosmosservice demo`: plays the acts by itself, or as keys are pressed."""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
import webbrowser
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Final

from rich.console import Console
from rich.text import Text

from cosmosservice.cli.demo.acts import SESSION, Acts
from cosmosservice.cli.demo.keys import key_presses, there_are_keys
from cosmosservice.cli.demo.script import APP, USER
from cosmosservice.cli.demo.stage import Stage
from cosmosservice.cli.layout import Folded

_WIDTH: Final = 80  # if the output is not a terminal
_SLOW, _QUICK = 1.5, 0.3  # seconds between two events
_LONG: Final = 60  # events after which the conversation grows only when it is told to

ABOUT: Final = (
    "The agent of a shop, played by a script, keeps its session in a Cosmos DB emulator on this"
    " machine. Every writer is a process of its own. Nothing leaves this machine, and nothing is"
    " kept."
)
KEYS: Final = "k kill  c collide  p past  f fork  m memory  e erase  t timeline  q quit"


async def play(*, short: bool, browser: bool) -> None:
    """By itself if `short` or without a terminal; otherwise as keys are pressed."""
    console = _console()
    console.print(Folded(Text(ABOUT), 0), soft_wrap=True)
    console.print()
    with_keys = there_are_keys() and not short

    async def pause() -> None:
        await asyncio.sleep(_SLOW if with_keys else _QUICK)

    async with contextlib.AsyncExitStack() as stack:
        # Keys that are pressed while the writers start count, too.
        pressed = stack.enter_context(key_presses()) if with_keys else None
        stage = await stack.enter_async_context(Stage.built())
        acts = Acts(stage, console, pause)
        await acts.begin()
        if not short:
            address = await stack.enter_async_context(_page(stage))
            console.print(Text(f"  {address}", "bold blue"), soft_wrap=True)
            if browser:
                webbrowser.open(address)
        if pressed is not None:
            await _as_keys_are_pressed(acts, console, pressed)
        else:
            await _by_itself(acts)
    _next_step(console, short=short)


def _console() -> Console:
    console = Console(highlight=False)
    if console.is_terminal:
        return console
    # Folded as on a terminal of 80 columns, without colours.
    return Console(highlight=False, width=_WIDTH, force_terminal=True, color_system=None)


@contextlib.asynccontextmanager
async def _page(stage: Stage) -> AsyncIterator[str]:
    from cosmosservice.explore.dependants import Dependants
    from cosmosservice.explore.rendering import url
    from cosmosservice.explore.server import Explorer

    dependants = await Dependants.on(stage.account)
    first = url("/session", app=APP, user=USER, session=SESSION)
    explorer = Explorer(stage.sessions, stage.meter, dependants, write=True, first=first)
    async with explorer.served() as address:
        yield address


async def _by_itself(acts: Acts) -> None:
    for _ in range(4):
        await acts.grow()
    for act in (
        acts.kill,
        acts.collide,
        acts.past,
        acts.fork,
        acts.memory,
        acts.erase,
        acts.timeline,
    ):
        await act()


async def _as_keys_are_pressed(acts: Acts, console: Console, pressed: asyncio.Queue[str]) -> None:
    chosen: dict[str, Callable[[], Awaitable[None]]] = {
        "k": acts.kill,
        "c": acts.collide,
        "p": acts.past,
        "f": acts.fork,
        "m": acts.memory,
        "e": acts.erase,
        "t": acts.timeline,
    }
    _show_keys(console)
    while True:
        if pressed.empty() and len(acts) < _LONG:
            await acts.grow()
            continue
        key = await pressed.get()
        if key in ("q", "\x04"):
            return
        act = chosen.get(key)
        if act is not None:
            await act()
        _show_keys(console)


def _show_keys(console: Console) -> None:
    console.print()
    console.print(Folded(Text(KEYS, "reverse"), 0), soft_wrap=True)


def _next_step(console: Console, *, short: bool) -> None:
    program = sys.argv[0] if not os.path.isabs(sys.argv[0]) else "cosmosservice"
    lines = [
        "",
        "Next",
        *(
            [f"  {program} demo", "      the same in the browser, as keys are pressed"]
            if short
            else ()
        ),
        '  CosmosSessionService.embedded("sessions.db")',
        "      in your agent, instead of InMemorySessionService(): docs/quickstart.md",
    ]
    console.print("\n".join(lines), markup=False, soft_wrap=True)
