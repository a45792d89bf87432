"""`cosmosservice migrate SOURCE_URI TARGET_URI`"""

import asyncio
import json
import sqlite3

import pytest
from google.adk.sessions import Session
from google.adk.sessions.sqlite_session_service import SqliteSessionService

from cosmos_emulator import Emulator
from cosmosservice import CosmosSessionService
from cosmosservice.cli.migrate import Migration
from cosmosservice.hosting.operation import Unbounded
from cosmosservice.sessions.importing import Importer
from tests.cli.conftest import said
from tests.support.raw import raw_client, raw_store

SOURCE, TARGET = "sqlite:///source.db", "cosmosdb://embedded/target.db"


async def fill(service):
    """Two apps, two users, and sessions that wrote user and app state in different orders."""
    early = await service.create_session(
        app_name="shop", user_id="ada", session_id="early", state={"kept": 1, "user:born": 1815}
    )
    late = await service.create_session(app_name="shop", user_id="ada", session_id="late")
    await service.append_event(
        late, said("one", state={"user:tea": "green", "app:visits": 1}, timestamp=100.0)
    )
    await service.append_event(
        early, said("two", state={"user:tea": "black", "app:visits": 2}, timestamp=200.0)
    )
    await service.append_event(
        late, said("three", state={"mood": {"now": "calm"}}, timestamp=150.0)
    )
    await service.create_session(app_name="shop", user_id="bob", session_id="empty")
    other = await service.create_session(app_name="bank", user_id="ada", session_id="early")
    await service.append_event(other, said("four", timestamp=300.25))


async def everything(service):
    found = {}
    for app_name in ("bank", "shop"):
        for each in (await service.list_sessions(app_name=app_name)).sessions:
            session = await service.get_session(
                app_name=app_name, user_id=each.user_id, session_id=each.id
            )
            found[app_name, each.user_id, each.id] = (
                session.state,
                session.events,
                session.last_update_time,
            )
    return found


def in_target():
    async def read():
        async with CosmosSessionService.embedded("target.db") as service:
            return await everything(service)

    return asyncio.run(read())


@pytest.fixture
def source():
    async def make():
        service = SqliteSessionService("source.db")
        await fill(service)
        return await everything(service)

    return asyncio.run(make())


def test_everything_arrives_as_it_was(command, source):
    done = command("migrate", SOURCE, TARGET)
    assert done.code == 0, done.err
    assert "4 sessions (4 copied)" in done.out
    assert "equal in source and target: 4 sessions, 4 events, state of 1 user and 1 app" in done.out
    assert in_target() == source


def test_later_value_wins_whatever_the_order_of_copying(command, source):
    assert source["shop", "ada", "late"][0]["user:tea"] == "black"
    command("migrate", SOURCE, TARGET)
    state = in_target()["shop", "ada", "late"][0]
    assert (state["user:tea"], state["app:visits"], state["user:born"]) == ("black", 2, 1815)


def test_running_it_again_changes_nothing(command, source):
    command("migrate", SOURCE, TARGET)
    again = command("migrate", SOURCE, TARGET, "--json")
    assert again.code == 0
    assert json.loads(again.out) == {
        "sessions": {"already there": 4},
        "events": 4,
        "verified": {"sessions": 4, "events": 4, "users": 1, "apps": 1},
        "problems": [],
    }
    assert in_target() == source


def test_copy_that_was_cut_short_goes_on_where_it_stopped(command, source):
    async def half():
        theirs = SqliteSessionService("source.db")
        session = await theirs.get_session(app_name="shop", user_id="ada", session_id="late")
        async with CosmosSessionService.embedded("target.db") as service:

            async def begin(store):
                importer = Importer(store)
                append = importer._append

                async def only_one(key, document, present, missing):
                    await append(key, document, present, missing[:1])
                    raise ConnectionError

                importer._append = only_one
                await importer.copy(session)

            with pytest.raises(ConnectionError):
                await service.in_store(Unbounded("import"), begin)

    asyncio.run(half())
    done = command("migrate", SOURCE, TARGET)
    assert done.code == 0
    assert "1 resumed" in done.out
    assert in_target() == source


