"""Holds the garbage collector off while many objects are made at once.

The collector runs again and again while objects become more, although none of them is garbage yet,
and each time it goes through more of them. Here it runs once, afterwards.
"""

import contextlib
import gc
import threading
from collections.abc import Iterator

# Reentrant: without the collector nothing else runs in between, but a caller may be nested.
_guard = threading.RLock()
_holding = 0  # callers, on all threads


@contextlib.contextmanager
def collector_held_off() -> Iterator[None]:
    """For computations that end soon and wait for nothing. An application that has switched the
    collector off finds it switched off."""
    global _holding
    with _guard:
        if not _holding and not gc.isenabled():
            held = False
        else:
            held = True
            _holding += 1
            gc.disable()
    try:
        yield
    finally:
        if held:
            with _guard:
                _holding -= 1
                if not _holding:
                    gc.enable()
