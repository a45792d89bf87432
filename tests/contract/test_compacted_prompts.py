"""The prompt is the same with and without the events that summaries cover.

python -m tests.contract.test_compacted_prompts [--histories N] [--first N]
"""

from __future__ import annotations

import argparse
import logging
import multiprocessing
import random
import sys

import pytest
from google.adk.events import Event

from cosmosservice.data_converters import event_to_fields, to_json
from cosmosservice.sessions.store import compaction
from cosmosservice.sessions.store.compaction import Loading, advanced, fits, may_change_loading
from cosmosservice.sessions.store.records import Record, event_record
from tests.support.adk import event
from tests.support.figures import record
from tests.support.histories import History, operations, prompts

HISTORIES = 240
ALL_HISTORIES = 10_000  # of `make prompts`: figures of fewer are not kept
BLOCKS = 8


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
        return self.records[self.loading.begin - 1 :]

    def project(self) -> None:
        if any(may_change_loading(record) for record in self.records[self.loading.at :]):
            self.loading = advanced(self.loading, self.named(), 1)

    def load(self) -> list[Event]:
        named = self.named()
        if not fits(named):
            return self.events
        return [self.events[record.seq - 1] for record in named]


@pytest.mark.parametrize("block", range(BLOCKS))
def test_the_prompt_is_equal_to_the_one_with_everything_loaded(block):
    for seed in range(block, HISTORIES, BLOCKS):
        compare(seed)


def compare(seed):
    history, store, chance = History(), Store(), random.Random(seed)
    for operation in operations(seed):
        history.follow(operation)
        store.append(history.events[len(store.events) :])
        if chance.random() < 0.6:
            store.project()
        loaded = store.load()
        if len(loaded) == len(store.events):
            continue
        said = event("what now?", invocation_id="next")
        for more in ([], [said]):  # and with the next message
            expected = prompts([*store.events, *more], history.scopes)
            assert prompts([*loaded, *more], history.scopes) == expected, f"history {seed}"


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


def test_with_summaries_that_do_not_contain_each_other_loading_begins_at_the_first():
    store = follow(*([SAY] * 5 + [("slide", 2, 0)]) * 8, *[SAY] * 5)
    loaded = store.load()
    assert sum(bool(each.actions.compaction) for each in loaded) == 8
    first = next(index for index, each in enumerate(store.events) if each.actions.compaction)
    assert loaded == store.events[first:]


@pytest.mark.parametrize("answered", [True, False])
def test_a_call_that_waits_is_loaded_until_it_is_answered(answered):
    store = follow(SAY, ("wait", True, answered), *[SAY] * 10, ROLL, *[SAY] * 3)
    waiting = [each for each in store.load() if each.long_running_tool_ids]
    assert len(waiting) == (0 if answered else 1)
    assert store.loading.begin > 3 if answered else store.loading.begin == 3


def test_an_answer_that_no_summary_covers_is_loaded_with_the_turn_of_its_call():
    history, store = History(), Store()
    for operation in (SAY, SAY, ("call", 1, "all"), *[SAY] * 9):
        history.follow(operation)
    history.follow(("summary", 0, 5))  # up to the call
    history.follow(("summary", 7, 20))  # from after the answer
    store.append(history.events)
    store.project()
    assert history.events[6].get_function_responses()
    assert store.load() == store.events[4:]


def test_a_message_of_a_tool_whose_call_is_not_loaded_means_everything():
    """The first summary covers the call. The second leaves out the message, which comes later."""
    store = follow(("call", 1, "all"), *[SAY] * 4, ROLL, ("sub", 0, 0), SAY, ("summary", 12, 12))
    assert store.load() == store.events


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


def differs(seed):
    try:
        compare(seed)
    except AssertionError:
        return seed
    return None


def main():
    parser = argparse.ArgumentParser(prog="python -m tests.contract.test_compacted_prompts")
    parser.add_argument("--histories", type=int, default=ALL_HISTORIES)
    parser.add_argument("--first", type=int, default=0, help="the seed of the first one")
    given = parser.parse_args()
    logging.getLogger("google_adk").setLevel(logging.ERROR)
    seeds = range(given.first, given.first + given.histories)
    different = []
    with multiprocessing.Pool() as pool:
        for count, seed in enumerate(pool.imap(differs, seeds, chunksize=20), 1):
            if seed is not None:
                different.append(seed)
                print(f"history {seed} gives another prompt", flush=True)
            if count % 1000 == 0:
                print(f"{count:,} of {given.histories:,} histories compared", flush=True)
    if given.histories >= ALL_HISTORIES:
        record("prompts", histories=given.histories, broken=len(different))
    print(f"{given.histories:,} histories, {len(different)} with another prompt.")
    return 1 if different else 0


if __name__ == "__main__":
    sys.exit(main())
