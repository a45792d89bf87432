"""What nobody waits for is sent with a low priority, and what a turn waits for is not."""

from collections import defaultdict

import pytest
from click.testing import CliRunner

from cosmosservice import CosmosSessionService
from cosmosservice.account import charges, connection
from cosmosservice.cli.commands import cli
from tests.support.adk import event

WHO = {"app_name": "app", "user_id": "ada", "session_id": "s"}


@pytest.fixture
def priorities(monkeypatch):
    """The priorities of the requests, by operation."""
    seen = defaultdict(set)

    def note_sent(request):
        charges.note_sent(request)
        priority = request.http_request.headers.get("x-ms-cosmos-priority-level")
        seen[str(charges.current_operation.get())].add(priority)

    monkeypatch.setattr(connection, "note_sent", note_sent)
    return seen


async def test_background_writes_and_purges_have_a_low_priority(emulator, priorities):
    async with CosmosSessionService.embedded(emulator) as service:
        session = await service.create_session(**WHO)
        await service.append_event(session, event("hello", delta={"k": 1}))
        await service.flush()
        await service.get_session(**WHO)
        await service.delete_session(**WHO)
        await service.purge_session(**WHO)
    for operation in ("create_session", "append_event", "get_session", "delete_session"):
        assert priorities[operation] == {None}
    assert priorities["project_session"] == {"Low"}
    assert priorities["purge_session"] == {"Low"}


def test_an_export_has_a_low_priority(priorities, tmp_path):
    uri = ("--uri", f"cosmosdb://embedded/{tmp_path}/store.db")
    assert CliRunner().invoke(cli, ["init", *uri]).exit_code == 0
    priorities.clear()
    assert CliRunner().invoke(cli, ["sessions", "export", *uri]).exit_code == 0
    assert set().union(*priorities.values()) == {"Low"}


async def test_a_throughput_bucket_is_named_in_every_request(emulator, monkeypatch):
    buckets = set()

    def note_sent(request):
        buckets.add(request.http_request.headers.get("x-ms-cosmos-throughput-bucket"))

    monkeypatch.setattr(connection, "note_sent", note_sent)
    options = {"throughput_bucket": 2}
    async with CosmosSessionService.embedded(emulator, client_options=options) as service:
        session = await service.create_session(**WHO)
        await service.append_event(session, event("hello"))
        await service.get_session(**WHO)
    assert buckets == {"2"}
