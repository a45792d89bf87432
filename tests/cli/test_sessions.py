"""`cosmosservice sessions …`"""

import asyncio
import json
import re

import pytest
from google.adk.memory.memory_entry import MemoryEntry
from google.genai import types

from cosmosservice import (
    CosmosAccount,
    CosmosArtifactService,
    CosmosMemoryService,
    CosmosSessionService,
)
from cosmosservice.cli import console, moving, session_work
from cosmosservice.hosting.operation import Unbounded
from cosmosservice.sessions.store.keys import SessionKey
from tests.cli.conftest import said

CONTENT = types.Content(role="user", parts=[types.Part(text="likes tea")])
FIRST = ("--app", "shop", "--user", "ada", "first")


def stored(session_id="first", path="store.db"):
    async def get():
        async with CosmosSessionService.embedded(path) as service:
            return await service.get_session(app_name="shop", user_id="ada", session_id=session_id)

    return asyncio.run(get())


def test_list_shows_every_session_with_its_title(command, conversation):
    shown = command("sessions", "list")
    assert shown.code == 0
    row = next(line for line in shown.out.splitlines() if line.startswith("first"))
    assert re.split(r"  +", row.strip()) == [
        "first",
        "Tea, please",
        "shop",
        "ada",
        "2",
        "1970-01-01",
    ]


def test_list_cuts_nothing_off(command, monkeypatch):
    monkeypatch.setenv("COLUMNS", "20")
    names = [f"{app}-{'x' * 200}" for app in "ab"]

    async def make():
        async with CosmosSessionService.embedded("store.db") as service:
            for name in names:
                await service.create_session(app_name="shop", user_id="ada", session_id=name)

    asyncio.run(make())
    shown = command("sessions", "list").out
    assert all(name in shown for name in names)
    assert shown.count("just now") == 2


