"""What the demo shows, one act after the other."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Final

from google.adk.events import Event
from rich.console import Console
from rich.text import Text

from cosmosservice.cli.console import counted
from cosmosservice.cli.demo.script import APP, USER
from cosmosservice.cli.demo.stage import Stage
from cosmosservice.cli.demo.writers import Refused
from cosmosservice.cli.layout import Folded
from cosmosservice.cli.timeline import lines_of, session_view, value_text

SESSION: Final = "order-7"
FORK: Final = "what-if"
COLLEAGUE: Final = "bob"
_NUMBER: Final = 6  # cells, as those below
_AUTHOR: Final = 7

Pause = Callable[[], Awaitable[None]]


class Acts:
    """Each is a method without arguments."""

    def __init__(self, stage: Stage, console: Console, pause: Pause) -> None:
        self._stage = stage
        self._console = console
        self._pause = pause
        self._acknowledged: list[Event] = []
        self._names: dict[str, Any] = {"app_name": APP, "user_id": USER, "session_id": SESSION}

    def __len__(self) -> int:
        """How many events there are."""
        return len(self._acknowledged)

    async def begin(self) -> None:
        await self._stage.begin(SESSION)
        self._say(f"{self._stage.writer.name} begins session {SESSION} of user {USER}.")

    async def grow(self) -> None:
        """One more event."""
        self._show(await self._stage.writer.step())
        await self._pause()

    async def kill(self) -> None:
        """Kills the writer in the middle of a turn. Another one goes on."""
        self._title("A writer is killed in the middle of a turn")
        while not (self._acknowledged and self._acknowledged[-1].get_function_calls()):
            await self.grow()
        killed = self._stage.writer
        await killed.send({"step": True})
        await killed.kill()
        self._say(f"✗ {killed.name} was killed while its tool ran (SIGKILL).", "bold red")
        self._stage.writer = await self._stage.other()
        there = await self._stage.writer.open(SESSION)
        self._say(f"{self._stage.writer.name} reads the session: {counted(there, 'event')}.")
        if there > len(self._acknowledged):
            self._say("The last write had arrived, though its writer never knew.", "dim")
            self._show((await self._events())[-1])
        await self._pause()
        while not self._answered():
            await self.grow()
        await self._prove()

    async def collide(self) -> None:
        """Two writers append to the same session at the same time."""
        self._title("Two writers append at the same time")
        one, other = self._stage.writer, await self._stage.other()
        seen = await other.open(SESSION)
        self._say(f"{one.name} and {other.name} have read {counted(seen, 'event')}.")
        await one.send({"step": True})
        await other.send({"step": True})
        refused = None
        for each in (one, other):
            try:
                event = await each.appended()
            except Refused:
                refused = each
            else:
                self._stage.writer = each
                self._show(event)
        assert refused is not None
        self._say(f"✗ {refused.name} is refused: it had not seen this event.", "bold red")
        await refused.kill()
        await self._pause()
        while not self._answered():
            await self.grow()
        await self._prove()

    async def past(self) -> None:
        """The session as it was."""
        self._title("The past")
        before = await self._stage.sessions.get_session_at(**self._names, at=min(4, len(self)))
        now = await self._stage.sessions.get_session_at(**self._names, at=len(self))
        for name, session in (("after event 4", before), ("now", now)):
            state = ", ".join(f"{k} = {value_text(v)}" for k, v in sorted(session.state.items()))
            self._labelled(f"{name}: ", state or "no state", "magenta")

    async def fork(self) -> None:
        """The same history, continued elsewhere."""
        self._title("A fork")
        made = await self._forked()
        self._say(
            f"Session {made.id} of user {made.user_id} has the first"
            f" {counted(len(made.events), 'event')} of {SESSION}, and its state at that moment."
        )

    async def memory(self) -> None:
        """What was said is found."""
        self._title("Memory")
        session = await self._stage.sessions.get_session(**self._names)
        assert session is not None
        await self._stage.memory.add_session_to_memory(session)
        query = "How often should the driver ring?"
        self._labelled("? ", query, "bold")
        found = await self._stage.memory.search_memory(app_name=APP, user_id=USER, query=query)
        for each in found.memories[:2]:
            text = " ".join(part.text or "" for part in each.content.parts or [])
            self._labelled("→ ", f"{each.author}: {text}", "green")
        await self._pause()
        await self.tools()

    async def tools(self) -> None:
        """An agent with memory tools, in one session and in the next."""
        from cosmosservice.cli.demo.remembering import talks

        async for session_id, events in talks(self._stage):
            self._say(f"Session {session_id}, an agent with memory tools:")
            for event in events:
                self._print(event, " " * _NUMBER)
            await self._pause()

    async def erase(self) -> None:
        """Everything of a user."""
        self._title("Erasure")
        names: dict[str, Any] = {"app_name": APP, "user_id": COLLEAGUE}
        if not await self._stage.sessions.count_sessions(**names):
            await self._forked()
        report = await self._stage.sessions.purge_user(**names, include_state=True)
        left = await self._stage.sessions.count_sessions(**names)
        documents = counted(report.documents + report.dependants, "document")
        self._say(
            f"All of user {COLLEAGUE}: {counted(report.sessions, 'session')}, {documents} erased"
            f" for good. {counted(left, 'session')} left. Those of {USER} are untouched."
        )

    async def timeline(self) -> None:
        """The whole session, as `cosmosservice sessions show` prints it."""
        self._title("The session as a timeline")
        session = await self._stage.sessions.get_session(**self._names)
        assert session is not None
        self._console.print(session_view(session), soft_wrap=True)

    async def _forked(self) -> Any:
        return await self._stage.sessions.fork_session(
            **self._names,
            at=min(4, len(await self._events())),
            new_user_id=COLLEAGUE,
            new_session_id=None
            if await self._stage.sessions.get_session(
                app_name=APP, user_id=COLLEAGUE, session_id=FORK
            )
            else FORK,
        )

    async def _events(self) -> Sequence[Event]:
        session = await self._stage.sessions.get_session(**self._names)
        assert session is not None
        return session.events

    def _answered(self) -> bool:
        last = self._acknowledged[-1]
        return last.author != "user" and bool(last.content and last.content.parts[0].text)  # type: ignore[index]

    async def _prove(self) -> None:
        """Compares what was acknowledged with what is stored."""
        stored = [event.id for event in await self._events()]
        said = [event.id for event in self._acknowledged]
        if stored == said:
            text = f"✓ {counted(len(said), 'event')} acknowledged, {len(stored):,} stored:"
            self._say(f"{text} the same ones, in the same order.", "bold green")
        else:
            self._say("✗ What is stored differs from what was acknowledged.", "bold red")

    def _show(self, event: Event) -> None:
        self._acknowledged.append(event)
        self._print(event, f"#{len(self._acknowledged)}".ljust(_NUMBER))

    def _print(self, event: Event, number: str) -> None:
        label = Text.assemble(
            (number, "dim"), (event.author.ljust(_AUTHOR), _STYLE.get(event.author, "bold"))
        )
        for line in lines_of(event):
            text = Text(line.text, "magenta" if line.kind == "state" else "")
            self._console.print(Folded(text, _NUMBER + _AUTHOR, label), soft_wrap=True)
            label = Text()

    def _title(self, text: str) -> None:
        self._console.print()
        self._console.print(Text(text, "bold underline"))

    def _say(self, text: str, style: str = "") -> None:
        self._console.print(Folded(Text(text, style), 2, Text("  ")), soft_wrap=True)

    def _labelled(self, label: str, text: str, style: str) -> None:
        indent = len(label) + 2
        self._console.print(
            Folded(Text(text, style), indent, Text(f"  {label}", "dim")), soft_wrap=True
        )


_STYLE: Final = {"user": "bold cyan", "clerk": "bold green"}
