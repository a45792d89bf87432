"""A fork gets its own copies of the artifact versions."""

from __future__ import annotations

import datetime

import pytest
from google.adk.artifacts.artifact_util import get_artifact_uri
from google.adk.errors.input_validation_error import InputValidationError
from google.adk.events.event_actions import EventActions

from cosmosservice import (
    AlreadyExistsError,
    ConfigurationError,
    CosmosArtifactService,
    CosmosSessionService,
    DamagedArtifactError,
    SessionNotFoundError,
)
from cosmosservice.hosting.operation import Unbounded
from tests.artifacts import processes
from tests.artifacts.kinds import SMALL, blob, refer, text
from tests.artifacts.processes import bytes_of
from tests.support.adk import event
from tests.support.cosmos import account_on

APP, ANN, BOB = "app", {"app_name": "app", "user_id": "ann"}, {"app_name": "app", "user_id": "bob"}
THIS = ANN | {"session_id": "s"}
FORK = ANN | {"session_id": "fork"}
LARGE = bytes_of("large", 1000)


def documents(store):
    return [each for each in processes.documents(store) if "scope" in each]


class Process:
    """Sessions and artifacts on one account."""

    def __init__(self, store, *, with_artifacts=True):
        self.account = account_on(store)
        self.sessions = CosmosSessionService(account=self.account)
        self.artifacts = None
        if with_artifacts:
            self.artifacts = CosmosArtifactService(account=self.account, _sizes=SMALL)

    async def tell(self, session, **versions):
        """An event that names these versions."""
        said = event("said", id=f"e{len(session.events) + 1}")
        said.actions = EventActions(artifact_delta=versions)
        await self.sessions.append_event(session, said)

    async def save(self, name, part, who=THIS):
        return await self.artifacts.save_artifact(**who, filename=name, artifact=part)

    async def load(self, name, who=FORK, **options):
        return await self.artifacts.load_artifact(**who, filename=name, **options)

    async def versions(self, who=FORK):
        names = await self.artifacts.list_artifact_keys(**who)
        return {
            name: await self.artifacts.list_versions(**who, filename=name)
            for name in names
            if not name.startswith("user:")
        }


@pytest.fixture
async def connect(cosmos):
    """`connect()`: one more process."""
    opened = []

    def open_one(**options):
        opened.append(Process(cosmos, **options))
        return opened[-1]

    yield open_one
    for each in opened:
        await each.account.close()


@pytest.fixture
async def process(connect):
    """Two events that name versions 0 and 1 of "a". Before each, there is one more upload."""
    made = connect()
    session = await made.sessions.create_session(**THIS)
    for number in range(2):
        await made.save("upload", text(f"upload {number}"))
        await made.save("a", blob(LARGE + bytes([number])))
        await made.tell(session, a=number)
    return made


async def test_a_fork_has_the_same_versions(connect, process):
    await process.sessions.fork_session(**THIS, new_session_id="fork")
    other = connect()
    assert await other.versions() == {"a": [0, 1], "upload": [0, 1]}
    for number in range(2):
        assert await other.load("a", version=number) == blob(LARGE + bytes([number]))
        assert await other.load("upload", version=number) == text(f"upload {number}")
    one, another = [
        await other.artifacts.list_artifact_versions(**who, filename="a") for who in (THIS, FORK)
    ]
    assert [each.create_time for each in one] == [each.create_time for each in another]
    assert await other.save("a", text("next"), who=FORK) == 2


@pytest.mark.parametrize("at", ["e1", 1])
async def test_a_fork_at_a_point_has_what_was_there_then(connect, process, at):
    await process.sessions.fork_session(**THIS, at=at, new_session_id="fork")
    assert await connect().versions() == {"a": [0], "upload": [0]}
    await process.sessions.fork_session(**FORK, new_session_id="next")
    assert await connect().versions(ANN | {"session_id": "next"}) == {"a": [0], "upload": [0]}


async def test_a_fork_at_the_beginning_or_an_early_time_has_none(connect, process):
    early = datetime.datetime.fromtimestamp(10, datetime.UTC)
    for at in (0, early):
        fork = await process.sessions.fork_session(**THIS, at=at)
        assert await connect().versions(ANN | {"session_id": fork.id}) == {}


@pytest.mark.parametrize("gone", ["source", "fork"])
async def test_erasing_one_does_not_reach_into_the_other(connect, process, emulator, gone):
    await process.sessions.fork_session(**THIS, new_session_id="fork")
    erased, kept = (THIS, FORK) if gone == "source" else (FORK, THIS)
    await process.sessions.purge_session(**erased)
    other = connect()
    assert await other.versions(erased) == {}
    assert await other.load("a", kept, version=1) == blob(LARGE + b"\x01")
    await other.sessions.purge_session(**kept)
    assert [each for each in processes.content(emulator) if "scope" in each] == []


