"""Ready-made embedders: google-genai, which comes with ADK, and Azure OpenAI.

    CosmosMemoryService(embedder=GenaiEmbedder())
    CosmosMemoryService(embedder=AzureOpenAIEmbedder("my-deployment", dimensions=1536))

Any other `async (texts) -> vectors` works too.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any
from weakref import WeakKeyDictionary

from cosmosservice.errors import ConfigurationError


class _PerLoop:
    """A client for each event loop, because its connections belong to that loop."""

    def __init__(self, make: Callable[[], Any]) -> None:
        self._make = make
        self._made: WeakKeyDictionary[asyncio.AbstractEventLoop, Any] = WeakKeyDictionary()

    def get(self) -> Any:
        loop = asyncio.get_running_loop()
        if loop not in self._made:
            self._made[loop] = self._make()
        return self._made[loop]


class GenaiEmbedder:
    """Gemini's embeddings. The client is google-genai's, with GOOGLE_API_KEY or Vertex AI."""

    def __init__(
        self, model: str = "gemini-embedding-001", *, dimensions: int = 768, client: Any = None
    ) -> None:
        self.model = model
        self.dimensions = dimensions
        self._clients = _PerLoop(_genai_client if client is None else lambda: client)

    async def __call__(self, texts: list[str]) -> list[list[float]]:
        from google.genai import types

        answer = await self._clients.get().aio.models.embed_content(
            model=self.model,
            contents=texts,
            config=types.EmbedContentConfig(output_dimensionality=self.dimensions),
        )
        return [list(each.values) for each in answer.embeddings]


class AzureOpenAIEmbedder:
    """Embeddings of a deployment on Azure OpenAI. The client is openai's AsyncAzureOpenAI, with
    AZURE_OPENAI_ENDPOINT, AZURE_OPENAI_API_KEY and OPENAI_API_VERSION, or a given client."""

    def __init__(self, deployment: str, *, dimensions: int = 1536, client: Any = None) -> None:
        self.model = deployment
        self.dimensions = dimensions
        self._clients = _PerLoop(_azure_openai_client if client is None else lambda: client)

    async def __call__(self, texts: list[str]) -> list[list[float]]:
        answer = await self._clients.get().embeddings.create(
            model=self.model, input=texts, dimensions=self.dimensions
        )
        return [list(each.embedding) for each in sorted(answer.data, key=lambda each: each.index)]


def _genai_client() -> Any:
    from google import genai

    return genai.Client()


def _azure_openai_client() -> Any:
    try:
        from openai import AsyncAzureOpenAI
    except ImportError:
        raise ConfigurationError(
            "The embedder of Azure OpenAI needs a package that is not installed (openai):"
            " pip install 'cosmosservice[openai]'."
        ) from None
    return AsyncAzureOpenAI()
