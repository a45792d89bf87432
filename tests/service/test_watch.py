"""Watching sessions: every event that any process appends, in order, from any continuation on."""

from __future__ import annotations

import asyncio
import base64
import uuid
from contextlib import asynccontextmanager

import pytest

from cosmos_emulator import Emulator, Replicas
from cosmosservice import CosmosSessionService, InvalidIdError, UnavailableError
from tests.support.adk import event
from tests.support.raw import raw_client
from tests.support.stores import on_endpoint

EVENTS = "events"  # the default name
HOUR = 3600
QUICK = {"interval": 0.01}
LARGE = "large " * 500_000  # more than one document holds


@asynccontextmanager
async def on(emulator, **options):
    service = CosmosSessionService.embedded(emulator, **options)
    try:
        yield service
    finally:
        await service.close()


WAYS = ["in process", "over HTTP", "three partitions", "inside a block"]


@pytest.fixture(params=["an endpoint"] if on_endpoint() else WAYS)
async def way(request, cosmos):
    """A writer and a reader that are independent of each other, and an app of their own."""
    app = f"app {uuid.uuid4()}"
    if request.param in ("an endpoint", "over HTTP"):
        over_http = request.param == "over HTTP"
        connect = request.getfixturevalue("connect_http") if over_http else cosmos.sessions
        writer, reader = connect(), connect()
        yield app, writer, reader
        await writer.close()
        await reader.close()
        return
    with Emulator(partitions=3 if request.param == "three partitions" else 1) as emulator:
        async with on(emulator) as writer, on(emulator) as reader:
            if request.param == "inside a block":
                async with writer, reader:
                    yield app, writer, reader
            else:
                yield app, writer, reader


def name(number, app="app"):
    return {"app_name": app, "user_id": f"user {number % 2}", "session_id": f"s {number}"}


def brief(change):
    said = change.event.content.parts[0].text[:9] if change.event else ""
    return change.kind, change.user_id, change.session_id, change.revision, said


async def take(watch, count):
    async with asyncio.timeout(20):
        return [await anext(watch) for _ in range(count)]


async def rest(service, since, app="app", **scope):
    watch = service.watch(app_name=app, since=since, follow=False, **scope)
    async with asyncio.timeout(20):
        return [change async for change in watch]


async def sessions_of(service, count, app="app", **options):
    return [await service.create_session(**name(n, app), **options) for n in range(count)]


async def say(service, session, *texts):
    for text in texts:
        await service.append_event(session, event(text))


def by_session(changes):
    found = {}
    for change in changes:
        found.setdefault(change.session_id, []).append(change.revision)
    return found


# --- what is delivered


async def test_events_are_reported_as_another_process_appends_them(way):
    app, writer, reader = way
    watch = reader.watch(app_name=app, **QUICK)
    await watch.ready()
    changes = []
    for number in range(4):
        session = await writer.create_session(**name(number, app))
        await say(writer, session, "one", "two")
        changes += [brief(change) for change in await take(watch, 2)]
    expected = [
        ("event", f"user {n % 2}", f"s {n}", number, text)
        for n in range(4)
        for number, text in ((1, "one"), (2, "two"))
    ]
    assert changes == expected


async def test_an_event_is_reported_as_it_was_appended(way):
    app, writer, reader = way
    session = await writer.create_session(**name(0, app))
    given = event("hello", author="user", delta={"a": 1, "user:b": [2]})
    await writer.append_event(session, given)
    (change,) = await rest(reader, "beginning", app)
    assert change.event == given
    assert (change.app_name, change.user_id, change.session_id) == (app, "user 0", "s 0")