def test_list_goes_on_where_it_ended(command):
    async def make():
        async with CosmosSessionService.embedded("store.db") as service:
            for app in ("cafe", "shop"):
                for number in range(4):
                    session = await service.create_session(
                        app_name=app, user_id="ada", session_id=f"s{number // 2 * 2}-{number}"
                    )
                    # Two moments, each with sessions that differ only in their app.
                    await service.append_event(session, said("hi", timestamp=float(number // 2)))

    asyncio.run(make())
    found, more = [], ()
    while more is not None:
        shown = command("sessions", "list", "--limit", "1", "--json", *more)
        rows = [json.loads(line) for line in shown.out.splitlines()]
        found += [(row["last_update_time"], row["session_id"], row["app_name"]) for row in rows]
        more = (
            shown.err.split()[-2:] if shown.err.startswith("To continue: cosmosservice") else None
        )
    assert len(found) == len(set(found)) == 8
    assert [at for at, *_ in found] == [1.0] * 4 + [0.0] * 4


@pytest.mark.parametrize("token", ["x", "W10="])
def test_list_refuses_an_invalid_continuation(command, conversation, token):
    shown = command("sessions", "list", "--continue", token)
    assert shown.code == 2
    assert "--continue takes the token" in shown.err


def test_list_refuses_the_continuation_of_another_list(command, conversation):
    asyncio.run(second_session())
    shown = command("sessions", "list", "--limit", "1")
    token = shown.err.split()[-1]
    assert (
        "with the same --app" in command("sessions", "list", "--app", "x", "--continue", token).err
    )


async def second_session():
    async with CosmosSessionService.embedded("store.db") as service:
        await service.create_session(app_name="shop", user_id="ada", session_id="second")


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [
        (0, "just now"),
        (59, "just now"),
        (60, "1 minute ago"),
        (7200, "2 hours ago"),
        (86_400 * 3, "3 days ago"),
        (86_400 * 40.5, "2001-07-30"),
    ],
)
def test_times_are_shown_relative_to_now(seconds, shown):
    now = 1_000_000_000.0
    assert session_work.ago(now - seconds, now) == shown


def test_list_for_scripts(command, conversation):
    shown = command("sessions", "list", "--app", "shop", "--user", "ada", "--json")
    (line,) = shown.out.splitlines()
    found = json.loads(line)
    assert (found["session_id"], found["events"]) == ("first", 2)
    assert found["last_update_time"] == 101.5


def test_list_of_another_app_is_empty(command, conversation):
    assert command("sessions", "list", "--app", "other", "--json").out == ""
    assert command("sessions", "list", "--app", "other").err == "No sessions.\n"


def test_show_is_a_timeline(command, conversation):
    shown = command("sessions", "show", *FIRST)
    assert shown.code == 0
    rows = [" ".join(line.split()) for line in shown.out.splitlines()]
    assert rows[rows.index("#2 waiter +1.5 s") + 1] == "Here you are"
    assert 'user:name = "Ada"' in rows
    assert 'cart = ["tea"]' in rows


def test_show_for_scripts(command, conversation):
    head, *events = map(json.loads, command("sessions", "show", *FIRST, "--json").out.splitlines())
    assert head["session"]["state"] == {"cart": ["tea"], "user:name": "Ada", "app:open": True}
    assert [e["event"]["content"]["parts"][0]["text"] for e in events] == [
        "Tea, please",
        "Here you are",
    ]


def test_show_of_a_missing_session_says_so(command, conversation):
    shown = command("sessions", "show", "--app", "shop", "--user", "ada", "second")
    assert shown.code == 1
    assert shown.err.startswith("Error: There is no session 'second' of user 'ada' in app 'shop'.")


def test_looking_into_a_store_that_is_not_there_makes_none(command, folder):
    shown = command("sessions", "list")
    assert shown.code == 2
    assert "There is no file store.db" in shown.err
    assert list(folder.iterdir()) == []


def test_exported_sessions_come_back_equal(command, conversation, folder):
    before = stored()
    assert command("sessions", "export", "-o", "all.jsonl").code == 0
    done = command("sessions", "import", "all.jsonl", "--uri", "cosmosdb://embedded/copy.db")
    assert done.code == 0
    assert "1 session (1 copied)" in done.out
    after = stored(path="copy.db")
    assert after.events == before.events
    assert after.state == before.state
    assert after.last_update_time == before.last_update_time


def test_export_takes_deleted_sessions_memories_and_artifacts_along(command, conversation, folder):
    async def more():
        async with CosmosAccount.embedded("store.db") as account:
            memory = CosmosMemoryService(account=account)
            artifacts = CosmosArtifactService(account=account)
            sessions = CosmosSessionService(account=account)
            who = {"app_name": "shop", "user_id": "ada"}
            first = await sessions.get_session(**who, session_id="first")
            await memory.add_session_to_memory(first)
            large = types.Content(role="user", parts=[types.Part(text="tea " * 4_000)])
            await memory.add_memory(**who, memories=[MemoryEntry(id="m", content=large)])
            for name, session_id in (("a.bin", "first"), ("user:b.txt", None)):
                for data in (b"\x00\xff\xfe", b"\xfb\xef" * 9_000):
                    blob = types.Blob(mime_type="application/x-tea", data=data)
                    await artifacts.save_artifact(
                        **who,
                        session_id=session_id,
                        filename=name,
                        artifact=types.Part(inline_data=blob),
                        custom_metadata={"of": len(data)},
                    )
            gone = await sessions.create_session(**who, session_id="gone", state={"k": 1})
            await sessions.append_event(gone, said("Bye", timestamp=90.0))
            await sessions.delete_session(**who, session_id="gone")

    asyncio.run(more())
    also = [word for kind in ("deleted", "memories", "artifacts") for word in ("--with", kind)]
    copy = ("--uri", "cosmosdb://embedded/copy.db")
    done = command("sessions", "export", *also, "-o", "all.jsonl")
    assert "1 session, 1 deleted session, 3 memories, 4 versions of artifacts written." in done.err
    for text in ("copied", "already there"):
        done = command("sessions", "import", "all.jsonl", *copy)
        assert (done.code, text in done.out) == (0, True), done.err
    assert '"gone"' in command("sessions", "list", "--deleted", "--json", *copy).out
    found = command("memory", "search", "--app", "shop", "--user", "ada", "tea", "--json", *copy)
    times = [json.loads(line)["timestamp"] for line in found.out.splitlines()]
    assert len(times) == 2
    assert 100.0 in times  # seconds, as everywhere
    command("sessions", "export", *also, "-o", "again.jsonl", *copy)
    assert folder.joinpath("again.jsonl").read_bytes() == folder.joinpath("all.jsonl").read_bytes()


def test_export_goes_to_standard_output(command, conversation):
    lines = command("sessions", "export", "--app", "shop", "--session", "first").out.splitlines()
    assert json.loads(lines[0]) == {"format": "cosmosservice-sessions", "version": 1}
    assert len(lines) == 4


def test_file_that_is_cut_off_is_refused(command, conversation, folder):
    command("sessions", "export", "-o", "all.jsonl")
    whole = folder.joinpath("all.jsonl").read_bytes()
    folder.joinpath("cut.jsonl").write_bytes(b"".join(whole.splitlines(True)[:-1]))
    done = command("sessions", "import", "cut.jsonl", "--uri", "cosmosdb://embedded/copy.db")
    assert done.code == 1
    assert "damaged or cut off" in done.err


def test_file_of_another_kind_is_refused(command, folder):
    folder.joinpath("other.jsonl").write_text('{"a": 1}\n')
    done = command("sessions", "import", "other.jsonl")
    assert done.code == 1
    assert "not a file that `cosmosservice sessions export` wrote" in done.err


def test_delete(command, conversation):
    assert command("sessions", "delete", *FIRST).code == 0
    assert stored() is None
    assert command("sessions", "list", "--json").out == ""
    (gone,) = command("sessions", "list", "--deleted", "--json").out.splitlines()
    assert json.loads(gone)["events"] == 2
    assert command("sessions", "delete", *FIRST).code == 1


def test_restore_brings_a_deleted_session_back(command, conversation):
    before = stored()
    command("sessions", "delete", *FIRST)
    assert command("sessions", "restore", *FIRST).code == 0
    assert stored().events == before.events
    (row,) = command("sessions", "list", "--json").out.splitlines()
    assert json.loads(row)["session_id"] == "first"


def test_restore_of_a_session_that_never_existed_says_so(command, conversation):
    shown = command("sessions", "restore", "--app", "shop", "--user", "ada", "never")
    assert shown.code == 1
    assert shown.err.startswith("Error: ")


def test_purge_asks_first(command, conversation):
    refused = command("sessions", "purge", *FIRST, input="n\n")
    assert refused.code == 1
    assert (
        "Erase session 'first' (2 events) of user 'ada' in app 'shop', with its memories and"
        " artifacts, for good?"
    ) in refused.err
    assert stored() is not None


def test_purge_of_several_says_whose_they_are_and_how_many(command, conversation):
    asyncio.run(second_session())
    command("sessions", "delete", "second")
    asked = command("sessions", "purge", "--app", "shop", "--user", "ada", "--all", input="n\n")
    assert (
        "Erase all of user 'ada' in app 'shop': 1 session and 1 deleted, all memories and"
        " artifacts, for good?"
    ) in asked.err
    old = ("--deleted", "--older-than", "0s")
    asked = command("sessions", "purge", *old, "--app", "shop", input="n\n")
    assert "Erase 1 session of app 'shop', deleted more than 0 seconds ago, with" in asked.err
    asked = command("sessions", "purge", "--deleted", input="n\n")
    assert "Erase 0 sessions of all apps, deleted more than 30 days ago, with" in asked.err
    assert stored() is not None


def test_purge_erases_one_session_for_good(command, conversation):
    assert command("sessions", "purge", *FIRST, "--yes").code == 0
    assert stored() is None
    assert command("sessions", "restore", *FIRST).code == 1


def test_purge_erases_what_was_deleted_long_ago_and_nothing_else(command, conversation):
    assert "nothing to erase" in command("sessions", "purge", "--deleted", "--yes").err
    command("sessions", "delete", *FIRST)
    young = command("sessions", "purge", "--deleted", "--older-than", "1h", "--yes")
    assert "nothing to erase" in young.err
    old = command("sessions", "purge", "--deleted", "--older-than", "0s", "--yes")
    assert "Erased: 1 session, " in old.err
    assert command("sessions", "list", "--deleted", "--json").out == ""


def test_purge_erases_all_of_a_user(command, conversation):
    whose = ("--app", "shop", "--user", "ada")
    done = command("sessions", "purge", *whose, "--all", "--include-state", "--yes")
    assert "Erased: 1 session, " in done.err

    async def state():
        async with CosmosSessionService.embedded("store.db") as service:
            return await service.get_user_state(app_name="shop", user_id="ada")

    assert asyncio.run(state()) == {}


def test_purge_erases_a_person_in_every_app_after_showing_what_there_is(command, conversation):
    async def elsewhere():
        async with CosmosAccount.embedded("store.db") as account:
            memory = CosmosMemoryService(account=account)
            artifacts = CosmosArtifactService(account=account)
            for user in ("ada", "eve"):
                names = {"app_name": "notes", "user_id": user}
                await memory.add_memory(**names, memories=[MemoryEntry(content=CONTENT)])
                names = {"app_name": "files", "user_id": user, "session_id": "s"}
                await artifacts.save_artifact(
                    **names, filename="a.txt", artifact=types.Part(text="a")
                )

    asyncio.run(elsewhere())
    person = ("sessions", "purge", "--user", "ada", "--all-apps")
    asked = command(*person, input="n\n")
    assert [line.strip() for line in asked.err.splitlines()[:4]] == [
        "Of user 'ada' there is:",
        "app 'files': 0 sessions, 0 memories, 1 artifact",
        "app 'notes': 0 sessions, 1 memory, 0 artifacts",
        "app 'shop': 1 session, 0 memories, 0 artifacts",
    ]
    assert "Erase all of user 'ada' in 3 apps, with the user's state, for good?" in asked.err
    assert stored() is not None
    assert "Erased: 1 session, " in command(*person, "--yes").err
    assert stored() is None
    assert "nothing to erase" in command(*person, input="y\n").err
    left = command("sessions", "purge", "--user", "eve", "--all-apps", input="n\n").err
    assert "app 'notes': 0 sessions, 1 memory" in left
    assert "app 'files': 0 sessions, 0 memories, 1 artifact" in left


@pytest.mark.parametrize(
    "arguments",
    [
        (),
        ("--all-apps",),
        ("--all-apps", "--user", "ada", "--app", "shop"),
        ("--all",),
        ("--all", "--app", "shop"),
        ("first", "--deleted"),
        ("--deleted", "--older-than", "soon"),
    ],
)
def test_purge_of_nothing_in_particular_is_wrong_usage(command, conversation, arguments):
    assert command("sessions", "purge", *arguments, "--yes").code == 2


def test_repair_finds_a_sound_store_sound(command, conversation):
    shown = command("sessions", "repair", "--json")
    assert shown.code == 0
    (report,) = map(json.loads, shown.out.splitlines())
    assert (report["session_id"], report["events"], report["healthy"]) == ("first", 2, True)
    assert "1 session checked." in shown.err


def test_repair_names_no_session_that_was_purged(command, conversation):
    command("sessions", "purge", *FIRST, "--yes")
    shown = command("sessions", "repair", "--json")
    assert (shown.code, shown.out) == (0, "")
    assert shown.err == "0 sessions checked.\n"


def test_repair_says_which_event_is_missing(command, conversation):
    async def lose_the_first_event():
        async with CosmosSessionService.embedded("store.db") as service:

            async def lose(store):
                key = SessionKey.of("shop", "ada", "first")
                (first, _) = await store.log.read(key)
                await store.events.delete(
                    key.event_id(first.seq, first.incarnation), key.session_id
                )

            await service.in_store(Unbounded("test"), lose)

    asyncio.run(lose_the_first_event())
    shown = command("sessions", "repair", *FIRST)
    assert shown.code == 1
    assert "shop / ada / first: documents are missing at 1" in shown.out


def test_repair_of_many_goes_on_after_those_that_it_cannot_repair(command, conversation):
    async def damage():
        async with CosmosSessionService.embedded("store.db") as service:
            for each in ("nameless", "second"):
                await service.create_session(app_name="shop", user_id="ada", session_id=each)

            async def take_its_name(store):
                key = SessionKey.of("shop", "ada", "nameless")
                body = await store.sessions.read(key.document_id, key.user_id)
                del body["app_name"]
                await store.sessions.replace(body, body["_etag"])

            await service.in_store(Unbounded("test"), take_its_name)

    asyncio.run(damage())
    shown = command("sessions", "repair", "--user", "ada")
    assert (shown.code, shown.out) == (0, "")
    assert "2 sessions checked." in shown.err


def test_repair_continues_without_a_lost_body_only_on_request(command, conversation):
    key = SessionKey.of("shop", "ada", "first")

    async def lose_a_body(store):
        document = await store.documents.read(key)
        body = document.with_status("active", 0.0) | {"revision": 0, "state": {}}
        await store.documents.replace(document, body)
        document_id = key.event_id(1, document.incarnation)
        event = await store.events.read(document_id, key.session_id)
        event["chunks"] = {"upload": "none", "count": 1}
        await store.events.replace(event, event["_etag"])

    async def revision(store):
        return (await store.documents.read(key)).revision

    async def inside(work):
        async with CosmosSessionService.embedded("store.db") as service:
            return await service.in_store(Unbounded("test"), work)

    asyncio.run(inside(lose_a_body))
    for options, reached in (((), 0), (("--accept-loss",), 2)):
        shown = command("sessions", "repair", *FIRST, *options)
        assert shown.code == 1
        assert "events cannot be read at 1" in shown.out
        assert asyncio.run(inside(revision)) == reached


@pytest.mark.parametrize(
    "arguments",
    [
        ("show",),
        ("show", "--at", "1"),
        ("diff", "0", "1"),
        ("fork",),
        ("repair",),
        ("delete",),
        ("restore",),
        ("purge", "--yes"),
    ],
)
def test_the_id_of_a_session_is_enough_if_it_is_the_only_one(command, conversation, arguments):
    name, *rest = arguments
    if name == "restore":
        command("sessions", "delete", "first")
    assert command("sessions", name, "first", *rest).code == 0


def test_sessions_with_the_same_id_are_distinguished(command, conversation):
    async def make():
        async with CosmosSessionService.embedded("store.db") as service:
            await service.create_session(app_name="shop", user_id="bob", session_id="first")

    asyncio.run(make())
    shown = command("sessions", "show", "first")
    assert shown.code == 2
    assert "2 sessions have the id 'first'. Name one of them:" in shown.err
    assert "  --app 'shop' --user 'ada'\n  --app 'shop' --user 'bob'" in shown.err
    assert command("sessions", "show", "first", "--user", "bob").code == 0
    # `show` does not consider deleted sessions; `restore` considers only those.
    assert command("sessions", "delete", "first", "--user", "bob").code == 0
    assert "Tea, please" in command("sessions", "show", "first").out
    assert command("sessions", "restore", "first").code == 0
    assert command("sessions", "show", "first").code == 2


@pytest.mark.parametrize("deleted", [False, True])
def test_an_unknown_id_is_reported(command, conversation, deleted):
    shown = command("sessions", "restore" if deleted else "show", "never")
    assert shown.code == 1
    assert f"There is no {'deleted ' * deleted}session 'never'." in shown.err


def test_show_last_for_scripts(command, conversation):
    head, event = map(
        json.loads, command("sessions", "show", "first", "--last", "1", "--json").out.splitlines()
    )
    assert head["session"]["events"] == 1
    assert event["event"]["content"]["parts"][0]["text"] == "Here you are"


def test_list_on_a_narrow_terminal_breaks_no_id(command, conversation, monkeypatch):
    monkeypatch.setattr(console.out, "_force_terminal", True)
    monkeypatch.setenv("COLUMNS", "80")
    assert re.search(
        r"first +Tea, please +shop +ada +2 +1970-01-01", command("sessions", "list").out
    )
    monkeypatch.setenv("COLUMNS", "40")
    narrow = re.sub(r"\x1b\[[\d;]*m", "", command("sessions", "list").out)
    assert narrow == "first  1970-01-01\n  Tea, please\n  shop / ada  2 events\n"
    usage = re.sub(r"\x1b\[[\d;]*m", "", command("usage", "--by", "session").out)
    assert usage == "shop / ada / first\n  1 turn, 2 events, 11 RU\n"


def test_an_interrupted_purge_says_how_far_it_got(command, conversation, monkeypatch):
    async def interrupted(self, *, progress, **names):
        progress(2, 5)
        raise KeyboardInterrupt

    monkeypatch.setattr(CosmosSessionService, "purge_user", interrupted)
    whose = ("--app", "shop", "--user", "ada", "--all", "--yes")
    done = command("sessions", "purge", *whose)
    assert done.code == 130
    assert "Interrupted. 2 of 5 sessions were erased for good. To erase the rest, run" in done.err


def test_a_purge_that_is_interrupted_at_its_question_erases_nothing(
    command, conversation, monkeypatch
):
    async def interrupted(self, **names):
        raise KeyboardInterrupt

    monkeypatch.setattr(CosmosSessionService, "count_sessions", interrupted)
    done = command("sessions", "purge", "--app", "shop", "--user", "ada", "--all")
    assert done.code == 130
    assert "Interrupted. Nothing was erased." in done.err


def test_an_interrupted_export_leaves_a_file_that_can_be_imported(
    command, conversation, monkeypatch
):
    asyncio.run(second_session())
    real = moving.loaded

    async def interrupted(*arguments):
        async for session in real(*arguments):
            yield session
            raise KeyboardInterrupt

    monkeypatch.setattr(moving, "loaded", interrupted)
    done = command("sessions", "export", "-o", "some.jsonl")
    assert done.code == 130
    assert "Interrupted. 1 of 2 sessions were written." in done.err
    assert "1 session (1 to copy)" in command("sessions", "import", "some.jsonl", "--dry-run").out


def test_purge_for_scripts(command, conversation):
    report = json.loads(command("sessions", "purge", *FIRST, "--yes", "--json").out)
    assert report["sessions"] == 1


def test_any_other_command_that_is_interrupted_ends_with_130(command, conversation, monkeypatch):
    async def interrupted(self, **names):
        raise KeyboardInterrupt

    monkeypatch.setattr(CosmosSessionService, "delete_session", interrupted)
    done = command("sessions", "delete", "first")
    assert done.code == 130
    assert "Interrupted." in done.err


def test_times_in_json_are_seconds_and_nothing_internal_is_printed(command, conversation):
    (line,) = command("sessions", "list", "--json").out.splitlines()
    found = json.loads(line)
    assert isinstance(found["create_time"], float)
    assert found["last_update_time"] == 101.5
    assert sorted(found) == sorted(
        ["app_name", "user_id", "session_id", "title", "events", "create_time", "last_update_time"]
    )


def test_a_restored_session_and_a_fork_have_as_many_events_as_before(command, conversation):
    command("sessions", "delete", "first")
    command("sessions", "restore", "first")
    command("sessions", "fork", "first", "--new-session", "second")
    lines = map(json.loads, command("sessions", "list", "--json").out.splitlines())
    assert {each["session_id"]: each["events"] for each in lines} == {"first": 2, "second": 2}


def test_the_shell_completes_ids_of_sessions(command, conversation):
    def completed(*words):
        given = {"_COSMOSSERVICE_COMPLETE": "bash_complete", "COMP_CWORD": str(len(words))}
        line = {"COMP_WORDS": " ".join(("cosmosservice", *words))}
        return command(prog_name="cosmosservice", env=given | line).out.split()

    assert completed("sessions", "show", "fi") == ["plain,first"]
    assert completed("artifacts", "list", "--session", "f") == ["plain,first"]
    assert completed("sessions", "show", "other") == []


def test_a_file_of_memories_only_has_no_sessions(command):
    from cosmos_emulator import Emulator

    with Emulator("store.db"):
        pass
    assert command("sessions", "list").err == "No sessions.\n"
    assert "Bicep" not in command("sessions", "show", "first").err
