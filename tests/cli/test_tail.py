"""`cosmosservice sessions tail`: output for people, and for programs."""

import asyncio
import json
import re

import pytest

from cosmosservice import CosmosSessionService
from cosmosservice.cli import tailing
from tests.cli.conftest import said

DEFAULTS = {"since": None, "last": 10, "interval": 0.01, "as_json": False}


class Tail:
    """A running `tail`, and what it has printed so far."""

    def __init__(self, capsys, *names, **options):
        self._capsys = capsys
        self._names = [*names, *[None] * (3 - len(names))]
        self._options = DEFAULTS | options
        self.out = self.err = ""

    async def __aenter__(self):
        self._task = asyncio.create_task(tailing.tail(None, *self._names, **self._options))
        return self

    async def __aexit__(self, *_):
        self._task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await self._task
        self._look()

    def _look(self):
        seen = self._capsys.readouterr()
        self.out += seen.out
        self.err += seen.err

    async def until(self, text):
        async with asyncio.timeout(20):
            while text not in self.out:
                assert not self._task.done(), self._task
                await asyncio.sleep(0.01)
                self._look()

    @property
    def lines(self):
        return [json.loads(line) for line in self.out.splitlines()]


async def append(text, session_id="first"):
    async with CosmosSessionService.embedded("store.db") as service:
        name = {"app_name": "shop", "user_id": "ada", "session_id": session_id}
        session = await service.get_session(**name) or await service.create_session(**name)
        await service.append_event(session, said(text))


def test_tail_shows_what_is_appended_meanwhile(conversation, capsys):
    async def follow():
        async with Tail(capsys, "shop", "ada", "first", last=1) as tail:
            await tail.until("Here you are")
            await append("And milk")
            await tail.until("And milk")
        return tail

    tail = asyncio.run(follow())
    assert "Tea, please" not in tail.out
    assert tail.out.count("Here you are") == 1
    assert "#3" in tail.out


def test_tail_of_an_app_says_which_session_an_event_is_of(conversation, capsys):
    async def follow():
        async with Tail(capsys, "shop", since="beginning") as tail:
            await tail.until("Here you are")
            await append("In another one", "second")
            await tail.until("In another one")
            async with CosmosSessionService.embedded("store.db") as service:
                await service.delete_session(app_name="shop", user_id="ada", session_id="first")
            await tail.until("deleted")
        return tail

    words = asyncio.run(follow()).out.split()
    wanted = ["first", "ada", "Tea,", "Here", "second", "another", "first", "deleted"]
    assert [word for word in words if word in wanted and word != "ada"] == [
        word for word in wanted if word != "ada"
    ]


def test_tail_says_how_to_go_on_when_it_is_interrupted(conversation, capsys):
    async def follow(since):
        async with Tail(capsys, "shop", "ada", since=since) as tail:
            await tail.until("Here you are" if since == "beginning" else "And milk")
        return tail

    tail = asyncio.run(follow("beginning"))
    message = re.search(
        r"To continue: cosmosservice sessions tail --app shop --user ada --since (\S+)",
        tail.err,
    )
    asyncio.run(append("And milk"))
    following = asyncio.run(follow(message[1]))
    assert "Tea, please" not in following.out


def test_tail_as_json_gives_a_line_for_each_change_with_its_continuation(conversation, capsys):
    async def follow(since):
        async with Tail(capsys, "shop", since=since, as_json=True) as tail:
            await tail.until("Here you are")
        return tail.lines

    lines = asyncio.run(follow("beginning"))
    assert [(line["kind"], line["session_id"], line["revision"]) for line in lines] == [
        ("event", "first", 1),
        ("event", "first", 2),
    ]
    assert lines[0]["event"]["content"]["parts"][0]["text"] == "Tea, please"
    assert asyncio.run(follow(lines[0]["continuation"])) == lines[1:]


def test_tail_of_a_session_that_is_not_there_says_so(command, conversation):
    shown = command("sessions", "tail", "--app", "shop", "--user", "ada", "second")
    assert shown.code == 1
    assert "There is no session 'second' of user 'ada' in app 'shop'." in shown.err


def test_tail_needs_a_session_or_an_app(command, conversation):
    shown = command("sessions", "tail", "--user", "ada")
    assert shown.code == 2
    assert "Name one SESSION, or give --app." in shown.err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--since", "yesterday"], "--since takes now, beginning, or a continuation"),
        (["--interval", "0"], "0"),
    ],
)
def test_tail_refuses_what_makes_no_sense(command, conversation, arguments, message):
    shown = command("sessions", "tail", "--app", "shop", *arguments)
    assert shown.code == 2
    assert message in shown.err
