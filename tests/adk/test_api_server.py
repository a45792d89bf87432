"""ADK's API server, built before any event loop runs, with our session service."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from google.adk.cli.fast_api import get_fast_api_app
from starlette.testclient import TestClient

import cosmosservice.adk  # noqa: F401
from cosmos_emulator import Emulator
from tests.support.adk import ADK
from tests.support.raw import raw_client

AGENTS = Path(__file__).parents[2] / "examples" / "agents"
SESSIONS = "/apps/greeter/users/ann/sessions"


@pytest.fixture
def server(tmp_path: Path, monkeypatch) -> Iterator[TestClient]:
    # A process can set its tracer provider only once, and this server must not do it.
    monkeypatch.setattr("opentelemetry.trace.set_tracer_provider", lambda **_: None)
    app = get_fast_api_app(
        agents_dir=str(AGENTS),
        session_service_uri=f"cosmosdb://embedded/{tmp_path / 'sessions.db'}",
        artifact_service_uri="memory://",
        web=False,
    )
    with TestClient(app) as client:
        yield client


def stored_sessions(path: Path) -> dict[str, dict]:
    """The session documents as stored in the file."""

    with Emulator(path) as emulator:
        client = raw_client(emulator)
        container = client.get_database_client("adk").get_container_client("sessions")
        return {
            document["session_id"]: document
            for document in container.read_all_items()
            if document["document_type"] == "session"
        }


def test_a_streamed_turn_is_kept(server):
    assert server.post(f"{SESSIONS}/s", json={"mood": "curious"}).status_code == 200
    turn = {
        "app_name": "greeter",
        "user_id": "ann",
        "session_id": "s",
        "new_message": {"role": "user", "parts": [{"text": "My name is Ada."}]},
        "streaming": True,
    }
    answer = server.post("/run_sse", json=turn)
    assert "Nice to meet you, Ada." in answer.text
    assert "error" not in answer.text.lower()
    kept = server.get(f"{SESSIONS}/s").json()
    assert kept["state"] == {"mood": "curious", "user:name": "Ada", "introduced": True}
    assert len(kept["events"]) == 4
    assert server.post(f"{SESSIONS}/s", json={}).status_code == 409
    assert server.delete(f"{SESSIONS}/s").status_code == 200
    assert server.get(f"{SESSIONS}/s").status_code == 404


if ADK >= (2, 13):

    def test_a_session_may_be_given_a_time_to_live(server, tmp_path):
        made = server.post(SESSIONS, json={"session_id": "short", "options": {"ttl": 3600}})
        assert made.status_code == 200
        assert server.post(SESSIONS, json={"session_id": "long"}).status_code == 200
        stored = stored_sessions(tmp_path / "sessions.db")
        assert stored["short"]["ttl"] > 0
        assert "ttl" not in stored["long"]
