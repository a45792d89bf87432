"""The proofs can fail: if any rule of the protocol is omitted, a test notices."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import pytest

from cosmosservice.account import server_clock
from cosmosservice.account.container import Container
from cosmosservice.account.sending import Sender
from cosmosservice.account.server_clock import ServerClock
from cosmosservice.errors import CosmosServiceError
from cosmosservice.sessions.administration import Administration
from cosmosservice.sessions.store import documents
from cosmosservice.sessions.store.clock import HybridClock
from cosmosservice.sessions.store.creating import Creating, _Creation
from cosmosservice.sessions.store.erased import Erased
from cosmosservice.sessions.store.erasure import Erasure
from cosmosservice.sessions.store.event_log import EventLog
from cosmosservice.sessions.store.large_values import LargeValues
from cosmosservice.sessions.store.log_view import LogView
from cosmosservice.sessions.store.projection import Projection
from cosmosservice.sessions.store.session_documents import SessionDocuments
from cosmosservice.sessions.store.state import NO_STATE
from cosmosservice.sessions.store.state_documents import NO_CHANGES, StateDocument
from tests.reliability import test_clocks_and_repeats as clocks
from tests.reliability import test_interleavings as interleavings
from tests.reliability import test_lag as lag
from tests.reliability import test_lag_and_erasure as erasure
from tests.reliability import test_server_time as server_time
from tests.reliability.crash_matrix import cases, run
from tests.reliability.guarantees import Broken
from tests.reliability.lag import WORLDS
from tests.reliability.matrix import FAULTS
from tests.reliability.operations import OPERATIONS

original: dict[str, Any] = {
    "replace": Container.replace,
    "probe": Container.probe,
    "read_after": EventLog.read_after,
    "append": EventLog.append,
    "log_probe": EventLog.probe,
    "found": Erasure._found,
    "state_document": documents.state_document,
    "stub_document": documents.stub_document,
    "stored": LargeValues.stored,
}


# A guarantee that does not hold, or a call whose answer is not true.
NOTICED = (AssertionError, CosmosServiceError, pytest.fail.Exception)


async def no_merging(*_: Any) -> None:
    """A projection that does not merge the changes of others."""


def no_stamps(_: StateDocument, changes: Any) -> Any:
    """Whoever writes last wins."""
    return changes


def no_observing(*_: Any) -> None:
    """A clock that ignores the stamps of others."""


async def no_initial_state(*_: Any) -> Any:
    """Initial user and app state that is never merged."""
    return NO_CHANGES


def no_deletes(_: Any) -> bool:
    """A reader that does not look for tombstones."""
    return False


async def no_if_match(self: Container, document: Any, etag: str) -> str:
    if "document_type" not in document:  # a probe, which is another rule
        return await original["replace"](self, document, etag)
    partition = document["session_id" if self.name == "events" else "user_id"]
    current: Any = await self.read(document["id"], partition)
    return await original["replace"](self, document, current["_etag"] if current else etag)


async def no_recognition(*arguments: Any) -> Any:
    """A writer's own events look like another's."""
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
    """The view of the log does not include what is appended."""


async def no_probe(*_: Any) -> bool:
    """What a read does not show is considered lost."""
    return True


def no_tokens(*_: Any) -> None:
    """The session token of a refusal is left, as the SDK does."""


def no_gaps(*_: Any) -> list[int]:
    """A reader that trusts what it is shown, and the revision."""
    return []


async def no_first_probe(self: EventLog, key: Any, seq: int, incarnation: str) -> bool:
    """Operations that must see the whole log do not probe first."""
    return incarnation == "probe" or await original["log_probe"](self, key, seq, incarnation)


async def no_probe_of_the_user(self: Container, document_id: str, partition: str) -> bool:
    return document_id.startswith("user_state") or await original["probe"](
        self, document_id, partition
    )


async def no_confirmation(*_: Any) -> bool:
    """What a read shows of a session document is trusted."""
    return False


async def no_catching_up(*_: Any) -> None:
    """An export lists what its replica shows."""


async def no_becoming_known(*_: Any) -> None:
    """The first request to a container is a write."""


def no_erasure_stamp(key: Any, state: Any, stamps: Any, erased: int) -> Any:
    """Erased state does not record when it was erased."""
    return original["state_document"](key, state, stamps, 0)


async def erasure_of_now(self: Erasure, key: Any, _: Any) -> Any:
    """The stamp of an erasure is the current time, whatever was erased."""
    self._clock = HybridClock(ServerClock())
    return await original["found"](self, key, Erased())


def stub_without_stamp(body: Any) -> Any:
    return original["stub_document"](body) | {"stamp": 0}


async def stamp_before_reading(
    self: Creating, key: Any, state: Any, ttl: Any, *, named: bool
) -> Any:
    document = await self._create(_Creation(key, state, ttl, named))
    return await self._merged(document, await self._states.read_shared(key), state)


def local_time(_: ServerClock) -> float:
    return server_clock.time.time()


async def hasty_removal(
    self: LargeValues,
    key: Any,
    generation: Any,
    state: Any,
    known: Any = NO_STATE,
    mine: Any = None,
    ttl: Any = None,
) -> Any:
    """Values are deleted before the document that no longer names them is written."""
    stored = await original["stored"](self, key, generation, state, known, mine, ttl)
    await self.discard(key, stored, known)
    return stored


def worlds(test: Callable[..., None], **arguments: Any) -> Callable[[], None]:
    """Runs the test in every world where replicas lag."""

    def look() -> None:
        for world in reversed(WORLDS):
            test(world, **arguments)

    return look


def matrix(name: str, fault: str | None = None) -> Callable[[], None]:
    def look() -> None:
        (operation,) = (each for each in OPERATIONS if each.name == name)
        for case in cases(operation, [each for each in FAULTS if fault in (None, each.name)]):
            problem = run(case).problem
            if problem is not None:
                raise Broken(problem)

    return look


def seeds(test: Callable[[int], None]) -> Callable[[], None]:
    def look() -> None:
        for seed in range(0, 30, 3):  # worlds without losses
            test(seed)

    return look


def clock_of(who: str) -> Callable[[], None]:
    return partial(server_time.test_a_session_in_use_stays_and_an_unused_one_expires, who)


def a_day_ahead() -> None:
    server_time.test_a_key_keeps_its_later_value(server_time.DAY, "create", "create")


def future_value() -> None:
    server_time.test_a_value_of_the_future_is_overwritten("create")


def comes_back() -> None:
    erasure.test_state_that_could_not_be_merged_does_not_come_back(True, "append", 1)


def comes_back_from_the_future(*, purged: bool = True) -> None:
    erasure.test_a_change_of_the_future_does_not_come_back(purged)


MUTANTS = [
    (Projection, "_merge_shared", no_merging, matrix("get of a late session")),
    (
        SessionDocuments,
        "initial_changes",
        no_initial_state,
        matrix("create with user and app state"),
    ),
    (
        "cosmosservice.sessions.store.reading",
        "is_deleted",
        no_deletes,
        matrix("delete"),
    ),
    (EventLog, "read_after", no_recognition, matrix("append")),
    (EventLog, "append", hasty_discard, matrix("append over 2 MB")),
    (
        HybridClock,
        "observe",
        no_observing,
        clocks.test_a_process_that_has_read_a_value_overwrites_it_however_late_its_clock_is,
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
    # Lag.
    (Sender, "_keep_token", no_tokens, worlds(lag.test_an_export_is_complete)),
    (EventLog, "_are_lost", no_probe, worlds(lag.test_a_get_shows_what_the_session_had)),
    (
        "cosmosservice.sessions.store.event_log",
        "missing_seqs",
        no_gaps,
        worlds(lag.test_a_get_shows_what_the_session_had),
    ),
    (EventLog, "probe", no_first_probe, worlds(lag.test_an_iteration_is_complete)),
    (EventLog, "probe", no_first_probe, worlds(lag.test_a_repair_moves_no_revision_back)),
    (
        EventLog,
        "probe",
        no_first_probe,
        worlds(erasure.test_a_purge_erases_what_it_says, deleted=True),
    ),
    (EventLog, "probe", no_first_probe, server_time.test_an_event_that_nobody_projected_is_renewed),
    (
        Container,
        "probe",
        no_probe_of_the_user,
        worlds(erasure.test_a_purge_of_the_user_finds_every_session),
    ),
    (SessionDocuments, "probe", no_confirmation, worlds(lag.test_a_delete_is_done_and_a_restore)),
    (
        SessionDocuments,
        "probe",
        no_confirmation,
        worlds(erasure.test_a_purge_erases_what_it_says, deleted=True),
    ),
    (
        Container,
        "learn_resource_id",
        no_becoming_known,
        worlds(lag.test_a_process_sees_what_it_wrote_first),
    ),
    (Administration, "catch_up", no_catching_up, worlds(lag.test_an_export_is_complete)),
    # Clocks.
    (ServerClock, "now", local_time, clock_of("both three minutes slow")),
    (ServerClock, "now", local_time, clock_of("one an hour ahead")),
    (ServerClock, "now", local_time, a_day_ahead),
    (Creating, "create", stamp_before_reading, future_value),
    # Erasure.
    (
        "cosmosservice.sessions.store.state_documents",
        "state_document",
        no_erasure_stamp,
        comes_back,
    ),
    (Erasure, "_found", erasure_of_now, partial(comes_back_from_the_future, purged=False)),
    (
        "cosmosservice.sessions.store.erasure",
        "stub_document",
        stub_without_stamp,
        comes_back_from_the_future,
    ),
    # Large values.
    (LargeValues, "stored", hasty_removal, matrix("append of large values", "killed before")),
]


@pytest.mark.parametrize(
    ("owner", "name", "mutant", "proof"), MUTANTS, ids=[each[2].__name__ for each in MUTANTS]
)
@pytest.mark.filterwarnings("ignore:coroutine")
def test_a_rule_that_is_left_out_is_noticed(monkeypatch, owner, name, mutant, proof):
    if isinstance(owner, str):
        monkeypatch.setattr(f"{owner}.{name}", mutant)
    else:
        monkeypatch.setattr(owner, name, mutant)
    with pytest.raises(NOTICED):
        proof()
