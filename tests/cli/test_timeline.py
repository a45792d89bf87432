"""What `cosmosservice sessions show` prints."""

import pytest
from google.adk.events import Event, EventActions
from google.adk.memory.memory_entry import MemoryEntry
from google.adk.sessions import Session
from google.adk.tools.load_memory_tool import LoadMemoryResponse
from google.genai import types
from rich.console import Console

from cosmosservice.cli.timeline import clean, duration, lines_of, session_view, when


def event(*parts, author="model", timestamp=1_700_000_000.0, **fields):
    content = types.Content(role="model", parts=list(parts)) if parts else None
    return Event(author=author, content=content, timestamp=timestamp, **fields)


def printed(view, width=100, force_terminal=False):
    console = Console(width=width, color_system=None, force_terminal=force_terminal)
    with console.capture() as capture:
        console.print(view, soft_wrap=True)
    return capture.get()


def test_text_thoughts_calls_results_and_files_look_different():
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


def test_memories_that_a_tool_returned_are_shown_as_author_time_and_text():
    memory = MemoryEntry(
        author="ann",
        timestamp="2026-05-01T10:30:00+00:00",
        content=types.Content(parts=[types.Part(text="Yes,\nlast May!")]),
    )
    as_objects = {"result": LoadMemoryResponse(memories=[memory])}
    as_json = {"result": {"memories": [memory.model_dump(mode="json")]}}
    ours = {"memories": [{"author": "ann", "time": memory.timestamp, "text": "Yes,\nlast May!"}]}
    for name, response in (
        ("load_memory", as_objects),
        ("load_memory", as_json),
        ("search_memory", ours),
    ):
        part = types.Part.from_function_response(name=name, response=response)
        assert [text for _, text in lines_of(event(part))] == [
            f"← {name}: 1 memory",
            "2026-05-01 10:30  ann: Yes, last May!",
        ]
    other = types.Part.from_function_response(name="search_memory", response={"memories": 1})
    assert list(lines_of(event(other))) == [("result", '← search_memory: {"memories": 1}')]


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
    assert view.startswith("s-1\nshop / ada\n2 events, 1,207 tokens, last ")
    assert '  user:name = "Ada"\n' in view
    assert "\n#2   model  +1.5 s  1,200 tokens in, 7 out\n     Here you are\n" in view


def test_stored_text_cannot_command_the_terminal():
    shown = clean("\x1b]0;owned\x07\x9b2J\u202egnp.exe")
    assert shown == "\\x1b]0;owned\\x07\\x9b2J\\u202egnp.exe"
    assert "\x1b" not in printed(session_view(Session(app_name="a", user_id="\x1b[2J", id="i")))


def test_brackets_in_a_text_are_not_markup():
    said = event(types.Part(text="[red]x[/nonsense]"))
    shown = printed(session_view(Session(app_name="a", user_id="u", id="i", events=[said])))
    assert "[red]x[/nonsense]" in shown


def test_lone_surrogates_are_survived():
    assert clean("a\ud800b") == "a\\ud800b"


LONG = {
    "words": "word " * 2_000 + "end",
    "one word": "x" * 5_000 + "end",
    "wide characters": "漢字" * 2_000 + "end",
    "lines": "  indented\n\n\tand more\n" * 100 + "end",
}


@pytest.mark.parametrize("width", [40, 80])
@pytest.mark.parametrize("kind", LONG)
def test_nothing_is_cut_on_a_terminal_of_any_width(kind, width):
    said = event(types.Part(text=LONG[kind]), author="someone" * 20)
    call = event(types.Part.from_function_call(name="fetch", args={"url": LONG[kind]}))
    session = Session(
        app_name="a" * 90, user_id="u", id="i" * 150, events=[said, call], state={"k" * 99: "v"}
    )
    shown = printed(session_view(session), width=width, force_terminal=True)
    assert all(len(line) <= width for line in shown.splitlines() if line.startswith("     "))
    together = "".join(shown.split())
    for text in (LONG[kind], "i" * 150, "a" * 90, "k" * 99, "someone" * 20):
        assert "".join(text.split()) in together
    assert "…" not in shown


def test_nothing_is_folded_where_there_is_no_terminal():
    said = event(types.Part(text=LONG["words"]))
    shown = printed(session_view(Session(app_name="a", user_id="u", id="i", events=[said])))
    assert LONG["words"] in shown


def test_only_the_last_events_are_shown_with_their_numbers():
    events = [event(types.Part(text=f"say {n}"), timestamp=100.0 + n) for n in range(5)]
    session = Session(app_name="a", user_id="u", id="i", events=events)
    shown = printed(session_view(session, last=2))
    assert "5 events (the last 2 are shown)" in shown
    assert "say 2" not in shown
    assert "#4   model  +1.0 s" in shown
