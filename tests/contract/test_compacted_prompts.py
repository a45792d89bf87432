"""The prompt is the same with and without the events that summaries cover."""

from __future__ import annotations

import logging

import pytest
from google.adk.events import Event
from hypothesis import given, settings
from hypothesis import strategies as st

from cosmosservice.data_converters import event_to_fields, to_json
from cosmosservice.sessions.store import compaction
from cosmosservice.sessions.store.compaction import Loading, advanced, fits, is_turning
from cosmosservice.sessions.store.records import Record, event_record
from tests.support.adk import event
from tests.support.histories import TURNS, History, prompts


@pytest.fixture(autouse=True, scope="module")
def quiet():
    """ADK warns about every call without an answer, and about every answer without a call."""
    logger = logging.getLogger("google_adk")
    level = logger.level
    logger.setLevel(logging.ERROR)
    yield
    logger.setLevel(level)


class Store:
    """Follows a log like the session document, and knows only what that document says."""

    def __init__(self) -> None:
        self.records: list[Record] = []
        self.events: list[Event] = []
        self.loading = Loading(1)

    def append(self, events: list[Event]) -> None:
        for each in events:
            fields = event_to_fields(each)
            record = event_record(fields, to_json(fields))
            record.seq = len(self.records) + 1
            self.records.append(record)
            self.events.append(each)

    def named(self) -> list[Record]:
        return [
            record
            for record in self.records
            if record.seq >= self.loading.begin or record.seq in self.loading.apart
        ]

    def project(self) -> None:
        if any(is_turning(record) for record in self.records[self.loading.at :]):
            self.loading = advanced(self.loading, self.named(), 1)

    def load(self) -> list[Event]:
        named = self.named()
        if not fits(self.loading, named):
            return self.events
        return [self.events[record.seq - 1] for record in named]


@given(TURNS, st.lists(st.booleans(), min_size=16, max_size=16))
@settings(max_examples=60, deadline=None)
def test_the_prompt_is_equal_to_the_one_with_everything_loaded(operations, projected):
    history, store = History(), Store()
    for operation, now in zip(operations, projected, strict=False):
        history.follow(operation)
        store.append(history.events[len(store.events) :])
        if now:
            store.project()
        loaded = store.load()
        assert prompts(loaded, history.scopes) == prompts(store.events, history.scopes)
        if len(loaded) < len(store.events):  # and with the next message
            said = event("what now?", invocation_id="next")
            expected = prompts([*store.events, said], history.scopes)
            assert prompts([*loaded, said], history.scopes) == expected


def follow(*operations):
    history, store = History(), Store()
    for operation in operations:
        history.follow(operation)
        store.append(history.events[len(store.events) :])
        store.project()
    return store


SAY = ("say", "agent", "")
ROLL = ("roll", 2, 0)


def test_what_a_summary_covers_is_not_loaded_but_for_the_last_turns():
    store = follow(*[SAY] * 20, ROLL, SAY)
    assert len(store.events) == 43
    assert len(store.load()) == 2 * compaction.TURNS + 1 + 2


def test_a_summary_that_another_one_contains_is_not_loaded():
    store = follow(*[SAY] * 10, ROLL, *[SAY] * 10, ROLL, *[SAY] * 5)
    summaries = [each for each in store.load() if each.actions.compaction]
    assert len(summaries) == 1


def test_summaries_that_overlap_are_all_loaded_and_nothing_between_them():
    store = follow(*([SAY] * 5 + [("slide", 2, 0)]) * 8, *[SAY] * 5)
    loaded = store.load()
    assert sum(bool(each.actions.compaction) for each in loaded) == 8
    assert len(loaded) <= 8 + 2 * (5 + compaction.TURNS)


@pytest.mark.parametrize("answered", [True, False])
def test_a_call_that_waits_is_loaded_until_it_is_answered(answered):
    store = follow(("wait", True, answered), *[SAY] * 10, ROLL, *[SAY] * 3)
    waiting = [each for each in store.load() if each.long_running_tool_ids]
    assert len(waiting) == (0 if answered else 1)


def test_after_a_rewind_everything_is_loaded_until_the_next_summary():
    store = follow(*[SAY] * 10, ROLL, *[SAY] * 2)
    assert len(store.load()) < len(store.events)
    history = History()
    history.events, history._turn = list(store.events), 12
    for operation in (("rewind", 5, 0), SAY):
        history.follow(operation)
        store.append(history.events[len(store.events) :])
        assert store.load() == store.events
        store.project()
        assert store.load() == store.events
    for operation in (*[SAY] * 5, ROLL):
        history.follow(operation)
    store.append(history.events[len(store.events) :])
    store.project()
    assert len(store.load()) < len(store.events)


def test_more_events_than_can_be_loaded_one_by_one_are_loaded_from_an_earlier_place(monkeypatch):
    operations = [("wait", True, False), SAY] * 6 + [ROLL] + [SAY] * 4
    few = follow(*operations)
    monkeypatch.setattr(compaction, "MOST_APART", 10)
    more = follow(*operations)
    assert len(few.loading.apart) > 10 >= len(more.loading.apart)
    assert len(few.load()) < len(more.load()) < len(more.events)
