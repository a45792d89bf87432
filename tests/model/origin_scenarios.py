"""The origins of sessions (O…)."""

from __future__ import annotations

from tests.model.checker import Process
from tests.model.first_event_scenarios import NEW, new_session
from tests.model.first_events import INITIAL, appends, deletes_and_restores
from tests.model.origins import OriginTells, keep, origin_of, rebuild, removes
from tests.model.situations import (
    Scenario,
    creates,
    deletes,
    one_after_the_other,
    purges,
    purges_replaced,
    session_document,
)
from tests.model.store import EMPTY, Frozen

CREATED = session_document("a0").having(state=INITIAL)


def stored(*docs, origin=False):
    kept = Frozen({origin_of(CREATED).event_id: (1, origin_of(CREATED))}) if origin else EMPTY
    past = (EMPTY,) if docs else ()
    return Frozen({**new_session(*docs), "body1": (*past, kept)})


def keeps(rules, known=CREATED):
    return lambda proc: keep(rules, proc, known)


def rebuilds(rules):
    return lambda proc: rebuild(rules, proc)


def lost_and_found(rules, *others):
    """The document is removed when the others have ended, and the session is rebuilt."""
    return [
        Process("X", removes, after=tuple(p.name for p in others)),
        Process("Q", rebuilds(rules), after=("X",)),
    ]


def case(processes, store, **options):
    return Scenario(processes, store, invariants=OriginTells, **options)


def O1(rules):
    """The creator keeps the origin while another process appends; then the document is lost."""
    ps = [
        Process("K", keeps(rules), lost_reply=True, crash=True),
        Process("A", appends(rules, "k", NEW), crash=True),
    ]
    return case([*ps, *lost_and_found(rules, *ps)], stored(), lost_replies=1, crashes=1)


def O1b(rules):
    """A document that is lost, and a repair that reads from a replica that lags."""
    ps = [Process("X", removes), Process("Q", rebuilds(rules), stale=True, after=("X",))]
    return case(ps, stored(Frozen({"s": (1, CREATED)}), origin=True))


def O2(rules):
    """A session is deleted and purged while its creator keeps the origin."""
    ps = [
        Process("K", keeps(rules), lost_reply=True),
        Process("P", one_after_the_other(deletes(rules), purges(rules)), lost_reply=True),
    ]
    return case(ps, stored(), lost_replies=1)


def O2b(rules):
    """The same, but the creator may die; then the session is swept."""
    ps = [
        Process("K", keeps(rules), crash=True),
        Process("P", one_after_the_other(deletes(rules), purges(rules))),
        Process("Z", purges(rules), after=("K", "P")),
    ]
    return case(ps, stored(), crashes=1)


def O3(rules):
    """A session without events is deleted and created again, which is purged of its predecessor;
    then the document is lost."""
    again = one_after_the_other(deletes(rules), creates(rules, "a1"), keeps(rules, None))
    ps = [
        Process("K", keeps(rules)),
        Process("C", again),
        Process("P", purges_replaced(rules), after=("C",)),
    ]
    return case([*ps, *lost_and_found(rules, *ps)], stored())


def O3b(rules):
    """A session with an event is deleted and created again; then the document is lost."""
    again = one_after_the_other(deletes(rules), creates(rules, "a1"), keeps(rules, None))
    ps = [
        Process("A", appends(rules, "k", NEW)),
        Process("C", again, after=("A",)),
        Process("P", purges_replaced(rules), after=("Q",)),
    ]
    return case([*ps, *lost_and_found(rules, ps[1])], stored())


def O4(rules):
    """A reader whose replicas lag keeps the origin, while the session is deleted, restored and
    continued."""
    ps = [
        Process("D", deletes_and_restores(rules)),
        Process("A", appends(rules, "k"), after=("D",)),
        Process("K", keeps(rules, None), stale=True),
    ]
    return case(ps, stored())