async def test_references_lead_to_the_copies(connect, process):
    await process.save("again", refer(get_artifact_uri(APP, "ann", "a", 0, "s")))
    await process.save("user:u", blob(b"shared"), ANN)
    await process.save("to_user", refer(get_artifact_uri(APP, "ann", "user:u", 0)))
    await process.sessions.fork_session(**THIS, new_session_id="fork")
    await process.sessions.purge_session(**THIS)
    other = connect()
    assert await other.load("again") == blob(LARGE + b"\x00")
    assert await other.load("to_user") == blob(b"shared")


@pytest.mark.parametrize("size", [10, 1000])
async def test_a_fork_for_another_user_can_load_everything(connect, process, cosmos, size):
    await process.save("again", refer(get_artifact_uri(APP, "ann", "a", 0, "s")))
    await process.save("user:u", blob(bytes(size)), ANN)
    await process.save("user:gone", blob(b"gone"), ANN)
    for name in ("user:u", "user:gone"):
        await process.save(f"to_{name[5:]}", refer(get_artifact_uri(APP, "ann", name, 0)))
    await process.artifacts.delete_artifact(**ANN, filename="user:gone")
    await process.sessions.fork_session(**THIS, new_user_id="bob", new_session_id="fork")
    await process.sessions.purge_user(**ANN, include_state=True)
    other, theirs = connect(), BOB | {"session_id": "fork"}
    assert await other.load("again", theirs) == blob(LARGE + b"\x00")
    assert await other.load("to_u", theirs) == blob(bytes(size))
    assert await other.load("to_gone", theirs) is None
    assert "ann" not in {each.get("user_id") for each in documents(cosmos)}
    assert "users/ann" not in str(documents(cosmos))


async def test_the_same_bytes_are_copied_once(process, cosmos):
    await process.save("b", blob(LARGE + b"\x00"))
    await process.sessions.fork_session(**THIS, new_session_id="fork")
    copies = [each for each in documents(cosmos) if each.get("session_id") == "fork"]
    versions = [each for each in copies if each["document_type"] == "version"]
    uploads = {each["payload"]["upload"] for each in versions if "payload" in each}
    assert (len(uploads), len(versions)) == (2, 5)


async def test_a_deleted_name_is_not_copied_and_a_damaged_version_stays_damaged(
    connect, process, cosmos
):
    await process.save("gone", blob(LARGE))
    await process.artifacts.delete_artifact(**THIS, filename="gone")
    broken = next(each for each in documents(cosmos) if each["document_type"] == "piece")
    await process.artifacts.in_store(
        Unbounded("test"), lambda store: store.container.delete(broken["id"], broken["scope"])
    )
    await process.sessions.fork_session(**THIS, new_session_id="fork")
    other = connect()
    assert await other.versions() == {"a": [0, 1], "upload": [0, 1]}
    damaged = []
    for number in range(2):
        try:
            assert await other.load("a", version=number) == blob(LARGE + bytes([number]))
        except DamagedArtifactError:
            damaged.append(number)
    assert len(damaged) == 1


async def test_the_copy_of_an_impossible_version_does_not_hide_a_newer_one(
    connect, process, cosmos
):
    """In the process that made the copy, too."""

    async def damage(store):
        for each in documents(cosmos):
            if each["document_type"] == "version" and each["filename"] == "a":
                payload = each["payload"] | {"pieces": -1}
                await store.container.replace(each | {"payload": payload}, each["_etag"])

    await process.artifacts.in_store(Unbounded("test"), damage)
    await process.sessions.fork_session(**THIS, new_session_id="fork")
    fork = ANN | {"session_id": "fork"}
    with pytest.raises(DamagedArtifactError):
        await process.artifacts.load_artifact(**fork, filename="a")
    await connect().artifacts.save_artifact(**fork, filename="a", artifact=blob(b"new"))
    found = await process.artifacts.load_artifact(**fork, filename="a")
    assert found == blob(b"new")


@pytest.mark.parametrize("options", [{}, {"with_artifacts": False}])
async def test_a_fork_cut_short_anywhere_is_completed_with_its_artifacts(
    connect, process, emulator, options
):
    """Completed by a process with artifacts, or first by one without and then by one with them."""
    nth, cut = -2 if options else -1, 0
    while True:
        nth += 4  # the crash matrix tries all
        victim = connect()
        await victim.sessions.get_session(**THIS)
        where = lambda each: each.operation in ("create", "replace", "batch")  # noqa: E731
        emulator.faults.fail(403, nth=nth, times=None, resource="docs", where=where)
        fork, done = ANN | {"session_id": f"fork{nth}"}, False
        try:
            await victim.sessions.fork_session(**THIS, new_session_id=fork["session_id"])
            done = True
        except Exception:
            cut += 1
        emulator.faults.clear()
        first, second = connect(**options), connect()
        found = await first.sessions.get_session(**fork)
        assert (await second.sessions.get_session(**fork) is None) == (found is None)
        expected = {} if found is None else {"a": [0, 1], "upload": [0, 1]}
        assert await second.versions(fork) == expected
        if found is not None:
            assert await second.load("a", fork, version=1) == blob(LARGE + b"\x01")
        if done:
            break
    assert cut >= 3
    emulator.clock.advance(2 * 24 * 3600)
    await connect().artifacts.sweep()
    assert processes.garbage(emulator) == []