async def test_delete_restore_and_purge_are_reported_and_stubs_are_not_events(way):
    app, writer, reader = way
    watch = reader.watch(app_name=app, **QUICK)
    await watch.ready()
    session = await writer.create_session(**name(0, app))
    await say(writer, session, "one", "two")
    await writer.delete_session(**name(0, app))
    await writer.restore_session(**name(0, app))
    await writer.delete_session(**name(0, app))
    changes = await take(watch, 5)
    kinds = [(change.kind, change.revision) for change in changes]
    assert kinds == [
        ("event", 1),
        ("event", 2),
        ("deleted", 3),
        ("restored", 4),
        ("deleted", 5),
    ]
    assert [change.event is None for change in changes] == [False, False, True, True, True]
    await writer.purge_session(**name(0, app))
    after = await rest(reader, changes[-1].continuation, app)
    assert {change.kind for change in after} == {"purged"}
    assert {change.kind for change in await rest(reader, "beginning", app)} == {"purged"}


async def test_a_large_event_is_reported_whole(way):
    app, writer, reader = way
    session = await writer.create_session(**name(0, app))
    await say(writer, session, LARGE, "after")
    changes = await rest(reader, "beginning", app)
    assert [change.event.content.parts[0].text for change in changes] == [LARGE, "after"]


async def test_a_page_of_large_events_is_cut_and_nothing_is_missing(way, monkeypatch):
    monkeypatch.setattr("cosmosservice.sessions.store.feed._BYTES", 1)
    app, writer, reader = way
    for session in await sessions_of(writer, 2, app):
        await say(writer, session, "a", "b", "c")
    changes = await rest(reader, "beginning", app)
    assert by_session(changes) == {"s 0": [1, 2, 3], "s 1": [1, 2, 3]}
    assert len(changes) == 6


async def test_only_the_user_or_the_session_that_was_asked_for(way):
    app, writer, reader = way
    for session in await sessions_of(writer, 4, app):
        await say(writer, session, "x")
    other = await writer.create_session(**name(1, f"{app} 2"))
    await say(writer, other, "not of this app")
    of_user = await rest(reader, "beginning", app, user_id="user 1")
    assert sorted(by_session(of_user)) == ["s 1", "s 3"]
    of_session = await rest(reader, "beginning", app, session_id=" s 2 ")
    assert by_session(of_session) == {"s 2": [1]}
    assert await rest(reader, "beginning", app, user_id="user 1", session_id="s 2") == []


async def test_a_session_that_does_not_exist_yet_is_waited_for(way):
    app, writer, reader = way
    watch = reader.watch(**name(7, app), **QUICK)
    await watch.ready()
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(anext(watch), 0.05)
    session = await writer.create_session(**name(7, app))
    await say(writer, session, "first")
    assert [brief(change)[4] for change in await take(watch, 1)] == ["first"]


async def test_a_watch_from_now_does_not_report_earlier_events(way):
    app, writer, reader = way
    session = await writer.create_session(**name(0, app))
    await say(writer, session, "before")
    assert await rest(reader, "now", app) == []
    watch = reader.watch(app_name=app, **QUICK)
    await watch.ready()
    await say(writer, session, "after")
    assert [brief(change)[4] for change in await take(watch, 1)] == ["after"]


# --- continuing


async def history(service, app):
    """Several sessions, a large event, a delete and a restore."""
    sessions = await sessions_of(service, 3, app)
    for text in ("a", "b"):
        for session in sessions:
            await say(service, session, text)
    await say(service, sessions[0], LARGE)
    await service.delete_session(**name(1, app))
    await service.restore_session(**name(1, app))
    await say(service, sessions[2], "c")


async def test_every_continuation_reports_exactly_the_rest(way):
    app, writer, reader = way
    await history(writer, app)
    changes = await rest(reader, "beginning", app)
    assert len(changes) == 10
    assert by_session(changes) == {"s 0": [1, 2, 3], "s 1": [1, 2, 3, 4], "s 2": [1, 2, 3]}
    everything = sorted(map(brief, changes))
    for count, change in enumerate(changes, 1):
        following = await rest(reader, change.continuation, app)
        done = list(map(brief, changes[:count]))
        assert sorted(done + list(map(brief, following))) == everything
        assert all(
            numbers == sorted(numbers)
            for numbers in by_session([*changes[:count], *following]).values()
        )


