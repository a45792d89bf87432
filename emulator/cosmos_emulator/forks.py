"""A fork of the process while other threads use emulators.

A forked child has only the thread that forked. What other threads had locked would stay locked in
it for ever, and SQLite would believe that the child holds the parent's locks on the file. So a fork
waits until no thread is inside an emulator, and every file is closed meanwhile. Parent and child
each open it again at their next use.
"""

from __future__ import annotations

import os
import threading
import weakref
from typing import Protocol

opening = threading.RLock()
"""Held while a file is opened."""


class Forkable(Protocol):
    def before_fork(self) -> None:
        """Waits for other threads, and keeps them out."""

    def after_fork(self) -> None:
        """In the parent and in the child: let threads in again."""


_storages: weakref.WeakSet[Forkable] = weakref.WeakSet()
_locks: weakref.WeakSet[threading.Lock] = weakref.WeakSet()
_waiting: list[Forkable] = []
_held: list[threading.Lock] = []


def hold_during_forks(storage: Forkable) -> None:
    _storages.add(storage)


def lock() -> threading.Lock:
    """A lock that a forked child finds free. Its holder must not wait for any other lock."""
    made = threading.Lock()
    _locks.add(made)
    return made


def _before() -> None:
    opening.acquire()
    for storage in list(_storages):
        _waiting.append(storage)
        storage.before_fork()
    for each in list(_locks):  # the last ones: the holder of a storage may be waiting for them
        each.acquire()
        _held.append(each)


def _after() -> None:
    while _held:
        _held.pop().release()
    while _waiting:
        _waiting.pop().after_fork()
    opening.release()


if hasattr(os, "register_at_fork"):  # not on Windows
    os.register_at_fork(before=_before, after_in_parent=_after, after_in_child=_after)
