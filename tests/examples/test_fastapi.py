"""The FastAPI example: one conversation, one worker after the other."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.fixture
def app(tmp_path, monkeypatch):
    monkeypatch.setenv("COSMOSDB_ENDPOINT", f"embedded:{tmp_path / 'chat.db'}")
    monkeypatch.delenv("GOOGLE_API_KEY", raising=False)
    monkeypatch.syspath_prepend(EXAMPLES)
    yield __import__("fastapi_app").app
    for name in ("fastapi_app", "post_agent", "local_model"):
        sys.modules.pop(name, None)


def test_a_new_worker_goes_on_with_the_conversation(app):
    from fastapi.testclient import TestClient

    with TestClient(app) as worker:
        session = worker.post("/users/ada/sessions").json()["session"]
        turns = f"/users/ada/sessions/{session}/turns"
        assert "146 reasons" in worker.post(turns, json={"text": "Take 146."}).json()["said"][-1]

    with TestClient(app) as worker:
        answer = worker.post(turns, json={"text": "Do you know my number?"}).json()
        assert answer["said"] == ["Of course. You picked 146."]
        listed = worker.get("/users/ada/sessions").json()
        assert listed == {"sessions": [{"session": session, "title": "Take 146."}], "next": None}
