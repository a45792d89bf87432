"""`sessions show --at`, `sessions diff` and `sessions fork`."""

from __future__ import annotations

import json

NAME = ("--app", "shop", "--user", "ada", "first")


def test_show_at_a_point_shows_the_session_as_it_was(command, conversation):
    shown = command("sessions", "show", *NAME, "--at", "1")
    assert shown.code == 0
    assert "Tea, please" in shown.out
    assert "Here you are" not in shown.out
    lines = [
        json.loads(each)
        for each in command("sessions", "show", *NAME, "--at", "0", "--json").out.splitlines()
    ]
    assert lines[0]["session"]["state"] == {"cart": []}
    assert len(lines) == 1


def test_a_time_and_an_event_are_points_too(command, conversation):
    early = command("sessions", "show", *NAME, "--at", "1970-01-01T00:01:41+00:00")
    assert "Tea, please" in early.out
    assert command("sessions", "show", *NAME, "--at", "nothing").code == 1


def test_diff_shows_what_changed_in_state(command, conversation):
    shown = command("sessions", "diff", *NAME, "0", "2")
    assert shown.code == 0
    assert "- cart = []" in shown.out
    assert "+ cart = " in shown.out
    (line,) = [
        json.loads(each)
        for each in command("sessions", "diff", *NAME, "0", "2", "--json").out.splitlines()
    ]
    assert (line["key"], line["before"]) == ("cart", [])
    assert "same" in command("sessions", "diff", *NAME, "1", "1").err


def test_an_unknown_point_is_reported_in_one_line(command, conversation):
    shown = command("sessions", "diff", *NAME, "0", "99")
    assert shown.code == 1
    assert "there is no such point" in shown.err
    assert "Traceback" not in shown.err


def test_fork_prints_the_id_of_the_new_session(command, conversation):
    made = command("sessions", "fork", *NAME, "--at", "1")
    assert made.code == 0
    new = made.out.strip()
    shown = command("sessions", "show", "--app", "shop", "--user", "ada", new)
    assert "Tea, please" in shown.out
    assert "Here you are" not in shown.out
    again = command("sessions", "fork", *NAME, "--new-session", new)
    assert again.code == 1
    assert "already exists" in again.err
    shown = json.loads(command("sessions", "fork", *NAME, "--new-user", "bob", "--json").out)
    assert shown["user_id"] == "bob"