@pytest.mark.parametrize("partitions", [1, 3])
async def test_every_continuation_reports_exactly_the_rest_after_a_split(partitions):
    with Emulator(partitions=partitions) as emulator:
        async with on(emulator) as writer, on(emulator) as reader:
            await history(writer, "app")
            changes = await rest(reader, "beginning")
            emulator.split(EVENTS)
            for session in await sessions_of(writer, 3, "app 2"):
                await say(writer, session, "not of this app")
            for count, change in enumerate(changes, 1):
                following = await rest(reader, change.continuation)
                assert sorted(map(brief, changes)) == sorted(
                    map(brief, changes[:count] + following)
                )


@pytest.mark.parametrize("partitions", [1, 3])
async def test_a_watch_goes_on_through_splits(partitions):
    with Emulator(partitions=partitions) as emulator:
        async with on(emulator) as writer, on(emulator) as reader:
            watch = reader.watch(app_name="app", **QUICK)
            await watch.ready()
            sessions = await sessions_of(writer, 5)
            changes = []
            for _ in range(3):
                for session in sessions:
                    await say(writer, session, "x")
                changes += await take(watch, 4)  # in the middle of the history
                emulator.split(EVENTS)
            changes += await take(watch, 3)
            assert by_session(changes) == {session.id: [1, 2, 3] for session in sessions}
            assert await rest(reader, watch.continuation) == []


async def test_a_watch_has_a_continuation_before_anything_is_reported(emulator):
    async with on(emulator) as service:
        watch = service.watch(app_name="app", user_id="user 0", **QUICK)
        assert watch.continuation is None
        await watch.ready()
        beginning = watch.continuation
        for session in await sessions_of(service, 4):
            await say(service, session, "x")
        found = await rest(service, beginning, user_id="user 0")
        assert sorted(by_session(found)) == ["s 0", "s 2"]


async def test_without_an_app_all_apps_are_reported(emulator):
    async with on(emulator) as service:
        watch = service.watch(app_name=None, **QUICK)
        await watch.ready()
        beginning = watch.continuation
        for app in ("app", "app 2"):
            await say(service, await service.create_session(**name(0, app)), "x")
        changes = await rest(service, beginning, app=None)
        assert sorted(change.app_name for change in changes) == ["app", "app 2"]
        with pytest.raises(ValueError, match="belongs to a watch of another app"):
            service.watch(app_name="app", since=beginning)


async def test_a_watch_moves_on_past_what_is_not_its_own(emulator):
    async with on(emulator) as service:
        watch = service.watch(app_name="app", since="beginning", follow=False)
        for session in await sessions_of(service, 4, "app 2"):
            await say(service, session, "x")
        assert [change async for change in watch] == []
        emulator.clear_requests()
        assert await rest(service, watch.continuation) == []
        feed = [each for each in emulator.requests if each.operation == "change feed"]
        assert [each.status for each in feed] == [304]


# --- when something goes wrong


async def told_in_spite_of(emulator, trouble, **options):
    async with on(emulator) as writer, on(emulator, **options) as reader:
        watch = reader.watch(app_name="app", **QUICK)
        await watch.ready()
        sessions = await sessions_of(writer, 2)
        for number in range(3):
            trouble()
            for session in sessions:
                await say(writer, session, str(number))
        changes = await take(watch, 6)
        assert by_session(changes) == {"s 0": [1, 2, 3], "s 1": [1, 2, 3]}


async def test_throttling_delays_a_watch_and_loses_nothing(emulator, caplog):
    feed = {"operation": "change feed"}
    await told_in_spite_of(
        emulator, lambda: emulator.faults.throttle(retry_after_ms=1, times=40, **feed)
    )
    emulator.faults.clear()
    throttled = [each for each in emulator.requests if each.status == 429]
    assert len(throttled) == 120
    assert "the change feed cannot be read now (ThrottledError)" in caplog.text


