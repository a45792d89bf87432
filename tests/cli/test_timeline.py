"""What `cosmosservice sessions show` prints."""

from google.adk.events import Event, EventActions
from google.adk.sessions import Session
from google.genai import types
from rich.console import Console

from cosmosservice.cli.timeline import clean, duration, lines_of, session_view, when


def event(*parts, author="model", timestamp=1_700_000_000.0, **fields):
    content = types.Content(role="model", parts=list(parts)) if parts else None
    return Event(author=author, content=content, timestamp=timestamp, **fields)


def printed(view):
    console = Console(width=100, no_color=True, force_terminal=False)
    with console.capture() as capture:
        console.print(view)
    return capture.get()


def test_text_thoughts_calls_results_and_files_are_told_apart():
    said = list(
        lines_of(
            event(
                types.Part(text="hm", thought=True),
                types.Part(text="Hello"),
                types.Part.from_function_call(name="add", args={"a": 1, "b": "x"}),
                types.Part.from_function_response(name="add", response={"sum": [1, None]}),
                types.Part.from_bytes(data=b"12345", mime_type="image/png"),
                types.Part.from_uri(file_uri="gs://b/f", mime_type="image/png"),
            )
        )
    )
    assert said == [
        ("thought", "hm"),
        ("text", "Hello"),
        ("call", '→ add(a=1, b="x")'),
        ("result", '← add: {"sum": [1, null]}'),
        ("note", "image/png, 5 bytes"),
        ("note", "file gs://b/f"),
    ]


def test_state_changes_transfers_and_errors_are_shown():
    said = list(
        lines_of(
            event(
                actions=EventActions(
                    state_delta={"user:name": "Ada", "blob": b"\xff"},
                    transfer_to_agent="other",
                    artifact_delta={"a.txt": 2},
                    escalate=True,
                ),
                error_code="429",
                error_message="too many",
                interrupted=True,
            )
        )
    )
    assert said == [
        ("state", 'user:name = "Ada"'),
        ("state", "blob = b'\\xff'"),
        ("note", "transfers to other"),
        ("note", "escalates"),
        ("note", "artifact a.txt, version 2"),
        ("error", "429 too many"),
        ("note", "interrupted"),
    ]


def test_time_between_events_is_shown_also_when_clocks_run_backwards():
    first = event(timestamp=100.0)
    assert when(event(timestamp=100.25), first) == "+250 ms"
    assert when(event(timestamp=99.0), first) == "-1.0 s"
    assert duration(3_725) == "+1:02:05"


def test_whole_session_is_readable():
    tokens = types.GenerateContentResponseUsageMetadata(
        prompt_token_count=1200, candidates_token_count=7
    )
    view = printed(
        session_view(
            Session(
                app_name="shop",
                user_id="ada",
                id="s-1",
                state={"cart": ["tea"], "user:name": "Ada"},
                events=[
                    event(types.Part(text="Some tea, please"), author="user"),
                    event(
                        types.Part(text="Here you are"),
                        timestamp=1_700_000_001.5,
                        usage_metadata=tokens,
                    ),
                ],
                last_update_time=1_700_000_001.5,
            )
        )
    )
    assert "s-1  shop / ada  2 events, 1,207 tokens" in view
    assert 'user:name  "Ada"' in view
    rows = [line.split() for line in view.splitlines()]
    assert ["#2", "+1.5", "s", "model", "Here", "you", "are", "1,200", "in,", "7", "out"] in rows


def test_stored_text_cannot_command_the_terminal():
    shown = clean("\x1b]0;owned\x07\x9b2J\u202egnp.exe")
    assert shown == "\\x1b]0;owned\\x07\\x9b2J\\x202egnp.exe"
    assert "\x1b" not in printed(session_view(Session(app_name="a", user_id="\x1b[2J", id="i")))


def test_brackets_in_a_text_are_no_markup():
    said = event(types.Part(text="[red]x[/nonsense]"))
    shown = printed(session_view(Session(app_name="a", user_id="u", id="i", events=[said])))
    assert "[red]x[/nonsense]" in shown


def test_lone_surrogates_and_endless_texts_are_survived():
    assert clean("a\ud800b") == "a\\ud800b"
    assert clean("x" * 5_000).endswith("… (3,000 more characters)")
