"""An agent that learns your name and knows it in every later session. It needs no API key.

adk web --session_service_uri="cosmosdb://embedded/sessions.db" examples/agents
"""

from google.adk.agents import LlmAgent
from google.adk.tools import ToolContext

from .scripted_model import ScriptedModel


def remember_name(name: str, tool_context: ToolContext) -> dict[str, str]:
    """Keeps the user's name, for this and all other sessions of the user."""
    tool_context.state["user:name"] = name
    tool_context.state["introduced"] = True
    return {"remembered": name}


root_agent = LlmAgent(
    name="greeter",
    model=ScriptedModel(model="scripted"),
    instruction="Greet the user by name. Known name: <{user:name?}>.",
    tools=[remember_name],
)
