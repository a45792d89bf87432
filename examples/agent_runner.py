"""A conversation that survives its process: an ADK Runner on the embedded Cosmos DB emulator.

    python examples/agent_runner.py --fresh     starts a conversation
    python examples/agent_runner.py             continues it, and shows what was stored

If GOOGLE_API_KEY is set, a real model answers, otherwise a scripted one.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import logging
import warnings
from collections import defaultdict
from pathlib import Path

# ADK announces its experimental features when it is imported.
warnings.filterwarnings("ignore")
logging.getLogger("google_adk").setLevel(logging.ERROR)

from azure.cosmos import CosmosClient  # noqa: E402
from google.adk.events import Event  # noqa: E402
from google.adk.runners import Runner  # noqa: E402
from google.adk.sessions import Session  # noqa: E402
from google.genai import types  # noqa: E402
from post_agent import make_post_agent  # noqa: E402
from rich.box import SIMPLE_HEAD  # noqa: E402
from rich.console import Console  # noqa: E402
from rich.table import Table  # noqa: E402
from rich.text import Text  # noqa: E402

from cosmos_emulator import Emulator  # noqa: E402
from cosmosservice import CosmosSessionService, RequestCharge  # noqa: E402

APP, USER, SESSION = "social-media-posts", "Hari", "first-post"
BEGINNING = (
    "Hi! How is your day going?",
    "Let us take 146.",
    "Now tell me something funny.",
)
CONTINUATION = (
    "Do you still know my number?",
    "Another joke, please.",
)
COLOURS = {"user": "bold cyan", "postAgent": "bold green", "funny_sub_agent": "bold magenta"}

console = Console(highlight=False, width=None if Console().is_terminal else 110)


async def main(path: Path) -> None:
    charges: list[RequestCharge] = []
    with Emulator(path) as emulator:
        # The one line that differs from a demo with InMemorySessionService(). On Azure it is
        # CosmosSessionService(), and the environment says where.
        sessions = CosmosSessionService.embedded(emulator, on_request_charge=charges.append)
        async with sessions:
            session = await sessions.get_session(app_name=APP, user_id=USER, session_id=SESSION)
            if session is None:
                heading("A new session")
                await sessions.create_session(
                    app_name=APP,
                    user_id=USER,
                    session_id=SESSION,
                    state={"dark_joke": "none yet", "random_num": "none yet"},
                )
                lines = BEGINNING
            else:
                heading(f"The same session in a new process: {len(session.events)} events")
                show_state(session)
                lines = CONTINUATION

            runner = Runner(app_name=APP, agent=make_post_agent(), session_service=sessions)
            for line in lines:
                show(USER, line, "user")
                async for event in runner.run_async(
                    user_id=USER,
                    session_id=SESSION,
                    new_message=types.Content(role="user", parts=[types.Part(text=line)]),
                ):
                    show_event(event)
            await runner.close()

            after = await sessions.get_session(app_name=APP, user_id=USER, session_id=SESSION)
            assert after is not None
            show_state(after)
        if session is not None:
            show_documents(emulator)
        show_cost(charges)
    if session is None:
        console.print(f"\nThe process ends here. The conversation is in {path}.", style="dim")


def heading(text: str) -> None:
    console.print()
    console.rule(f"[bold]{text}[/]", align="left")


def show(who: str, what: str, role: str) -> None:
    line = Text.assemble((f"{who:>16}  ", COLOURS.get(role, "bold")), what)
    console.print(line)


def show_event(event: Event) -> None:
    """What was said, called and changed."""
    for part in event.content.parts or [] if event.content else []:
        if part.text:
            show(event.author, part.text.strip(), event.author)
        elif part.function_call:
            arguments = ", ".join(f"{k}={v!r}" for k, v in (part.function_call.args or {}).items())
            aside(f"calls {part.function_call.name}({arguments})")
    for key, value in event.actions.state_delta.items():
        aside(f"{key} := {_short(repr(value), 70)}")


def aside(text: str) -> None:
    console.print(Text(f"{'':18}{text}", style="dim"))


def titled(title: str, *columns: str) -> Table:
    return Table(*columns, title=title, title_justify="left", title_style="bold", box=SIMPLE_HEAD)


def show_state(session: Session) -> None:
    table = titled("State", "scope", "key", "value")
    scopes = {"app": "app: everybody", "user": f"user: {session.user_id}"}
    for key in sorted(session.state, key=lambda key: (key.partition(":")[0] not in scopes, key)):
        prefix, _, rest = key.partition(":")
        own = prefix not in scopes
        table.add_row(
            scopes.get(prefix, "this session"), key if own else rest, _short(session.state[key])
        )
    console.print()
    console.print(table)
    console.print()


def show_documents(emulator: Emulator) -> None:
    """Everything in the account, read with Microsoft's own SDK."""
    heading("What is stored")
    client = CosmosClient(emulator.endpoint, emulator.key, transport=emulator.transport())
    for database in client.list_databases():
        proxy = client.get_database_client(database["id"])
        for container in sorted(proxy.list_containers(), key=lambda found: found["id"]):
            paths = ", ".join(container["partitionKey"]["paths"])
            table = titled(
                f"Container {container['id']}, partition key {paths}", "document", "contents"
            )
            documents = proxy.get_container_client(container["id"]).read_all_items()
            for document in sorted(documents, key=lambda found: found.get("seq", 0)):
                table.add_row(*_described(document))
            console.print(table)


def _described(document: dict) -> tuple[str, str]:
    """A document's kind, and its most interesting part."""
    kind = document["document_type"]
    if "seq" not in document:
        revision = f", revision {document['revision']}" if "revision" in document else ""
        return f"{kind}{revision}", f"state {json.dumps(document['state'], ensure_ascii=False)}"
    parts = (document.get("content") or {}).get("parts", [])
    said = [
        part.get("text") or f"{kind} {part[kind]['name']}"
        for part in parts
        for kind in ("function_call", "function_response", "text")
        if kind in part
    ]
    delta = (document.get("actions") or {}).get("state_delta")
    if delta:
        said.append(f"state_delta {json.dumps(delta, ensure_ascii=False)}")
    return f"{kind} {document['seq']} by {document['author']}", _short("; ".join(said), 200)


def show_cost(charges: list[RequestCharge]) -> None:
    """Request units by operation of the service."""
    calls: dict[str, list[RequestCharge]] = defaultdict(list)
    for charge in charges:
        calls[charge.operation].append(charge)
    table = titled("Cost of this process")
    table.add_column("operation")
    table.add_column("requests", justify="right")
    table.add_column("request units", justify="right")
    for operation, made in sorted(calls.items()):
        units = sum(charge.request_units for charge in made)
        table.add_row(operation, str(len(made)), f"{units:.1f}")
    total = sum(charge.request_units for charge in charges)
    table.add_section()
    table.add_row("together", str(len(charges)), f"{total:.1f}")
    console.print(table)


def _short(value: object, width: int = 80) -> str:
    text = str(value)
    return text if len(text) <= width else text[: width - 1] + "…"


if __name__ == "__main__":
    options = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    options.add_argument("--file", type=Path, default=Path("demo.db"), help="where to keep it")
    options.add_argument("--fresh", action="store_true", help="forget what the file holds")
    chosen = options.parse_args()
    if chosen.fresh:
        for suffix in ("", "-wal", "-shm"):
            Path(f"{chosen.file}{suffix}").unlink(missing_ok=True)
    asyncio.run(main(chosen.file))
