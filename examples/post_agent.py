"""The agents of the demo: one writes posts and uses a tool, the other tells jokes."""

from __future__ import annotations

import os
from typing import Any

from google.adk.agents import LlmAgent
from google.adk.models import BaseLlm
from google.adk.tools import ToolContext
from local_model import JokeModel, PostModel

GEMINI = "gemini-flash-latest"


def update_num_tool(num: str, tool_context: ToolContext) -> dict[str, Any]:
    """Keeps the number that the user picked.

    Args:
        num: the number, in digits
    """
    state = tool_context.state
    state["random_num"] = num  # of this session
    state["user:favourite_num"] = num  # of this user, in every session
    state["app:numbers_picked"] = state.get("app:numbers_picked", 0) + 1  # of everybody
    return {"random_num": num}


def make_post_agent() -> LlmAgent:
    """The root agent. Its models are local and scripted, unless GOOGLE_API_KEY is set."""

    def model(local: BaseLlm) -> str | BaseLlm:
        return GEMINI if os.environ.get("GOOGLE_API_KEY") else local

    funny_sub_agent = LlmAgent(
        name="funny_sub_agent",
        description="Tells dark but harmless jokes.",
        model=model(JokeModel()),
        instruction=(
            "Tell one short, dark but harmless joke about software, another one than"
            " '{dark_joke}'. If the user wants anything else, transfer to postAgent."
        ),
        output_key="dark_joke",
    )
    return LlmAgent(
        name="postAgent",
        description="Writes short social media posts about the user's number.",
        model=model(PostModel()),
        instruction=(
            "You write social media posts of one sentence. When the user picks a number, keep it"
            " with update_num_tool and propose a post about it. When the user wants a joke,"
            " transfer to funny_sub_agent."
        ),
        tools=[update_num_tool],
        sub_agents=[funny_sub_agent],
    )