@pytest.mark.parametrize("status", [410, 500, 503])
async def test_an_outage_delays_a_watch_and_loses_nothing(emulator, status):
    await told_in_spite_of(
        emulator, lambda: emulator.faults.fail(status, operation="change feed", times=2)
    )


async def test_silence_ends_a_read_and_the_next_one_reports_everything(emulator):
    await told_in_spite_of(
        emulator,
        lambda: emulator.faults.silent(operation="change feed", times=1),
        timeout=0.3,
    )


async def test_an_answer_that_never_ends_is_given_up(emulator):
    await told_in_spite_of(
        emulator,
        lambda: emulator.faults.endless(operation="change feed", drip=0.01, times=1),
        timeout=0.3,
    )


async def test_a_first_look_that_fails_is_an_error(emulator):
    async with on(emulator, timeout=0.3) as service:
        await service.create_session(**name(0))
        emulator.faults.fail(503, operation="change feed", times=None)
        with pytest.raises(UnavailableError):
            await anext(service.watch(app_name="app"))


async def test_under_lag_everything_is_reported_once_and_in_order():
    replicas = Replicas(lag=(0, 0.05), seed=3)
    with Emulator(partitions=2, replicas=replicas) as emulator:
        async with on(emulator) as writer, on(emulator) as reader:
            watch = reader.watch(app_name="app", **QUICK)
            await watch.ready()
            sessions = await sessions_of(writer, 4)
            for text in "abc":
                for session in sessions:
                    await say(writer, session, text)
            changes = await take(watch, 12)
            assert by_session(changes) == {session.id: [1, 2, 3] for session in sessions}
            for count in (1, 5, 9):
                watch = reader.watch(app_name="app", since=changes[count - 1].continuation, **QUICK)
                following = await take(watch, 12 - count)
                assert sorted(map(brief, changes[:count] + following)) == sorted(
                    map(brief, changes)
                )


async def test_events_that_replicas_do_not_show_yet_are_reported_when_they_do():
    replicas = Replicas()
    with Emulator(replicas=replicas) as emulator:
        async with on(emulator) as writer, on(emulator) as reader:
            session = await writer.create_session(**name(0))
            await say(writer, session, "one")
            watch = reader.watch(app_name="app", since="beginning", **QUICK)
            changes = await take(watch, 1)
            replicas.hold()
            await say(writer, session, LARGE, "three")
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(anext(watch), 0.1)
            replicas.release()
            changes += await take(watch, 2)
            assert [brief(change)[3:] for change in changes] == [
                (1, "one"),
                (2, LARGE[:9]),
                (3, "three"),
            ]


async def test_events_of_several_writers_of_one_session_are_reported_in_their_order(emulator):
    async with on(emulator) as reader:
        watch = reader.watch(app_name="app", **QUICK)
        await watch.ready()
        writers = [CosmosSessionService.embedded(emulator, on_conflict="rebase") for _ in range(3)]
        await writers[0].create_session(**name(0))

        async def write(writer, who):
            session = await writer.get_session(**name(0))
            await say(writer, session, *(f"{who} {n}" for n in range(5)))

        await asyncio.gather(*(write(writer, n) for n, writer in enumerate(writers)))
        changes = await take(watch, 15)
        stored = await reader.get_session(**name(0))
        assert [change.revision for change in changes] == list(range(1, 16))
        assert [change.event for change in changes] == stored.events
        for writer in writers:
            await writer.close()


# --- sessions with a ttl


async def renewed(service, later, number=0):
    """Uses the session after more than half of its ttl, so that its older records are written
    again."""
    later(0.6 * HOUR)
    session = await service.get_session(**name(number))
    await service.flush()
    return session


