"""Makes the vectors that are missing because the embedder failed, or that another one has made."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from cosmosservice.account.chunks import Damaged
from cosmosservice.account.container import Container
from cosmosservice.account.failures import NotFound
from cosmosservice.memory import documents, queries
from cosmosservice.memory.damage import Damage
from cosmosservice.memory.embedding import AT_ONCE, Vectors
from cosmosservice.memory.entries import memory_of, text_in
from cosmosservice.memory.searching import content_of

Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class EmbedReport:
    """How many memories had no vector of this embedder, and how many have one now."""

    missing: int
    embedded: int


async def embed_missing(
    container: Container, vectors: Vectors, owner: str | None, damage: Damage, progress: Progress
) -> EmbedReport:
    """Embeds the memories of one owner, or of all."""
    made = await container.query(queries.WITH_VECTOR, {"made": vectors.made}, owner)
    having = {(each["owner"], str(each.get("of"))) for each in made}
    found = await container.query(queries.MEMORIES, {"kind": documents.MEMORY}, owner)
    missing = [each for each in found if (each["owner"], each["id"]) not in having]
    embedded = 0
    for start in range(0, len(missing), AT_ONCE):
        some = []
        for each in missing[start : start + AT_ONCE]:
            try:
                document = await container.read(each["id"], each["owner"])
            except NotFound:
                continue
            if not isinstance(document, dict) or not damage.is_memory(document):
                continue
            try:
                content = await content_of(container, document)
                if content is not None:
                    some.append((document, text_in(memory_of(document, content).content)))
            except Damaged as problem:
                damage.report(document, str(problem))
        embedded += await vectors.add(some)
        progress(start + len(some), len(missing))
    if owner is None and embedded == len(missing):
        await vectors.renewed()
    return EmbedReport(len(missing), embedded)
