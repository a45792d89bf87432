"""The proofs can fail: each rule of the protocol, left out, is noticed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from cosmosservice.account.container import Container
from cosmosservice.sessions.store.clock import HybridClock
from cosmosservice.sessions.store.event_log import EventLog
from cosmosservice.sessions.store.log_view import LogView
from cosmosservice.sessions.store.projector import Projector
from cosmosservice.sessions.store.session_documents import SessionDocuments
from cosmosservice.sessions.store.state_documents import NO_CHANGES, StateDocument
from tests.reliability import test_clocks_and_repeats as clocks
from tests.reliability import test_interleavings as interleavings
from tests.reliability.crash_matrix import cases, run
from tests.reliability.guarantees import Broken
from tests.reliability.operations import OPERATIONS

original = {
    "replace": Container.replace,
    "read_after": EventLog.read_after,
    "append": EventLog.append,
}


async def no_settling(*_: Any) -> None:
    """A projection that leaves the changes of others unmerged."""


def no_stamps(_: StateDocument, changes: Any) -> Any:
    """Whoever writes last wins."""
    return changes


def no_observing(*_: Any) -> None:
    """A clock that goes by itself alone."""


async def no_initial_state(*_: Any) -> Any:
    """Initial user and app state that nobody completes."""
    return NO_CHANGES


def no_deletes(_: Any) -> bool:
    """A reader that does not look for tombstones."""
    return False


async def no_if_match(self: Container, document: Any, etag: str) -> str:
    partition = document["session_id" if self.name == "events" else "user_id"]
    current: Any = await self.read(document["id"], partition)
    return await original["replace"](self, document, current["_etag"] if current else etag)


async def no_recognition(*arguments: Any) -> Any:
    """Own writes look like another's."""
    return [
        replace(each, event_id="another's") for each in await original["read_after"](*arguments)
    ]


async def hasty_discard(self: EventLog, key: Any, record: Any, ttl: Any = None) -> None:
    try:
        await original["append"](self, key, record, ttl)
    except Exception:
        await self.discard(key, record)
        raise


def no_memory(*_: Any) -> None:
    """The view of the log does not grow with what is appended."""


def matrix(name: str) -> Callable[[], None]:
    def look() -> None:
        (operation,) = (each for each in OPERATIONS if each.name == name)
        for case in cases(operation):
            problem = run(case).problem
            if problem is not None:
                raise Broken(problem)

    return look


def seeds(test: Callable[[int], None]) -> Callable[[], None]:
    def look() -> None:
        for seed in range(0, 30, 3):  # worlds without losses
            test(seed)

    return look


MUTANTS = [
    (Projector, "_settle", no_settling, matrix("get of a session that is behind")),
    (
        SessionDocuments,
        "initial_changes",
        no_initial_state,
        matrix("create with user and app state"),
    ),
    ("cosmosservice.sessions.store.reading", "is_deleted", no_deletes, matrix("delete")),
    (EventLog, "read_after", no_recognition, matrix("append")),
    (EventLog, "append", hasty_discard, matrix("append over 2 MB")),
    (
        HybridClock,
        "observe",
        no_observing,
        clocks.test_who_has_read_a_value_overwrites_it_however_late_his_clock_is,
    ),
    (
        StateDocument,
        "missing",
        no_stamps,
        seeds(interleavings.test_two_sessions_of_one_user_write_its_state),
    ),
    (
        Container,
        "replace",
        no_if_match,
        seeds(interleavings.test_two_sessions_of_one_user_write_its_state),
    ),
    (LogView, "extend", no_memory, clocks.test_an_event_that_is_delivered_again_is_stored_once),
]


@pytest.mark.parametrize(
    ("owner", "name", "mutant", "proof"), MUTANTS, ids=[each[2].__name__ for each in MUTANTS]
)
def test_a_rule_that_is_left_out_is_noticed(monkeypatch, owner, name, mutant, proof):
    if isinstance(owner, str):
        monkeypatch.setattr(f"{owner}.{name}", mutant)
    else:
        monkeypatch.setattr(owner, name, mutant)
    with pytest.raises(AssertionError):
        proof()
