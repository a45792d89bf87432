"""Invalid files lead to an error message, and the output is harmless."""

from __future__ import annotations

import json

import pytest

HEAD = '{"format":"cosmosservice-sessions","version":1}\n'
GOOD = {
    "app_name": "a",
    "user_id": "u",
    "id": "s",
    "state": {},
    "last_update_time": 1.0,
    "events": 0,
}


def line(**changes):
    return HEAD + json.dumps({"session": GOOD | changes}) + "\n"


BAD = {
    "empty": "",
    "no head": json.dumps({"session": GOOD}),
    "no JSON": HEAD + "{",
    "a list": HEAD + "[]\n",
    "no session": HEAD + '{"event": {}}\n',
    "a session that is a list": HEAD + '{"session": []}\n',
    "no fields": HEAD + '{"session": {}}\n',
    "a number as id": line(id=5),
    "no count": line(events=None),
    "a negative count": line(events=-1),
    "a count of a different kind": line(events="3"),
    "more events than there are": line(events=10**15),
    "a state that is a list": line(state=[1]),
    "a time that is text": line(last_update_time="now"),
    "an event that is text": line(events=1) + '{"event": "x"}\n',
    "very deep": HEAD + '{"session": ' + "[" * 100_000 + "\n",
    "binary": "\x00\x01\x02",
}


@pytest.mark.parametrize("name", BAD)
def test_a_malformed_import_file_gives_a_message(command, tmp_path, name):
    (tmp_path / "file").write_text(BAD[name])
    shown = command("sessions", "import", "file")
    assert shown.code == 1
    assert "Traceback" not in shown.err
    assert shown.err.strip()


HOSTILE = "\x1b[31mred\x07\x9b2J\u202eevil\u2066\u200b\ufeff\U000e0041"


@pytest.mark.parametrize("options", [(), ("--json",)], ids=["for people", "json"])
def test_no_control_sequence_reaches_the_terminal(command, tmp_path, options):
    event = {
        "event_id": "e",
        "author": HOSTILE,
        "timestamp": 1.0,
        "invocation_id": "",
        "content": {"parts": [{"text": HOSTILE}], "role": "user"},
        "actions": {"state_delta": {HOSTILE: HOSTILE}},
    }
    (tmp_path / "file").write_text(
        line(id=HOSTILE, user_id="u" + HOSTILE, state={HOSTILE: HOSTILE}, events=1)
        + json.dumps({"event": event})
    )
    assert command("sessions", "import", "file").code == 0
    name = ("--app", "a", "--user", "u" + HOSTILE)
    for shown in (
        command("sessions", "list", *options),
        command("sessions", "show", *name, HOSTILE, *options),
        command("sessions", "diff", *name, HOSTILE, "0", "1", *options),
        command("sessions", "export"),
    ):
        assert shown.code == 0
        assert not set(shown.out) & set(HOSTILE) - set("[31mred2Jevil")
        for text in shown.out.splitlines() if options else ():
            json.loads(text)