async def test_renewed_records_are_not_reported_again(open_service, emulator, later):
    service = open_service(ttl=HOUR)
    watch = service.watch(app_name="app", **QUICK)
    await watch.ready()
    session = await service.create_session(**name(0))
    await say(service, session, "one", "two")
    changes = await take(watch, 2)
    emulator.clear_requests()
    await renewed(service, later)
    assert [each.operation for each in emulator.requests].count("replace") >= 2
    await say(service, session, "three")
    changes += await take(watch, 1)
    assert by_session(changes) == {"s 0": [1, 2, 3]}
    # The same after a restart: a continuation says how far delivery has come.
    later(10)
    await say(service, session, "four")
    changes += await take(watch, 1)
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(anext(watch), 0.1)
    since = watch.continuation
    await renewed(service, later)
    again = by_session(await rest(open_service(), since)).get("s 0", [])
    assert again in ([], [4])  # at least once: the last one before the pause


async def test_a_watch_from_now_does_not_report_old_records_that_are_renewed(open_service, later):
    service = open_service(ttl=HOUR)
    session = await service.create_session(**name(0))
    await say(service, session, "one", "two")
    later(60)
    watch = service.watch(app_name="app", **QUICK)
    await watch.ready()
    await renewed(service, later)
    await say(service, session, "three")
    assert [change.revision for change in await take(watch, 1)] == [3]


async def test_records_that_were_renewed_before_they_were_read_are_reported_in_order(
    open_service, later
):
    service = open_service(ttl=HOUR)
    session = await service.create_session(**name(0))
    await say(service, session, "one", "two")
    (_, second) = early = await rest(service, "beginning")
    await say(service, session, "three", "four")
    later(0.4 * HOUR)
    await say(service, session, "five")
    later(0.2 * HOUR)
    await service.get_session(**name(0))  # renews all but the fifth, which now comes first
    await service.flush()
    await say(service, session, "six")
    whole = await rest(open_service(), "beginning")
    assert [change.revision for change in whole] == [1, 2, 3, 4, 5, 6]
    after = await rest(open_service(), second.continuation)
    assert [change.revision for change in after][-4:] == [3, 4, 5, 6]
    assert len(early) == 2


async def test_a_session_watch_of_a_session_with_a_ttl_reports_it_once(open_service, later):
    service = open_service(ttl=HOUR)
    session = await service.create_session(**name(0))
    watch = service.watch(**name(0), **QUICK)
    await watch.ready()
    changes = []
    for number in range(5):
        await say(service, session, str(number))
        changes += await take(watch, 1)
        await renewed(service, later)
    assert [change.revision for change in changes] == [1, 2, 3, 4, 5]


# --- the end, and mistakes


async def test_a_cancelled_look_loses_nothing(emulator):
    async with on(emulator) as service:
        watch = service.watch(app_name="app", since="beginning", **QUICK)
        (session,) = await sessions_of(service, 1)
        emulator.faults.delay(0.05, operation="change feed", times=None)
        changes = []
        for number in range(10):
            await say(service, session, str(number))
            task = asyncio.create_task(anext(watch))
            await asyncio.sleep(0.01 * number)
            if not task.cancel():
                changes.append(task.result())
            await asyncio.gather(task, return_exceptions=True)
        changes += await take(watch, 10 - len(changes))
        assert [change.revision for change in changes] == list(range(1, 11))


async def test_a_closed_watch_ends(emulator):
    async with on(emulator) as service:
        for session in await sessions_of(service, 2):
            await say(service, session, "x")
        watch = service.watch(app_name="app", since="beginning", **QUICK)
        changes = []
        async for change in watch:
            changes.append(change)
            await watch.aclose()
        assert len(changes) == 1
        assert len(await rest(service, changes[0].continuation)) == 1