def test_what_came_in_meanwhile_is_copied_by_the_next_run(command, source):
    command("migrate", SOURCE, TARGET)

    async def go_on():
        service = SqliteSessionService("source.db")
        session = await service.get_session(app_name="shop", user_id="ada", session_id="late")
        await service.append_event(session, said("five", state={"user:tea": "oolong"}))
        return await everything(service)

    now = asyncio.run(go_on())
    done = command("migrate", SOURCE, TARGET)
    assert done.code == 0, done.err
    assert "1 resumed" in done.out
    assert in_target() == now


def test_interrupted_copy_says_that_it_can_go_on(command, source, monkeypatch):
    async def interrupted(migration, sessions):
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(Migration, "run", interrupted)
        done = command("migrate", SOURCE, TARGET)
    assert done.code == 130
    assert "Interrupted. 0 sessions were copied and checked. Run it again: it" in done.err
    assert command("migrate", SOURCE, TARGET).code == 0


def test_dry_run_writes_nothing(command, source, folder):
    done = command("migrate", SOURCE, TARGET, "--dry-run")
    assert done.code == 0
    assert "4 sessions (4 to copy)" in done.out
    assert not folder.joinpath("target.db").exists()


def test_only_one_app(command, source):
    assert "1 session (1 copied)" in command("migrate", SOURCE, TARGET, "--app", "bank").out


def test_session_that_went_on_in_the_target_is_left_alone_and_reported(command, source):
    command("migrate", SOURCE, TARGET, "--app", "shop")

    async def go_on():
        async with CosmosSessionService.embedded("target.db") as service:
            session = await service.get_session(app_name="shop", user_id="ada", session_id="late")
            await service.append_event(session, said("new", state={"user:tea": "white"}))

    asyncio.run(go_on())
    done = command("migrate", SOURCE, TARGET)
    assert done.code == 1
    assert "shop / ada / late: the target has another session of this id" in done.err
    after = in_target()
    assert [event.content.parts[0].text for event in after["shop", "ada", "late"][1]][-1] == "new"
    assert after["shop", "ada", "early"][0]["user:tea"] == "white"
    assert ("bank", "ada", "early") in after


def test_state_that_the_events_do_not_add_up_to_is_kept(command, source):
    """Another service may fold differently, or its data may have been changed by hand."""
    with sqlite3.connect("source.db") as database:
        database.execute("UPDATE sessions SET state = '{\"mood\": \"odd\"}' WHERE id = 'late'")
    database.close()
    done = command("migrate", SOURCE, TARGET)
    assert done.code == 0, done.err
    state, events, last = in_target()["shop", "ada", "late"]
    assert state["mood"] == "odd"
    assert [event.author for event in events] == ["user", "user", "cosmosservice-import"]
    assert last == source["shop", "ada", "late"][2]


def test_copied_sessions_can_be_rebuilt_from_the_log_alone(command, source):
    command("migrate", SOURCE, TARGET)
    with Emulator("target.db") as emulator, raw_store(emulator) as raw:
        for body in raw.sessions.all(document_type="session"):
            raw.sessions.remove(body)

    async def repair():
        async with CosmosSessionService.embedded("target.db") as service:
            for app_name, user_id, session_id in with_events:
                await service.repair_session(
                    app_name=app_name, user_id=user_id, session_id=session_id
                )

    with_events = {key: session for key, session in source.items() if session[1]}
    asyncio.run(repair())
    assert in_target() == with_events


def tamper(change):
    """Changes the first event document in the target, without the service."""
    with Emulator("target.db") as emulator:
        client = raw_client(emulator)
        container = client.get_database_client("adk").get_container_client("events")
        query = "SELECT * FROM c WHERE c.session_id = 'late' AND c.seq = 1"
        (document,) = container.query_items(query, partition_key="late")
        change(container, document)


