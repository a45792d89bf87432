"""A chat service in any number of workers: FastAPI, an ADK Runner, sessions on Cosmos DB.

    export COSMOSDB_ENDPOINT=embedded:chat.db
    uvicorn fastapi_app:app --app-dir examples --workers 2

    curl -X POST localhost:8000/users/ada/sessions          # {"session": "<id>"}
    curl -X POST localhost:8000/users/ada/sessions/<id>/turns \\
        -H 'content-type: application/json' -d '{"text": "Let us take 146."}'

COSMOSDB_* say where the sessions are. The agent is that of agent_runner.py: its models are scripted
unless GOOGLE_API_KEY is set.
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from fastapi import FastAPI, HTTPException, Request
from google.adk.runners import Runner
from google.genai import types
from post_agent import make_post_agent
from pydantic import BaseModel

from cosmosservice import (
    CosmosSessionService,
    StaleSessionError,
    ThrottledError,
    UnavailableError,
)

APP = "social-media-posts"
STATE = {"dark_joke": "none yet", "random_num": "none yet"}


@asynccontextmanager
async def lifespan(app: FastAPI) -> AsyncIterator[None]:
    # Each worker has one event loop for its whole life. Inside the block the service lives on it,
    # and background writes are finished when the worker ends.
    async with CosmosSessionService() as sessions:
        app.state.sessions = sessions
        app.state.runner = Runner(app_name=APP, agent=make_post_agent(), session_service=sessions)
        yield


app = FastAPI(title="Chat", lifespan=lifespan)


class Message(BaseModel):
    text: str


@app.post("/users/{user_id}/sessions")
async def begin(user_id: str, request: Request) -> dict[str, str]:
    session = await request.app.state.sessions.create_session(
        app_name=APP, user_id=user_id, state=STATE
    )
    return {"session": session.id}


@app.post("/users/{user_id}/sessions/{session_id}/turns")
async def turn(user_id: str, session_id: str, message: Message, request: Request) -> dict[str, Any]:
    said = []
    try:
        async for event in request.app.state.runner.run_async(
            user_id=user_id,
            session_id=session_id,
            new_message=types.UserContent(message.text),
        ):
            parts = event.content.parts or [] if event.content else []
            said += [part.text for part in parts if part.text]
    except StaleSessionError as error:
        # Another turn of this session ran at the same time, in this worker or in another one.
        raise HTTPException(
            409, "Another turn was faster: read it and send this one again."
        ) from error
    except (ThrottledError, UnavailableError) as error:
        raise HTTPException(503, "Please try again.", headers={"Retry-After": "5"}) from error
    return {"said": said, "worker": os.getpid()}


@app.get("/users/{user_id}/sessions")
async def sessions(user_id: str, request: Request, after: str | None = None) -> dict[str, Any]:
    page = await request.app.state.sessions.list_sessions_page(
        app_name=APP, user_id=user_id, newest_first=True, limit=20, continuation=after
    )
    listed = [
        {"session": session.id, "title": title}
        for session, title in zip(page.sessions, page.titles, strict=True)
    ]
    return {"sessions": listed, "next": page.continuation}