@pytest.mark.parametrize("since", ["", "soon", "bm90aGluZw==", "é", "now "])
async def test_an_invalid_continuation_is_refused(service, since):
    with pytest.raises(ValueError, match="'now', 'beginning' or the unchanged continuation"):
        service.watch(app_name="app", since=since)


async def test_half_a_continuation_is_refused(service):
    watch = service.watch(app_name="app")
    await watch.ready()
    for cut in (watch.continuation[:-4], watch.continuation[4:], watch.continuation + "AAAA"):
        with pytest.raises(ValueError, match="unchanged continuation"):
            service.watch(app_name="app", since=cut)


@pytest.mark.parametrize(
    "other",
    [
        {"app_name": "another"},
        {"app_name": "app", "user_id": "user 1"},
        {"app_name": "app", "user_id": "user 0", "session_id": "s 0"},
    ],
)
async def test_a_continuation_of_another_watch_is_refused(service, other):
    watch = service.watch(app_name="app", user_id="user 0")
    await watch.ready()
    with pytest.raises(ValueError, match="belongs to a watch of another app, user or session"):
        service.watch(**other, since=watch.continuation)


async def test_a_continuation_of_another_container_is_refused(open_service, emulator):
    one, two = open_service(), open_service(conversation_container="others")
    watch = one.watch(app_name="app")
    await watch.ready()
    with pytest.raises(ValueError, match="belongs to another events container"):
        await anext(two.watch(app_name="app", since=watch.continuation))


@pytest.mark.parametrize("options", [{"interval": 0}, {"interval": -1}, {"since": None}])
async def test_wrong_options_are_refused(service, options):
    with pytest.raises(ValueError, match=r"interval must be a number|since must be a string"):
        service.watch(app_name="app", **options)


@pytest.mark.parametrize("names", [{"app_name": ""}, {"app_name": "a", "session_id": " "}])
async def test_names_that_name_nothing_are_refused(service, names):
    with pytest.raises(InvalidIdError):
        service.watch(**names)


async def test_the_repr_of_a_change_names_nobody(service):
    session = await service.create_session(**name(0))
    await say(service, session, "s3cret")
    (change,) = await rest(service, "beginning")
    shown = repr(change)
    assert not [secret for secret in ("user 0", "s 0", "s3cret") if secret in shown]


async def test_a_continuation_names_nobody(service):
    session = await service.create_session(**name(0))
    await say(service, session, "x")
    (change,) = await rest(service, "beginning", user_id="user 0", session_id="s 0")
    content = base64.urlsafe_b64decode(change.continuation)
    assert not [each for each in (b"app", b"user 0", b"s 0") if each in content]


async def test_a_fork_reports_its_copies_as_events_of_the_new_session(service):
    session = await service.create_session(**name(0))
    await say(service, session, "one", "two")
    watch = service.watch(app_name="app", **QUICK)
    await watch.ready()
    await service.fork_session(**name(0), new_session_id="forked")
    assert by_session(await take(watch, 2)) == {"forked": [1, 2]}


async def test_documents_of_others_in_the_container_are_passed_over(service, emulator):
    session = await service.create_session(**name(0))
    await say(service, session, "x")
    with raw_client(emulator) as client:
        database = client.get_database_client(service.account.settings.database)
        container = database.get_container_client(EVENTS)
        container.create_item({"id": "foreign", "session_id": "s 0", "app_name": "app"})
    assert [change.revision for change in await rest(service, "beginning")] == [1]


# --- costs


async def test_a_session_watch_does_not_read_other_sessions(emulator):
    charges = []
    async with on(emulator, on_request_charge=charges.append) as service:
        for session in await sessions_of(service, 20):
            await say(service, session, "x" * 50_000)
        charges.clear()
        await rest(service, "beginning", user_id="user 0", session_id="s 0")
        of_session = sum(each.request_units for each in charges)
        charges.clear()
        await rest(service, "beginning")
        of_app = sum(each.request_units for each in charges)
    assert of_session < of_app / 5