async def test_a_fork_whose_source_is_purged_meanwhile_leaves_no_artifact(
    connect, process, emulator
):
    other = connect()
    await other.sessions.get_session(**THIS)

    async def purge(_):
        emulator.faults.clear()
        await other.sessions.purge_session(**THIS)
        assert await connect().sessions.get_session(**FORK) is None

    def of_fork(each):
        return each.operation == "batch"

    emulator.faults.call(purge, when="after", where=of_fork)
    with pytest.raises(Exception, match="was erased while it was copied"):
        await process.sessions.fork_session(**THIS, new_session_id="fork")
    assert [each for each in processes.content(emulator) if "scope" in each] == []


@pytest.mark.parametrize("erased", ["purged", "created again"])
async def test_a_fork_is_complete_or_ends_with_its_source(connect, emulator, erased):
    """The source is erased at every request of the fork."""
    nth, sent, outcomes = 0, True, set()
    other, first, second = connect(), connect(), connect()
    while sent:
        nth, sent = nth + 1, False
        here, there = ANN | {"session_id": f"s{nth}"}, ANN | {"session_id": f"fork{nth}"}
        victim = connect()
        session = await victim.sessions.create_session(**here)
        await victim.save("a", blob(LARGE), here)
        await victim.tell(session, a=0)
        await other.sessions.get_session(**here)

        async def erase(_, here=here):
            nonlocal sent
            sent = True
            emulator.faults.clear()
            if erased == "purged":
                await other.sessions.purge_session(**here)
            else:
                await other.sessions.delete_session(**here)
                await other.sessions.create_session(**here)

        emulator.faults.call(erase, when="before", nth=nth)
        try:
            await victim.sessions.fork_session(**here, new_session_id=there["session_id"])
            outcomes.add("complete")
        except SessionNotFoundError:
            outcomes.add("ended")
        emulator.faults.clear()
        found = await first.sessions.get_session(**there)
        # What is forked may be the session that was created again.
        expected = {"a": [0]} if found is not None and found.events else {}
        assert await other.versions(there) == expected, nth
        assert found is not None or await second.sessions.get_session(**there) is None
        await victim.account.close()
    assert outcomes == {"complete", "ended"}


async def test_artifacts_of_the_new_id_are_not_overwritten(process, cosmos):
    await process.save("a", text("mine"), FORK)
    before = documents(cosmos)
    with pytest.raises(AlreadyExistsError, match="there are artifacts of a session with the new"):
        await process.sessions.fork_session(**THIS, new_session_id="fork")
    assert documents(cosmos) == before
    assert await process.sessions.get_session(**FORK) is None


async def test_an_id_that_artifacts_cannot_have_is_refused_before_anything_is_stored(process):
    with pytest.raises(InputValidationError):
        await process.sessions.fork_session(**THIS, new_session_id="/etc/passwd")
    assert await process.sessions.count_sessions(**ANN) == 1


async def test_an_id_of_which_artifacts_were_deleted_can_be_used(connect, process):
    for name in ("a", "upload"):
        for _ in range(3):
            await process.save(name, text("old"), FORK)
        await process.artifacts.delete_artifact(**FORK, filename=name)
    await connect().sessions.fork_session(**THIS, new_session_id="fork")
    assert await connect().versions() == {"a": [0, 1], "upload": [0, 1]}
    assert await connect().load("a") == blob(LARGE + b"\x01")


async def test_a_process_without_an_artifact_service_copies_artifacts_too(connect, process):
    sessions = connect(with_artifacts=False).sessions
    fork = await sessions.fork_session(**THIS, new_session_id="fork")
    assert len(fork.events) == 2
    assert await connect().versions() == {"a": [0, 1], "upload": [0, 1]}


async def test_payloads_that_cannot_be_reached_are_said_before_anything_is_stored(
    process, cosmos, monkeypatch
):
    changed = next(each for each in documents(cosmos) if "payload" in each)
    await process.artifacts.in_store(
        Unbounded("test"),
        lambda store: store.container.replace(
            changed | {"payload": changed["payload"] | {"store": "blobs"}}, changed["_etag"]
        ),
    )
    with pytest.raises(ConfigurationError, match="COSMOSDB_ARTIFACT_BLOBS"):
        await process.sessions.fork_session(**THIS, new_session_id="fork")
    assert await process.sessions.get_session(**FORK) is None
