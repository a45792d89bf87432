"""Pages while sessions are used: which orders show every session, whatever happens in between."""

from __future__ import annotations

import itertools

import pytest

from tests.support.adk import event
from tests.support.combinations import some
from tests.support.stores import DURABLE

pytestmark = pytest.mark.claims(DURABLE)

OWNERS = {"s1": "ann", "s2": "bob", "s3": "ann", "s4": "bob"}
TIMES = [0.5, 2.5, 9.0]  # those of the sessions are 1.0 to 4.0


@pytest.fixture
async def four(service, app):
    """Sessions of two users, updated one after the other, by name."""
    made = {}
    for at, (name, user) in enumerate(OWNERS.items(), 1):
        session = await service.create_session(app_name=app, user_id=user, session_id=name)
        await service.append_event(session, event(name, timestamp=float(at)))
        made[name] = session
    await service.flush()
    return made


async def shown(service, app, limit, between, **options):
    """The ids on all pages. `between(n)` is awaited after page n."""
    found, continuation, number = [], None, 0
    while True:
        page = await service.list_sessions_page(
            app_name=app, limit=limit, continuation=continuation, **options
        )
        found += [each.id for each in page.sessions]
        continuation = page.continuation
        if continuation is None:
            return found
        await between(number)
        number += 1


async def use(service, session, time):
    await service.append_event(session, event("used", timestamp=time))
    await service.flush()


async def delete_and_create(service, app, user, name):
    names = {"app_name": app, "user_id": user, "session_id": name}
    await service.delete_session(**names)
    await service.create_session(**names)


@pytest.mark.parametrize("limit", [1, 2, 3])
async def test_by_id_every_session_is_shown_once(service, app, four, limit):
    """After every page, every session is used, one or two of them, at older and newer times."""
    pairs = list(itertools.combinations_with_replacement(OWNERS, 2))
    times = itertools.cycle(TIMES)
    moments = range(-(-len(OWNERS) // limit) - 1)
    rounds = some(itertools.product(pairs, moments), every=2 if len(moments) == 3 else 1)
    for (one, other), after in rounds:

        async def between(number, one=one, other=other, after=after):
            if number == after:
                for name in (one, other):
                    await use(service, four[name], next(times))

        found = await shown(service, app, limit, between, by_id=True)
        assert found == ["s1", "s3", "s2", "s4"]


@pytest.mark.parametrize("user", ["ann", "bob"])
async def test_by_id_of_one_user(service, app, four, user):
    async def between(number):
        for name, owner in OWNERS.items():
            if owner == user:
                await use(service, four[name], 9.0)

    mine = [name for name, owner in OWNERS.items() if owner == user]
    found = await shown(service, app, 1, between, by_id=True, user_id=user)
    assert found == mine


async def test_by_id_sessions_come_and_go(service, app, four):
    async def between(number):
        await delete_and_create(service, app, "ann", "s3")
        await service.create_session(app_name=app, user_id="ann", session_id=f"s0{number}")
        if number == 0:
            await service.delete_session(app_name=app, user_id="bob", session_id="s2")

    found = await shown(service, app, 1, between, by_id=True)
    assert found == ["s1", "s3", "s4"]


@pytest.mark.parametrize("limit", [1, 2, 3])
async def test_oldest_first_every_session_is_shown_if_times_grow(service, app, four, limit):
    time = itertools.count(100.0)
    for name, after in some(itertools.product(OWNERS, range(3)), every=2):

        async def between(number, name=name, after=after):
            if number == after:
                await use(service, four[name], next(time))

        assert {*await shown(service, app, limit, between)} == {*OWNERS}


async def test_newest_first_a_session_that_is_used_moves_to_the_front(service, app, four):
    """It is on the first page then, and not on those that follow."""

    async def between(number):
        if number == 0:
            await use(service, four["s1"], 9.0)

    assert await shown(service, app, 2, between, newest_first=True) == ["s4", "s3", "s2"]
    front = await service.list_sessions_page(app_name=app, newest_first=True, limit=1)
    assert [each.id for each in front.sessions] == ["s1"]


async def test_by_id_with_filters(service, app, four):
    async def nothing(number):
        pass

    chosen = {"updated_after": 2.0, "updated_before": 4.0}
    assert await shown(service, app, 1, nothing, by_id=True, **chosen) == ["s3", "s2"]
    assert await shown(service, app, 1, nothing, by_id=True, title="S4") == ["s4"]
    deleted = {"app_name": app, "user_id": "bob", "session_id": "s4"}
    await service.delete_session(**deleted)
    assert await shown(service, app, 1, nothing, by_id=True, deleted=True) == ["s4"]


async def test_one_list_has_one_order(service, app, four):
    with pytest.raises(ValueError, match="cannot be combined"):
        await service.list_sessions_page(app_name=app, newest_first=True, by_id=True)
    page = await service.list_sessions_page(app_name=app, by_id=True, limit=1)
    with pytest.raises(ValueError, match="another list"):
        await service.list_sessions_page(app_name=app, continuation=page.continuation)


async def test_sessions_of_one_id_are_all_shown(service, app):
    """Every user may have a session with the same id."""
    users = ["", "ann", "bob", "zoe"]
    for user in users:
        await service.create_session(app_name=app, user_id=user, session_id="same")
    found, continuation = [], None
    while True:
        page = await service.list_sessions_page(
            app_name=app, by_id=True, limit=1, continuation=continuation
        )
        found += [each.user_id for each in page.sessions]
        continuation = page.continuation
        if continuation is None:
            break
    assert found == users
