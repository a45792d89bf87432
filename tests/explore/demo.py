"""Conversations for the page: several apps, tools, thoughts, errors, images, artifacts, memories
and languages. `python -m tests.explore.demo` serves them, and keeps appending."""

from __future__ import annotations

import asyncio
import itertools
import math
import struct
import sys
import time
import zlib

from google.adk.events import Event, EventActions
from google.genai import types

from cosmosservice import CosmosAccount, CosmosSessionService
from cosmosservice.explore.dependants import Dependants
from cosmosservice.explore.meter import Meter
from cosmosservice.explore.server import Explorer

HOUR = 3600.0
DAY = 24 * HOUR


def png(width=300, height=170, seed=0):
    """A picture of hills in the evening."""

    def chunk(kind, data):
        return (
            struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
        )

    def pixel(x, y):
        for hill, colour in enumerate(((38, 70, 83), (42, 100, 96), (94, 140, 106))):
            top = height * (0.78 - hill * 0.13) + 14 * math.sin(x / (38 + 9 * hill) + seed + hill)
            if y > top:
                return bytes(colour)
        if (x - width * 0.7) ** 2 + (y - height * 0.28) ** 2 < (height * 0.11) ** 2:
            return b"\xff\xf3\xc4"
        part = int(8 * y / height)
        return bytes((244 - part * 3, 162 + part * 7, 97 + part * 9))

    rows = b"".join(b"\0" + b"".join(pixel(x, y) for x in range(width)) for y in range(height))
    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    packed = zlib.compress(rows, 9)
    parts = chunk(b"IHDR", head) + chunk(b"IDAT", packed) + chunk(b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + parts


class Talk:
    """Appends to a session, one event after the other."""

    _turns = itertools.count(1)

    def __init__(self, service, session, started):
        self._service, self._session = service, session
        self._now = started
        self._turn = ""

    async def user(self, text, *, after=20.0, **fields):
        self._turn = f"turn-{next(self._turns)}"
        self._now += after
        await self._append("user", [types.Part(text=text)], **fields)

    async def agent(self, name, *parts, after=1.3, tokens=None, delta=None, files=None, **fields):
        self._now += after
        made = [types.Part(text=each) if isinstance(each, str) else each for each in parts]
        if tokens:
            fields["usage_metadata"] = types.GenerateContentResponseUsageMetadata(
                prompt_token_count=tokens[0], candidates_token_count=tokens[1]
            )
        actions = EventActions(state_delta=delta or {}, artifact_delta=files or {})
        actions.transfer_to_agent = fields.pop("to", None)
        await self._append(name, made, actions=actions, **fields)

    async def _append(self, author, parts, **fields):
        role = "user" if author == "user" else "model"
        content = types.Content(role=role, parts=parts) if parts else None
        await self._service.append_event(
            self._session,
            Event(
                author=author,
                invocation_id=self._turn,
                timestamp=self._now,
                content=content,
                **fields,
            ),
        )


def thought(text):
    return types.Part(text=text, thought=True)


def call(name, **arguments):
    return types.Part(function_call=types.FunctionCall(name=name, args=arguments))


def result(name, **response):
    return types.Part(function_response=types.FunctionResponse(name=name, response=response))


def image(seed=0):
    return types.Part(inline_data=types.Blob(mime_type="image/png", data=png(seed=seed)))


async def begin(service, app, user, session_id, started, state=None):
    session = await service.create_session(
        app_name=app, user_id=user, session_id=session_id, state=state
    )
    return session, Talk(service, session, started)


async def trip(service, dependants, now):
    session, talk = await begin(
        service,
        "travel",
        "ada.lovelace",
        "lisbon-in-may",
        now - 0.4 * HOUR,
        {"travellers": 1, "user:home": "London"},
    )
    where = {"app_name": "travel", "user_id": "ada.lovelace", "session_id": session.id}
    if dependants.artifacts is not None:
        save = dependants.artifacts.save_artifact
        plan = "# Lisbon\n\n* 14 May: BA 502, 10:35\n* 15 May: Sintra\n* 18 May: home\n"
        await save(**where, filename="itinerary.md", artifact=types.Part(text=plan))
        await save(**where, filename="itinerary.md", artifact=types.Part(text=plan + "* a cake\n"))
        await save(**where, filename="sintra.png", artifact=image(2))
        await save(
            **where, filename="user:passport.txt", artifact=types.Part(text="valid until 2031")
        )
    await talk.user("I would like to spend four days in Lisbon in the middle of May.")
    await talk.agent(
        "planner",
        thought("Dates first. Mid May, four days: 14 to 18. Then flights from the user's home."),
        call("find_flights", origin="London", destination="Lisbon", day="2026-05-14"),
        tokens=(1_412, 96),
        delta={"days": ["2026-05-14", "2026-05-18"]},
    )
    await talk.agent(
        "planner",
        result(
            "find_flights",
            found=[
                {"flight": "BA 502", "departs": "10:35", "price": 118},
                {"flight": "TP 1351", "departs": "12:20", "price": 96},
            ],
        ),
        after=0.8,
    )
    await talk.agent(
        "planner",
        "There are two flights in the morning of the 14th. TP 1351 at 12:20 is cheaper (£96),"
        " BA 502 at 10:35 gives you the afternoon there (£118). Which one do you prefer?",
        tokens=(1_630, 58),
        delta={"offers": ["BA 502", "TP 1351"]},
    )
    await talk.user("The earlier one. Is there a hotel near the river with a view?")
    await talk.agent(
        "planner",
        call("book_flight", flight="BA 502", travellers=1),
        to="hotels",
        tokens=(1_702, 31),
        delta={"flight": "BA 502", "offers": None},
    )
    await talk.agent(
        "hotels", call("find_hotels", city="Lisbon", near="river"), tokens=(900, 24), after=2.1
    )
    await talk.agent(
        "hotels", result("find_hotels", error="The partner did not answer in time."), after=5.2
    )
    await talk.agent(
        "hotels",
        error_code="RESOURCE_EXHAUSTED",
        error_message="The model is overloaded. Please try again later.",
        after=0.6,
    )
    await talk.user("Are you still there?", after=31)
    await talk.agent(
        "hotels",
        "Sorry, the first search failed. This one looks over the river, and the view on the way"
        " to Sintra is worth a morning:",
        image(1),
        tokens=(1_105, 71),
        delta={"hotel": {"name": "Casa do Tejo", "nights": 4, "price": 412}},
    )
    await talk.agent(
        "planner",
        "I have put everything into an itinerary.",
        tokens=(1_980, 22),
        files={"itinerary.md": 1, "sintra.png": 0},
        delta={"itinerary": True, "user:likes": ["river views", "early flights"]},
    )
    if dependants.memory is not None:
        await dependants.memory.add_session_to_memory(await service.get_session(**where))
    return session


PLAN = """\
## Three ways to keep the orders

| way | writes/s | cost a month |
|:---|---:|---:|
| one table | 400 | $120 |
| a table per region | 1,900 | $310 |
| **events**, and a view | 6,000 | $290 |

I would take the **third**. In short:

1. every change is an *event*, which is never changed;
2. the view follows, usually in `40 ms`;
3. a wrong view is thrown away and made again.

```python
def apply(view: dict, event: Event) -> None:
    # The same events give the same view, in any process.
    match event.kind:
        case "placed":
            view[event.order] = {"lines": event.lines, "open": True}
        case "shipped" | "cancelled":
            view[event.order]["open"] = False
```

> The view is a cache. The events are the truth.

More: [the pattern](https://example.org/event-sourcing).
"""


async def engineering(service, dependants, now):
    """Long outputs, Markdown, many artifacts, a tool that is slow."""
    user = "8f14e45f-ceea-467f-a8f9-3f1f0b9c2d11@customers.example-company.com"
    session, talk = await begin(
        service, "support", user, "order-storage", now - 0.2 * HOUR, {"budget": 300}
    )
    where = {"app_name": "support", "user_id": user, "session_id": session.id}
    for number in (19, 109) if dependants.artifacts is not None else ():
        await dependants.artifacts.save_artifact(
            **where, filename=f"chart{number}.csv", artifact=types.Part(text="day,orders\n1,40\n")
        )
    await talk.user("How should we keep our orders? Some 5,000 writes a second, at most $300.")
    await talk.agent(
        "architect",
        thought("Measure first: how much do they write now?"),
        call("query_metrics", metric="orders.writes", days=30),
        call("list_tables", schema="orders"),
        tokens=(2_310, 64),
        after=2.4,
    )
    rows = [{"day": day, "writes": 3_800 + 37 * day % 900, "p99_ms": 31} for day in range(1, 31)]
    await talk.agent(
        "architect",
        result("query_metrics", rows=rows),
        result("list_tables", tables=["orders", "lines", "customers"]),
        after=6.8,
        delta={"peak": 4_690},
        files={"chart19.csv": 0},
    )
    await talk.agent("architect", PLAN, tokens=(4_020, 388), after=9.1, files={"chart109.csv": 0})
    await talk.user("Write the migration down, please.", after=90)
    steps = "\n".join(f"{n}. Copy region {n}, compare the sums, switch it." for n in range(1, 61))
    await talk.agent("architect", f"## Migration\n\n{steps}", tokens=(4_500, 910), after=14.0)
    return session


async def languages(service, now):
    session, talk = await begin(
        service, "bank", "مريم", "konto-2", now - 2.2 * HOUR, {"language": "ar"}
    )
    await talk.user("مرحبا، هل يمكنني فتح حساب ادخار؟")
    await talk.agent("teller", "بالتأكيد! ما المبلغ الذي تريدين إيداعه؟", tokens=(320, 20))
    await talk.user("Em português, por favor: quanto rende por ano?")
    await talk.agent(
        "teller",
        call("interest", product="savings"),
        tokens=(402, 12),
        delta={"language": "pt"},
    )
    await talk.agent("teller", result("interest", yearly="2,5 %"))
    await talk.agent("teller", "Neste momento, 2,5 % ao ano. Ευχαριστώ για την υπομονή σας!")
    return session


OPENINGS = (
    ("shop", "Which of your teas have no caffeine?"),
    ("support", "My parcel says delivered, but it is not here"),
    ("bank", "What did I spend on groceries in April?"),
    ("travel", "A weekend in the mountains with two children"),
    ("shop", "Change the address of my last order, please"),
    ("support", "The app signs me out every morning"),
    ("bank", "Block my card, I have lost my wallet"),
)
USERS = ("grace", "alan", "edsger", "barbara", "donald", "margaret", "linus", "radia")


async def others(service, now, count):
    for number in range(count):
        app, opening = OPENINGS[number % len(OPENINGS)]
        user = USERS[(number * 5) % len(USERS)]
        started = now - 1.1 * HOUR - number * (13 * DAY / count) - (number % 5) * 1700
        _, talk = await begin(service, app, user, f"{app}-{7_340 - number * 3}", started)
        for turn in range(1 + (number * 7) % 6):
            await talk.user(opening if turn == 0 else "And then?", after=40)
            used = (420 + 37 * (number % 9) + turn * 300, 25 + 9 * (number % 7))
            await talk.agent("assistant", "Let me see what I can do.", tokens=used)


async def fill(service, dependants, *, count=34):
    """Fills the store. Returns the session to begin with."""
    now = time.time()
    await others(service, now, count)
    gone, talk = await begin(service, "support", "radia", "by-mistake", now - 5 * HOUR)
    await talk.user("This was the wrong chat, sorry")
    await service.delete_session(app_name="support", user_id="radia", session_id=gone.id)
    await languages(service, now)
    await engineering(service, dependants, now)
    made = await trip(service, dependants, now)
    await service.fork_session(app_name="travel", user_id="ada.lovelace", session_id=made.id, at=4)
    await service.flush()
    return made


async def serve(port):
    meter = Meter()
    async with CosmosAccount.embedded(on_request_charge=meter.charged) as account:
        service, dependants = CosmosSessionService(account=account), await Dependants.on(account)
        session = await fill(service, dependants)
        async with Explorer(service, meter, dependants, write=True).served(port) as address:
            print(address, flush=True)
            for number in itertools.count(1):
                await asyncio.sleep(10)
                said = types.Content(
                    role="model", parts=[types.Part(text=f"Still here ({number}).")]
                )
                await service.append_event(session, Event(author="planner", content=said))


if __name__ == "__main__":
    asyncio.run(serve(int(sys.argv[1]) if len(sys.argv) > 1 else 0))
