"""Reads a copy back from the target and reports where it differs from the source."""

from __future__ import annotations

from dataclasses import dataclass, field

from google.adk.sessions import Session

from cosmosservice.account.container import Document
from cosmosservice.data_converters.state_scopes import split
from cosmosservice.scopes import SCOPES
from cosmosservice.sessions.importing import log_of, shared_stamp
from cosmosservice.sessions.store.keys import SessionKey, StateKey
from cosmosservice.sessions.store.state_documents import StateDocument
from cosmosservice.sessions.store.store import SessionStore


@dataclass
class _Expected:
    """User or app state as last seen in the source."""

    state: Document = field(default_factory=dict)
    stamp: int = 0  # of the latest value that the copy could have written


class Verifier:
    """Verifies sessions one by one, and then, when all are copied, the state that they share."""

    def __init__(self) -> None:
        self.sessions = 0
        self.events = 0
        self._shared: dict[StateKey, _Expected] = {}

    @property
    def users(self) -> int:
        return sum(key.scope == SCOPES.user for key in self._shared)

    @property
    def apps(self) -> int:
        return len(self._shared) - self.users

    async def session(self, store: SessionStore, session: Session) -> str:
        """Describes the first difference: in the number of events, their order, the content of
        one, or the session's state. Empty if there is none."""
        key = SessionKey.of(session.app_name, session.user_id, session.id)
        found = await store.reader.read(key, confirmed=True)
        if found is None:
            return "it is missing"
        state = split(session.state)
        wanted = log_of(session, state)
        if len(found.records) != len(wanted):
            return f"it has {len(found.records):,} events, not {len(wanted):,}"
        if [each.event_id for each in found.records] != [each.event_id for each in wanted]:
            return "its events differ, or are in a different order"
        for number, (there, here) in enumerate(zip(found.records, wanted, strict=True), 1):
            if not there.same_event(here):
                return f"its event {number:,} differs"
        if _set(found.state.session) != _set(state.session):
            return "its state differs"
        self.sessions += 1
        self.events += len(found.records)
        last = found.records[-1].stamp if found.records else 0
        stamp = shared_stamp(last, session, store.clock.now())
        for state_key, shared in zip(key.shared, state.shared, strict=True):
            self._expect(state_key, shared, stamp)
        return ""

    def _expect(self, key: StateKey, state: Document, stamp: int) -> None:
        if not state:
            return
        expected = self._shared.setdefault(key, _Expected())
        expected.state = state
        expected.stamp = max(expected.stamp, stamp)

    async def shared(self, store: SessionStore) -> list[str]:
        """Where user and app state differ, apart from what the target's own agents wrote later."""
        problems = []
        for key, expected in self._shared.items():
            found = await store.states.read_newest(key)
            here, there = _set(expected.state), _set(await store.states.whole(found, {}))
            wrong = sorted(
                name
                for name in here.keys() | there.keys()
                if here.get(name) != there.get(name) and not _later(found, name, expected.stamp)
            )
            if wrong:
                of_user = key.scope == SCOPES.user
                whose = (
                    f"{key.app_name} / {key.user_id}: user" if of_user else f"{key.app_name}: app"
                )
                problems.append(f"{whose} state differs: {', '.join(wrong)}")
        return problems


def _set(state: Document) -> Document:
    """Without None values: some services delete a key that is set to None, others store it."""
    return {name: value for name, value in state.items() if value is not None}


def _later(found: StateDocument, name: str, stamp: int) -> bool:
    written = found.stamp(name)
    return written is not None and written[0] > stamp
