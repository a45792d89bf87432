"""An agent that remembers across sessions: CosmosMemoryService on the embedded Cosmos DB emulator.

    python examples/remembering_agent.py --fresh    a first session, which becomes memory
    python examples/remembering_agent.py            a new session, days later, in a new process

The model is scripted: it can only say what ADK shows it.
"""

from __future__ import annotations

import argparse
import asyncio
import logging
import re
import warnings
from collections.abc import AsyncGenerator
from pathlib import Path

# ADK announces its experimental features when it is imported.
warnings.filterwarnings("ignore")
logging.getLogger("google_adk").setLevel(logging.ERROR)

from google.adk.agents import LlmAgent  # noqa: E402
from google.adk.agents.callback_context import CallbackContext  # noqa: E402
from google.adk.models import BaseLlm, LlmRequest, LlmResponse  # noqa: E402
from google.adk.runners import Runner  # noqa: E402
from google.adk.tools import preload_memory  # noqa: E402
from google.genai import types  # noqa: E402

from cosmosservice import CosmosAccount, CosmosMemoryService, CosmosSessionService  # noqa: E402

APP, USER = "travel", "Hari"
FIRST = ("I would like to travel again.", "Yes, last May! The trams were wonderful.")
LATER = ("When was I in Lisbon?",)


class TravelModel(BaseLlm):
    """Asks about Lisbon, and answers from the memories that it is shown."""

    model: str = "scripted"

    async def generate_content_async(
        self, llm_request: LlmRequest, stream: bool = False
    ) -> AsyncGenerator[LlmResponse, None]:
        said = [part.text or "" for c in llm_request.contents for part in c.parts or []]
        shown = "\n".join([*said, str(llm_request.config.system_instruction or "")])
        memory = re.search(r"^user: (Yes, .*?)$", shown, re.MULTILINE)
        if any("again" in text for text in said) and len(said) == 1:
            reply = "Gladly. Have you ever been to Lisbon?"
        elif memory:
            reply = f"You told me: “{memory[1]}”"
        elif "When was I" in said[-1]:
            reply = "I do not know."
        else:
            reply = "I will keep that in mind."
        yield LlmResponse(content=types.Content(role="model", parts=[types.Part(text=reply)]))


async def remember(callback_context: CallbackContext) -> None:
    """After every turn. What is stored already is not written again."""
    await callback_context.add_session_to_memory()


async def main(path: Path, lines: tuple[str, ...]) -> None:
    agent = LlmAgent(
        name="guide",
        model=TravelModel(),
        tools=[preload_memory],
        after_agent_callback=remember,
    )
    async with CosmosAccount(endpoint=f"embedded:{path}") as account:
        sessions = CosmosSessionService(account=account)
        runner = Runner(
            app_name=APP,
            agent=agent,
            session_service=sessions,
            memory_service=CosmosMemoryService(account=account),
        )
        session = await sessions.create_session(app_name=APP, user_id=USER)
        for line in lines:
            print(f"{USER:>8}  {line}")
            async for event in runner.run_async(
                user_id=USER,
                session_id=session.id,
                new_message=types.Content(role="user", parts=[types.Part(text=line)]),
            ):
                for part in event.content.parts or [] if event.content else []:
                    print(f"{event.author:>8}  {part.text}")


if __name__ == "__main__":
    options = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    options.add_argument(
        "--file", type=Path, default=Path("memory-demo.db"), help="where to keep it"
    )
    options.add_argument("--fresh", action="store_true", help="forget what the file holds")
    chosen = options.parse_args()
    if chosen.fresh:
        for suffix in ("", "-wal", "-shm"):
            Path(f"{chosen.file}{suffix}").unlink(missing_ok=True)
        print("A first session")
    else:
        print("\nA new session in a new process")
    asyncio.run(main(chosen.file, FIRST if chosen.fresh else LATER))