def other_text(container, document):
    document["content"]["parts"][0]["text"] = "never said"
    container.upsert_item(document)


def other_time(container, document):
    container.upsert_item(document | {"timestamp": 99.0})


@pytest.mark.parametrize("change", [other_text, other_time])
def test_event_that_is_another_in_the_target_is_found(command, source, change):
    command("migrate", SOURCE, TARGET)
    tamper(change)
    done = command("migrate", SOURCE, TARGET)
    assert done.code == 1
    assert "shop / ada / late: its event 1 differs" in done.err
    assert "equal in source and target: 3 sessions, 2 events" in done.out
    assert "Error: 1 difference between the source and the target." in done.err


def test_shared_state_that_changed_while_it_was_copied_is_found(monkeypatch):
    """The session that wrote it was read before the write. The next run copies it."""

    def shown(session_id, tea, *events):
        where = {"app_name": "shop", "user_id": "ada", "id": session_id}
        return Session(**where, state={"user:tea": tea}, events=events, last_update_time=1.0)

    async def sessions():
        yield shown("first", "green", said("one", state={"user:tea": "green"}, timestamp=200.0))
        yield shown("second", "black")

    async def copy():
        async with CosmosSessionService.embedded("target.db") as service:
            return await Migration(service).run(sessions())

    monkeypatch.setattr("cosmosservice.cli.migrate.SIDE_BY_SIDE", 1)
    report = asyncio.run(copy())
    assert report.problems == ["shop / ada: user state differs: tea"]
    assert report.verified.sessions == 2


def test_from_one_cosmos_store_to_another(command):
    async def make():
        async with CosmosSessionService.embedded("ours.db") as service:
            await fill(service)
            return await everything(service)

    before = asyncio.run(make())
    done = command("migrate", "cosmosdb://embedded/ours.db", TARGET)
    assert done.code == 0, done.err
    assert in_target() == before


@pytest.mark.parametrize(
    ("source_uri", "said_"),
    [
        ("sqlite:///missing.db", "There is no file missing.db."),
        ("cosmosdb://embedded/missing.db", "There is no file missing.db"),
        ("source.db", "A source is a URI"),
        ("memory://", "name them with --app"),
    ],
)
def test_wrong_source_is_explained(command, source_uri, said_):
    done = command("migrate", source_uri, TARGET)
    assert done.code == 2
    assert said_ in done.err


def test_password_of_a_source_is_not_repeated(command):
    done = command("migrate", "nonsense+x://ada:hush@host/db", TARGET)
    assert done.code == 2
    assert "hush" not in done.out + done.err


def test_source_that_cannot_be_read_is_one_line(command, source):
    with sqlite3.connect("source.db") as database:
        database.execute("UPDATE events SET event_data = 'no JSON'")
    database.close()
    done = command("migrate", SOURCE, TARGET)
    assert done.code == 1
    assert "The source cannot be read: " in done.err
    assert "Traceback" not in done.err


def test_a_wrong_target_is_reported_before_the_source_is_read(command):
    done = command("migrate", "sqlite:///missing.db", "sqlite:///target.db")
    assert done.code == 2
    assert "A cosmosdb:// URI looks like cosmosdb://" in done.err


def test_key_that_an_event_set_to_none_is_none_or_absent(command):
    """Some versions of ADK's SQLite service treat None as a deletion, others store it."""

    async def make():
        service = SqliteSessionService("source.db")
        session = await service.create_session(app_name="shop", user_id="ada", state={"n": 1})
        await service.append_event(session, said("forget it", state={"n": None}))

    asyncio.run(make())
    assert command("migrate", SOURCE, TARGET).code == 0
    ((state, events, _),) = in_target().values()
    assert state.get("n") is None
    assert len(events) == 1
