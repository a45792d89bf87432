"""`cosmosservice artifacts …`, as a user would type it."""

from __future__ import annotations

import json

import pytest

from cosmos_emulator import Emulator
from tests.support.raw import RawContainer, raw_client

WHERE = ("--app", "shop", "--user", "ada", "--session", "first")


@pytest.fixture
def saved(command, folder):
    """Two versions of a picture, and a note of the user."""
    folder.joinpath("tea.png").write_bytes(b"\x89PNG" * 100_000)
    folder.joinpath("note.txt").write_text("no milk")
    for _ in range(2):
        assert command("artifacts", "put", *WHERE, "tea.png").code == 0
    assert command("artifacts", "put", *WHERE, "note.txt", "--name", "user:note").code == 0


def test_put_says_the_version(command, saved):
    result = command("artifacts", "put", *WHERE, "tea.png", "--json")
    assert json.loads(result.out) == {"filename": "tea.png", "version": 2, "bytes": 400_000}
    assert "Saved as version 3." in command("artifacts", "put", *WHERE, "tea.png").err


def test_the_id_of_a_session_is_enough(command, saved, conversation):
    alone = command("artifacts", "list", "--session", "first")
    assert alone.out == command("artifacts", "list", *WHERE).out != ""
    assert "Name a --session" in command("artifacts", "list").err
    assert "no session 'other'" in command("artifacts", "list", "--session", "other").err


def test_list_shows_names_versions_and_types(command, saved):
    shown = command("artifacts", "list", *WHERE).out
    assert [line.split()[:3] for line in shown.splitlines()[1:]] == [
        ["tea.png", "2", "image/png"],
        ["user:note", "1", "text/plain"],
    ]
    rows = [
        json.loads(line) for line in command("artifacts", "list", *WHERE, "--json").out.splitlines()
    ]
    assert [(row["filename"], row["version"]) for row in rows] == [("tea.png", 1), ("user:note", 0)]


def test_versions_are_listed(command, saved):
    shown = command("artifacts", "versions", *WHERE, "tea.png")
    assert [line.split()[0] for line in shown.out.splitlines()] == ["version", "0", "1"]
    lines = command("artifacts", "versions", *WHERE, "tea.png", "--json").out.splitlines()
    assert [json.loads(line)["mime_type"] for line in lines] == ["image/png"] * 2


def test_get_writes_the_bytes(command, saved, folder):
    result = command("artifacts", "get", *WHERE, "tea.png", "-o", "copy.png")
    assert "Version 1, 400,000 bytes." in result.err
    assert folder.joinpath("copy.png").read_bytes() == b"\x89PNG" * 100_000
    shown = command("artifacts", "get", "--app", "shop", "--user", "ada", "user:note")
    assert shown.out == "no milk"


def test_delete_asks_and_deletes_all_versions(command, saved):
    assert command("artifacts", "delete", *WHERE, "tea.png", input="n\n").code == 1
    assert "Deleted." in command("artifacts", "delete", *WHERE, "tea.png", input="y\n").err
    result = command("artifacts", "versions", *WHERE, "tea.png")
    assert result.code == 1
    assert "There is no artifact 'tea.png'" in result.err
    assert command("artifacts", "get", *WHERE, "tea.png").code == 1
    assert command("artifacts", "delete", *WHERE, "tea.png", "--yes").code == 1


def test_sweep_says_what_it_removed(command, saved):
    assert "0 unused payloads" in command("artifacts", "sweep").err
    report = json.loads(command("artifacts", "sweep", "--json").out)
    assert report["payloads"] == 0
    assert report["scopes"] == 1


def test_a_name_without_a_session_is_wrong_usage(command, saved):
    result = command("artifacts", "get", "--app", "shop", "--user", "ada", "tea.png")
    assert result.code == 2
    assert "Session ID must be provided" in result.err


def test_nothing_is_said_and_nothing_is_made_where_no_store_is(command, folder):
    result = command("artifacts", "list", *WHERE)
    assert result.code == 2
    assert not folder.joinpath("store.db").exists()


def test_a_session_without_artifacts_says_so(command, saved):
    elsewhere = ("--app", "other", "--user", "ada", "--session", "first")
    assert command("artifacts", "list", *elsewhere).err.strip() == "No artifacts."


def test_get_of_a_damaged_artifact_says_so_and_leaves_no_file(command, saved, folder):
    with Emulator("store.db") as emulator:
        client = raw_client(emulator)
        pieces = RawContainer(
            client.get_database_client("adk").get_container_client("artifacts"), "scope"
        )
        for piece in pieces.all(document_type="piece"):
            pieces.remove(piece)
        client.close()
    result = command("artifacts", "get", *WHERE, "tea.png", "-o", "copy.png")
    assert result.code == 1
    assert "damaged: piece 0 is missing" in result.err
    assert not folder.joinpath("copy.png").exists()
