"""Priority, throughput buckets and hedging, as they go out on the wire."""

import json
from collections import defaultdict

import pytest
from click.testing import CliRunner

from cosmos_emulator import gateway
from cosmos_emulator.serving import serving
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


async def test_a_slow_read_is_sent_to_the_next_region_too(emulator, monkeypatch):
    """With two addresses of one emulator as two regions; the first one never answers a read."""
    sent = []

    def note_sent(request):
        charges.note_sent(request)
        sent.append((request.http_request.method, request.http_request.url))

    monkeypatch.setattr(connection, "note_sent", note_sent)
    with serving(emulator) as east, serving(emulator) as west:
        regions = {"East": east, "West": west}
        described = gateway._account

        def account(endpoint, consistency):
            answer = described(endpoint, consistency)
            body = json.loads(answer.body)
            readable = [
                {"name": name, "databaseAccountEndpoint": url} for name, url in regions.items()
            ]
            body |= {"readableLocations": readable, "writableLocations": readable[:1]}
            answer.body = json.dumps(body).encode()
            return answer

        monkeypatch.setattr(gateway, "_account", account)
        service = CosmosSessionService(
            endpoint=east,
            credential=emulator.key,
            database="adk",
            preferred_regions=list(regions),
            client_options={
                "availability_strategy": {"threshold_ms": 100, "threshold_steps_ms": 50},
                "enable_endpoint_discovery": True,
            },
        )
        async with service:
            session = await service.create_session(**WHO)
            await service.append_event(session, event("hello"))
            sent.clear()
            rule = emulator.faults.silent(operation="read", resource="docs", when="before", times=1)
            found = await service.get_session(**WHO)
    assert rule.hits == 1
    assert len(found.events) == 1
    read = [url.partition("/docs/") for method, url in sent if method == "GET"]
    of_the_session = [url for url, _, document in read if document.startswith("session.")]
    assert [url.startswith(west) for url in of_the_session].count(True) == 1
