"""The emulator over HTTP, as a separate program would serve it."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Iterator

from cosmos_emulator.emulator import Emulator
from cosmos_emulator.explorer.pages import Explorer
from cosmos_emulator.server import Server


@contextlib.contextmanager
def serving(
    emulator: Emulator, patience: float | None = None, explorer: Explorer | None = None
) -> Iterator[str]:
    """Serves the emulator from a thread, and yields the endpoint. `patience` limits the start, the
    stop and the end of the thread to that many seconds each. By default there is no limit."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, name="emulator", daemon=True)
    thread.start()
    server = Server(emulator, explorer=explorer)
    try:
        yield asyncio.run_coroutine_threadsafe(server.start(), loop).result(patience)
    finally:
        asyncio.run_coroutine_threadsafe(server.stop(), loop).result(patience)
        loop.call_soon_threadsafe(loop.stop)
        thread.join(patience)
        loop.close()
