"""The built-in embedders call their clients correctly."""

from __future__ import annotations

import sys
from types import SimpleNamespace

import pytest

from cosmosservice.errors import ConfigurationError
from cosmosservice.memory.embedders import AzureOpenAIEmbedder, GenaiEmbedder


async def test_gemini_is_asked_for_vectors_of_a_size():
    asked = {}

    async def embed_content(**options):
        asked.update(options)
        return SimpleNamespace(embeddings=[SimpleNamespace(values=(1.0, 2.0))])

    models = SimpleNamespace(embed_content=embed_content)
    client = SimpleNamespace(aio=SimpleNamespace(models=models))
    embedder = GenaiEmbedder("gemini-embedding-001", dimensions=2, client=client)
    assert await embedder(["tea"]) == [[1.0, 2.0]]
    assert (asked["model"], asked["contents"]) == ("gemini-embedding-001", ["tea"])
    assert asked["config"].output_dimensionality == 2


def test_gemini_has_such_a_method():
    from google import genai

    assert callable(genai.Client(api_key="none").aio.models.embed_content)


async def test_azure_openai_is_asked_for_vectors_of_a_size():
    asked = {}

    async def create(**options):
        asked.update(options)
        data = [
            SimpleNamespace(index=1, embedding=[2.0]),
            SimpleNamespace(index=0, embedding=[1.0]),
        ]
        return SimpleNamespace(data=data)

    client = SimpleNamespace(embeddings=SimpleNamespace(create=create))
    embedder = AzureOpenAIEmbedder("deployed", dimensions=1, client=client)
    assert await embedder(["tea", "cake"]) == [[1.0], [2.0]]
    assert asked == {"model": "deployed", "input": ["tea", "cake"], "dimensions": 1}


async def test_azure_openai_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "openai", None)
    with pytest.raises(ConfigurationError, match=r"cosmosservice\[openai\]"):
        await AzureOpenAIEmbedder("deployed")(["tea"])
