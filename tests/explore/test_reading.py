"""A conversation is easy to read: Markdown, folded outputs, search and filters, timing."""

from __future__ import annotations

import re

import pytest
from google.adk.events import Event, EventActions
from google.genai import types

from cosmosservice.explore.markdown import markdown, marked
from tests.explore.support import names, read


def said(author, *parts, at, **fields):
    content = types.Content(role="model", parts=list(parts))
    return Event(author=author, invocation_id="turn", content=content, timestamp=at, **fields)


def text(value):
    return types.Part(text=value)


async def conversation(service):
    session = await service.create_session(app_name="shop", user_id="ada", session_id="first")
    call = types.Part(function_call=types.FunctionCall(name="fetch", args={"what": "tea"}))
    failed = types.FunctionResponse(name="fetch", response={"error": "no stock"})
    used = types.GenerateContentResponseUsageMetadata(
        prompt_token_count=1200, candidates_token_count=34
    )
    start = 1_700_000_000.0
    for event in (
        said("user", text("Tea, **please**"), at=start),
        said("waiter", call, at=start + 1, usage_metadata=used),
        said("waiter", types.Part(function_response=failed), at=start + 6),
        said("waiter", text("We have **no** tea.\n\n|a|b|\n|---|---|\n|1|2|"), at=start + 8),
        said("cook", text("```python\nprint('<tea>')\n```"), at=start + 9),
    ):
        await service.append_event(session, event)
    return session


async def test_an_answer_is_shown_as_markdown_and_a_question_as_it_was_typed(visit):
    visitor = await visit()
    page = await visitor.get("/session", **names(await conversation(visitor.service)))
    assert "We have <strong>no</strong> tea." in page
    assert "<table" in page
    assert "print(&#39;&lt;tea&gt;&#39;)" in page
    assert "Tea, **please**" in read(page)


async def test_a_long_answer_is_folded(visit):
    visitor = await visit()
    session = await visitor.service.create_session(app_name="shop", user_id="ada")
    for number, lines in enumerate((3, 100)):
        long = "\n".join(f"* line {n}" for n in range(lines))
        await visitor.service.append_event(session, said("waiter", text(long), at=float(number)))
    page = await visitor.get("/session", **names(session))
    assert re.findall(r'id="(e\d-\d)" class="text long"', page) == ["e2-1"]
    assert "line 99" in page


@pytest.mark.parametrize(
    ("wanted", "found"),
    [
        ({"q": "TEA"}, [1, 2, 4, 5]),
        ({"q": "no stock"}, [3]),
        ({"author": "cook"}, [5]),
        ({"tool": "fetch"}, [2, 3]),
        ({"errors": "yes"}, [3]),
        ({"errors": "yes", "author": "cook"}, []),
        ({"q": "tea", "author": "waiter"}, [2, 4]),
    ],
)
async def test_events_are_found_by_text_author_tool_and_error(visit, wanted, found):
    visitor = await visit()
    page = await visitor.get("/session", **names(await conversation(visitor.service)), **wanted)
    assert [int(each) for each in re.findall(r'<article id="e(\d+)"', page)] == found
    assert ("Nothing was found in 5 events." in read(page)) == (not found)
    assert ("<mark>" in page) == bool("q" in wanted and found)
    assert re.findall(r'<option value="([^"]+)"', page) == ["cook", "user", "waiter", "fetch"]


async def test_a_search_finds_what_is_cut_off_on_the_page(visit):
    visitor = await visit()
    session = await visitor.service.create_session(app_name="shop", user_id="ada")
    response = types.FunctionResponse(name="fetch", response={"rows": ["x" * 30_000, "oolong"]})
    for number, part in enumerate((types.Part(function_response=response), text("None.")), 1):
        await visitor.service.append_event(session, said("waiter", part, at=float(number)))
    page = await visitor.get("/session", **names(session), q="oolong")
    assert re.findall(r'<article id="e(\d+)"', page) == ["1"]


async def test_a_search_goes_further_back_on_demand(visit):
    visitor = await visit()
    session = await visitor.service.create_session(app_name="shop", user_id="ada")
    for number in range(1, 61):
        await visitor.service.append_event(
            session, said("waiter", text(f"tea {number}"), at=float(number))
        )
    page = await visitor.get("/session", **names(session), q="tea")
    assert "50 events found in 50 events, back to event 11." in read(page)
    page = await visitor.get("/session", **names(session), q="tea", before=11)
    assert "10 events found in 10 events." in read(page)


async def test_the_waterfall_says_where_the_time_of_a_turn_went(visit):
    visitor = await visit()
    page = read(await visitor.get("/session", **names(await conversation(visitor.service))))
    assert "Where the time went model 4.0 s, tools 5.0 s" in page
    assert "#3 tool fetch error 5.0 s" in page
    assert "#2 model waiter 1.0 s 1,200 34" in page
    assert "1 error" in page


async def test_an_artifact_of_a_later_event_is_not_shown_at_an_earlier_one(visit):
    visitor = await visit(dependants=True)
    session = await visitor.service.create_session(
        app_name="shop", user_id="ada", session_id="first"
    )
    where = {"app_name": "shop", "user_id": "ada", "session_id": "first"}
    for number, name in enumerate(("chart109.csv", "chart19.csv"), 1):
        part = types.Part(text="a,b")
        await visitor.dependants.artifacts.save_artifact(**where, filename=name, artifact=part)
        actions = EventActions(artifact_delta={name: 0})
        event = said("waiter", text("Done"), at=float(number), actions=actions)
        await visitor.service.append_event(session, event)
    listed = await visitor.get("/session", **names(session))
    assert re.findall(r'class="name" .*?<bdi>(.*?)</bdi>', listed) == [
        "chart19.csv",
        "chart109.csv",
    ]
    earlier = await visitor.get("/session", **names(session), at=1)
    assert re.findall(r'<li data-since="(\d)"( hidden)?>', earlier) == [("2", " hidden"), ("1", "")]


@pytest.mark.parametrize(
    "hostile",
    [
        "<script>alert(1)</script>",
        "[x](javascript:alert(1))",
        "[x](data:text/html,<script>alert(1)</script>)",
        "![x](javascript:alert(1))",
        '[x](https://a.example/"onmouseover="alert(1))',
        '```"><img src=x onerror=alert(1)>\n```',
        "<img src=x onerror=alert(1)>",
        "&#x202e;gnp.exe",
        "|<b>|\n|---|\n|<script>|",
    ],
)
def test_markdown_cannot_run_load_or_hide_anything(hostile):
    made = str(markdown(hostile))
    tags = re.findall(r"<(\w+)([^>]*)>", made)
    assert {tag for tag, _ in tags} <= {
        *("p", "a", "div", "span", "button", "pre", "table", "thead", "tbody", "tr", "th", "td"),
    }
    assert not [each for _, each in tags if re.search(r"\s(on\w+|src|style)=", each)]
    assert not re.search(r'href="(?!https?:|mailto:)', made)
    assert "\u202e" not in made


def test_an_image_of_a_model_is_a_link_and_loads_nothing():
    made = str(markdown("![a cat](https://example.org/cat.png)"))
    assert "<img" not in made
    assert 'href="https://example.org/cat.png"' in made


def test_what_was_searched_for_is_marked_and_escaped():
    assert str(marked("a <b> c", "<B>")) == "a <mark>&lt;b&gt;</mark> c"
    assert "<mark>tea</mark>" in str(markdown("green **tea**", "TEA"))
