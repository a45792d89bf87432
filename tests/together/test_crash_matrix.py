"""Some of the cases of crash_matrix.py. `make crash-matrix` runs them all."""

from __future__ import annotations

import datetime

import pytest

from cosmosservice import (
    CosmosAccount,
    CosmosArtifactService,
    CosmosMemoryService,
    CosmosSessionService,
)
from cosmosservice.account.dependants import Dependants
from tests.reliability.simulation import simulate
from tests.together import crash_matrix as matrix
from tests.together.crash_matrix import (
    ADA,
    OLD,
    OPERATIONS,
    THIS,
    Case,
    Stage,
    cases,
    prepared,
    run,
)
from tests.together.processes import full, look

NAMED = {each.name: each for each in OPERATIONS}
EVERY = 71


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda each: each.name)
def test_an_interruption_at_any_request_breaks_no_promise(operation):
    found = map(run, cases(operation, every=EVERY))
    assert [each for each in found if each.problem] == []


async def _none(*_, **__):
    return []


@pytest.mark.parametrize(
    ("owner", "rule", "operation"),
    [
        (Dependants, "all", "purge_session"),
        (Dependants, "all", "create over deleted"),
    ],
)
def test_a_rule_that_is_left_out_is_noticed(monkeypatch, owner, rule, operation):
    prepared(NAMED[operation])
    monkeypatch.setattr(owner, rule, _none)
    assert run(Case(operation, 0, "")).problem is not None


def test_a_purge_after_a_stale_read_erases_the_session_of_now():
    """Created again by another process, and not yet seen by the replicas."""
    case = Case("create over deleted", 0, "", then="purge", lag=True)
    assert run(case).problem is None


@pytest.mark.parametrize("name", ["purge_session", "purge_user", "purge_deleted"])
def test_no_byte_is_left_in_the_file(name, tmp_path):
    operation = NAMED[name]
    content = prepared(operation)
    path = tmp_path / "store.db"

    async def purge() -> None:
        matrix._later()
        stage = Stage(content=content, path=path)
        await operation.run(stage.process())
        # Killed: nothing is closed.
        files = b"".join(each.read_bytes() for each in tmp_path.glob("store.db*"))
        assert OLD.encode() not in files
        stage.close()

    assert OLD.encode() in content
    simulate(purge)


@pytest.mark.parametrize("session_id", ["s:1", "..", "b:c", "x/../y", "a?b", "x" * 200])
async def test_no_name_blocks_the_erasure_of_others(emulator, session_id):
    async with CosmosAccount.embedded(emulator) as account:
        sessions = CosmosSessionService(account=account)
        services = CosmosMemoryService(account=account), CosmosArtifactService(account=account)
        for each in (session_id, "z"):
            await sessions.create_session(**ADA, session_id=each)
            await sessions.delete_session(**ADA, session_id=each)
        report = await sessions.purge_deleted(older_than=datetime.timedelta(0))
        assert (report.sessions, report.failed) == (2, ())
        assert services


def test_a_restored_session_has_everything_back():
    async def restore() -> None:
        matrix._later()
        stage = Stage(content=prepared(NAMED["restore"]))
        await stage.process(whole=False).sessions.restore_session(**THIS)
        assert await look(stage.process(), "s") == full(OLD)
        stage.close()

    prepared(NAMED["restore"])
    simulate(restore)
