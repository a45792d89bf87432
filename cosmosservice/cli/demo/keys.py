"""Single key presses of a terminal."""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
from collections.abc import Iterator


@contextlib.contextmanager
def key_presses() -> Iterator[asyncio.Queue[str]]:
    """The keys that are pressed, without waiting for Enter. Needs a terminal and its loop."""
    import termios
    import tty

    pressed: asyncio.Queue[str] = asyncio.Queue()
    number = sys.stdin.fileno()
    before = termios.tcgetattr(number)
    loop = asyncio.get_running_loop()
    loop.add_reader(number, lambda: pressed.put_nowait(os.read(number, 1).decode("ascii", "?")))
    tty.setcbreak(number, termios.TCSADRAIN)  # what was pressed before counts
    try:
        yield pressed
    finally:
        loop.remove_reader(number)
        termios.tcsetattr(number, termios.TCSADRAIN, before)


def there_are_keys() -> bool:
    try:
        import termios  # noqa: F401
    except ModuleNotFoundError:  # on Windows
        return False
    return sys.stdin.isatty() and sys.stdout.isatty()
