"""`sessions show --at`, `sessions diff` and `sessions fork`."""

from __future__ import annotations

import json

import pytest

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
    lines = [
        json.loads(each)
        for each in command("sessions", "diff", *NAME, "0", "2", "--json").out.splitlines()
    ]
    assert {"key": "cart", "before": [], "after": ["tea"]} in lines
    assert "same" in command("sessions", "diff", *NAME, "1", "1").err


def test_diff_shows_the_user_and_app_values_that_the_session_set(command, conversation):
    shown = command("sessions", "diff", *NAME, "1", "2").out
    assert "+ user:name = " in shown
    assert "+ app:open = " in shown
    assert "- user:name = " in command("sessions", "diff", *NAME, "2", "1").out


@pytest.mark.parametrize(
    ("point", "reason"),
    [("99", "Revision 99 is not one of the session's: 0 to 2."), ("yesterday", "'yesterday'")],
)
def test_an_unknown_point_is_answered_with_what_a_point_is(command, conversation, point, reason):
    for words in (("diff", *NAME, "0", point), ("show", *NAME, "--at", point)):
        shown = command("sessions", *words)
        assert shown.code == 1
        assert reason in shown.err
        assert "A point is a revision" in shown.err
        assert "get_session_at" not in shown.err


def test_fork_prints_the_id_of_the_new_session(command, conversation):
    made = command("sessions", "fork", *NAME, "--at", "1")
    assert made.code == 0
    new = made.out.strip()
    shown = command("sessions", "show", "--app", "shop", "--user", "ada", new)
    assert "Tea, please" in shown.out
    assert "Here you are" not in shown.out
    again = command("sessions", "fork", *NAME, "--new-session", new)
    assert again.err.startswith("Error: Session ")  # no word of Python
    assert again.code == 1
    assert "already exists" in again.err
    shown = json.loads(command("sessions", "fork", *NAME, "--new-user", "bob", "--json").out)
    assert shown["user_id"] == "bob"
