"""Content of users and models is shown as text, wherever it appears."""

from __future__ import annotations

import html
import re
from html.parser import HTMLParser

from google.adk.events import Event, EventActions
from google.genai import types

from tests.explore.support import names

SCRIPT = "<script>alert(1)</script>"
HOSTILE = f"""{SCRIPT}"><img src=x onerror=alert(1)>' {{{{7*7}}}} \x1b[2J\u202egnp.exe\u2066"""
SCRIPTS = [{"src": "/static/theme.js"}, {"src": "/static/explore.js", "defer": None}]
SEEN = "\\x1b[2J\\u202egnp.exe\\u2066"


class Tags(HTMLParser):
    def __init__(self, page):
        super().__init__()
        self.found = []
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        self.found.append((tag, dict(attrs)))


def is_harmless(page):
    for tag, attributes in Tags(page).found:
        if tag == "script":
            assert attributes in SCRIPTS
        assert not [name for name in attributes if name.startswith("on") or name == "style"]
        for name in ("href", "src", "action"):
            assert re.match(r"/|#|data:", attributes.get(name) or "/")
    assert "<img src=x" not in page
    shown = re.sub(r'value="[^"]*"', "", page)  # input fields send back what they contain
    for hidden in "\x1b\u202e\u2066":
        assert hidden not in shown
    return True


async def hostile_session(service):
    session = await service.create_session(
        app_name=HOSTILE,
        user_id=HOSTILE,
        session_id=HOSTILE,
        state={HOSTILE: HOSTILE, "__session_metadata__": {"displayName": HOSTILE}},
    )
    parts = [
        types.Part(text=HOSTILE),
        types.Part(text=HOSTILE, thought=True),
        types.Part(function_call=types.FunctionCall(name=HOSTILE, args={HOSTILE: HOSTILE})),
        types.Part(
            function_response=types.FunctionResponse(name=HOSTILE, response={HOSTILE: HOSTILE})
        ),
        types.Part(inline_data=types.Blob(mime_type=f'image/png"{SCRIPT}', data=b"x")),
        types.Part(file_data=types.FileData(file_uri="javascript:alert(1)")),
    ]
    await service.append_event(
        session,
        Event(
            author=HOSTILE,
            invocation_id=HOSTILE,
            content=types.Content(role="model", parts=parts),
            actions=EventActions(
                state_delta={HOSTILE: [HOSTILE], f"user:{HOSTILE}": HOSTILE},
                artifact_delta={HOSTILE: 1},
            ),
            error_code=HOSTILE,
            error_message=HOSTILE,
        ),
    )
    await service.flush()
    return session


async def test_nothing_that_is_stored_becomes_markup(visit):
    visitor = await visit(dependants=True, write=True)
    memory, artifacts = visitor.dependants.memory, visitor.dependants.artifacts
    session = await hostile_session(visitor.service)
    await memory.add_session_to_memory(session)
    where = {"app_name": HOSTILE, "user_id": HOSTILE, "session_id": session.id}
    await artifacts.save_artifact(**where, filename=HOSTILE, artifact=types.Part(text=HOSTILE))
    named = names(session)
    user = {"app": HOSTILE, "user": HOSTILE}
    for path, parameters in (
        ("/", {}),
        ("/", {"q": HOSTILE}),
        ("/session", named),
        ("/session", {**named, "at": 1}),
        ("/state", {**named, "at": 1}),
        ("/raw", named),
        ("/raw", {**named, "revision": 1}),
        ("/user", user),
        ("/user", {**user, "memory": "alert"}),
        ("/artifact", {**named, "name": HOSTILE}),
        ("/artifact", {**named, "name": HOSTILE, "version": 0}),
        ("/activity", {"app": HOSTILE}),
    ):
        page = await visitor.get(path, **parameters)
        assert is_harmless(page), path
        raw_json = path == "/raw"
        assert raw_json or SEEN in html.unescape(page), path
        assert SCRIPT in html.unescape(page), path
        assert "{{7*7}}" in html.unescape(page), path


async def test_messages_of_errors_are_text_too(visit):
    visitor = await visit()
    status, page = await visitor.answer(
        "/session", params={"app": HOSTILE, "user": HOSTILE, "session": HOSTILE}
    )
    assert status == 404
    assert is_harmless(page)
    assert SEEN in html.unescape(page)


async def test_a_session_with_such_ids_is_reached_by_its_links(visit):
    visitor = await visit()
    await hostile_session(visitor.service)
    page = await visitor.get("/")
    link = html.unescape(re.search(r'class="title" href="([^"]*)"', page)[1])
    status, shown = await visitor.answer(link)
    assert status == 200
    assert is_harmless(shown)


async def test_joined_emoji_and_other_scripts_are_left_alone(visit):
    visitor = await visit()
    session = await visitor.service.create_session(app_name="a", user_id="u")
    text = "👩‍👩‍👧 שלום می‌خواهم\nnext line"
    content = types.Content(role="user", parts=[types.Part(text=text)])
    await visitor.service.append_event(session, Event(author="user", content=content))
    assert text in await visitor.get("/session", **names(session))
