"""Search by meaning, with a small deterministic embedder that knows that a feline is a cat."""

from __future__ import annotations

import logging

import pytest

from cosmosservice.account.container import Container
from cosmosservice.errors import ConfigurationError, ContainerMismatchError
from cosmosservice.memory import queries
from cosmosservice.memory.ranking import Near, Ranking, matches_of
from cosmosservice.memory.words import terms_of
from tests.memory.raw import documents_of
from tests.memory.support import USER, found, found_texts, session
from tests.support.adk import event

WHO = {"app_name": "app", "user_id": USER}
MEANINGS = [{"cat", "feline", "kitten"}, {"car", "vehicle", "truck"}, {"tea", "brew"}]

pytestmark = pytest.mark.needs("vectors")


class Embedder:
    """One dimension for each meaning, and one for everything else."""

    def __init__(self, dimensions: int = 4, model: str | None = "meanings") -> None:
        self.model = model
        self.dimensions = dimensions
        self.failing = False
        self.asked: list[str] = []

    async def __call__(self, texts: list[str]) -> list[list[float]]:
        if self.failing:
            raise RuntimeError("no model today")
        self.asked += texts
        return [self._vector(text) for text in texts]

    def _vector(self, text: str) -> list[float]:
        words = set(text.lower().split())
        known = [float(bool(words & meaning)) for meaning in MEANINGS]
        return [*known, 0.1, *[0.0] * (self.dimensions - 4)]


@pytest.fixture
def embedder():
    return Embedder()


@pytest.fixture
async def memory(open_memory, embedder):
    service = open_memory(embedder=embedder, repeat_seconds=0)
    for text in ("my cat sleeps", "the truck is red", "brew it for five minutes"):
        await service.add_events_to_memory(**WHO, events=[event(text)])
    return service


async def test_what_means_the_same_is_found(memory):
    assert (await found_texts(memory, "feline"))[0] == "my cat sleeps"
    assert (await found_texts(memory, "vehicle"))[0] == "the truck is red"


async def test_words_and_meaning_count_together(memory):
    await memory.add_events_to_memory(**WHO, events=[event("a kitten named Feline")])
    hits = await found_texts(memory, "feline")
    assert hits[:2] == ["a kitten named Feline", "my cat sleeps"]


async def test_vectors_of_what_is_found_by_words_are_compared_too(
    open_memory, embedder, monkeypatch
):
    """One more query, if there are more vectors than one query looks at."""
    asked: list[str] = []
    query = Container.query

    async def noted(self, text, parameters, *options):
        asked.append(text)
        return await query(self, text, parameters, *options)

    monkeypatch.setattr(Container, "query", noted)
    memory = open_memory(embedder=embedder, repeat_seconds=0)
    await memory.add_session_to_memory(session("Felix and the garage", "Felix and his vehicle"))
    await found(memory, "feline Felix")
    assert sum("VectorDistance" in text for text in asked) == 1
    await memory.add_session_to_memory(session(*["a kitten"] * queries.NEIGHBOURS, id="kittens"))
    asked.clear()
    nearness = {
        hit.content.parts[0].text: hit.custom_metadata["match"]["nearness"]
        for hit in await found(memory, "feline Felix")
    }
    assert sum("VectorDistance" in text for text in asked) == 2
    assert nearness["a kitten"] > 0.9
    assert nearness["Felix and the garage"] < 0.2


def test_only_distances_between_similarities_count():
    """Another model may give similarities in another range."""
    terms = terms_of("garage code")
    rows = [
        {"id": f"e.{at}", "at": f"{at}.000000001", "time": at, "length": 5, "tokens": ["garag"]}
        for at in range(4)
    ]
    similar = [0.3, 0.9, 0.5, 0.4, 0.8, 0.7]

    def order(scale: float, low: float) -> list[str]:
        ranking = Ranking(matches_of(rows, terms), dict.fromkeys(terms, 1))
        ranking.add(
            [
                Near(f"e.{at}", f"{at}.000000001", low + scale * each)
                for at, each in enumerate(similar)
            ]
        )
        return [each.at for each in ranking.candidates]

    assert order(1.0, 0.0)[0] == "1.000000001"
    assert order(1.0, 0.0) == order(0.2, 0.7)


async def test_an_embedder_that_fails_loses_no_memory(memory, embedder, caplog, cosmos):
    embedder.failing = True
    await memory.add_events_to_memory(**WHO, events=[event("tea is a brew")])
    assert "1 memories are stored without a vector" in caplog.text
    assert "no model today" not in caplog.text
    assert await found_texts(memory, "tea") == ["tea is a brew"]
    assert "this search goes by words alone" in caplog.text
    vectors = [each for each in documents_of(cosmos) if each.get("kind") == "vector"]
    assert len(vectors) == 3


async def test_missing_vectors_are_made_later(memory, embedder, emulator):
    embedder.failing = True
    await memory.add_events_to_memory(**WHO, events=[event("a kitten " + "x" * 9_000)])
    report = await memory.embed_missing()
    assert (report.missing, report.embedded) == (1, 0)
    embedder.failing = False
    report = await memory.embed_missing(**WHO)
    assert (report.missing, report.embedded) == (1, 1)
    assert (await memory.embed_missing()).missing == 0
    assert any(each.startswith("a kitten") for each in await found_texts(memory, "feline"))
    assert max(map(len, embedder.asked)) == 8_000


async def test_a_deleted_memory_has_no_vector(memory, cosmos):
    talk = session("a kitten")
    await memory.add_session_to_memory(talk)
    await memory.delete_memory(**WHO, memory_id=talk.events[0].id)
    kinds = [each.get("kind") for each in documents_of(cosmos)]
    assert sorted(filter(None, kinds)) == ["forgotten"] + ["memory"] * 3 + ["vector"] * 3
    assert "a kitten" not in await found_texts(memory, "feline")


async def test_a_vector_that_comes_after_the_deletion_does_not_stay(open_memory, cosmos):
    class Slow(Embedder):
        async def __call__(self, texts):
            if "user: a kitten" in texts:
                await other.delete_memory(**WHO, memory_id="kitten")
            return await super().__call__(texts)

    other = open_memory()
    # The service with the embedder must create the container.
    service = open_memory(embedder=Slow())
    await service.search_memory(**WHO, query="x")
    await service.add_events_to_memory(**WHO, events=[event("a kitten", id="kitten")])
    kinds = [each.get("kind") for each in documents_of(cosmos) if each.get("kind")]
    assert kinds == ["forgotten"]


async def test_purging_erases_vectors(memory, cosmos):
    report = await memory.purge_memories(**WHO)
    assert (report.memories, report.vectors) == (3, 3)
    assert [each["id"] for each in documents_of(cosmos)] == ["embedder"]


async def test_a_container_for_another_dimension_is_refused(memory, open_memory):
    other = open_memory(embedder=Embedder(dimensions=8))
    with pytest.raises(ContainerMismatchError, match="vectors of 4 dimensions; the embedder's"):
        await found_texts(other, "tea")


async def test_vectors_of_another_model_are_not_used_until_they_are_renewed(
    memory, open_memory, caplog
):
    other = open_memory(embedder=Embedder(model="another"), repeat_seconds=0)
    assert await found_texts(other, "feline") == []
    assert "made by 'meanings: author: text', and the embedder makes 'another" in caplog.text
    assert (await other.embed_missing()).embedded == 3
    assert "my cat sleeps" in await found_texts(other, "feline")
    caplog.clear()
    await found_texts(open_memory(embedder=Embedder(model="another")), "feline")
    assert not caplog.text


async def test_who_spoke_is_embedded_too(open_memory):
    embedded = []

    async def embed(texts):
        embedded.extend(texts)
        return [[1.0, 0.0, 0.5] for _ in texts]

    embed.dimensions = 3
    await open_memory(embedder=embed).add_session_to_memory(session("tea", author="ann"))
    assert embedded == ["ann: tea"]


async def test_a_container_without_vectors_is_refused(open_memory):
    await open_memory().add_session_to_memory(session("tea"))
    with pytest.raises(ContainerMismatchError, match="created without a vector policy"):
        await found_texts(open_memory(embedder=Embedder()), "tea")


async def test_a_service_without_an_embedder_may_use_the_same_container(memory, open_memory):
    assert await found_texts(open_memory(), "cat") == ["my cat sleeps"]


async def test_dimensions_are_measured_if_they_are_not_declared(open_memory):
    async def embed(texts):
        return [[1.0, 0.0, 0.5] for _ in texts]

    service = open_memory(embedder=embed)
    await service.add_session_to_memory(session("tea"))
    assert await found_texts(service, "anything at all") == ["tea"]


async def test_an_embedder_whose_dimensions_cannot_be_measured_is_refused(open_memory):
    async def embed(texts):
        raise RuntimeError("no model today")

    with pytest.raises(ConfigurationError, match="how many dimensions") as caught:
        await found_texts(open_memory(embedder=embed), "tea")
    assert "no model today" not in str(caught.value)


@pytest.mark.parametrize(
    "vectors", [[], [[1.0]], [[float("nan")] * 4], [[]], [["x"] * 4], [[1.0] * 5]]
)
async def test_vectors_that_are_none_are_not_stored(open_memory, cosmos, caplog, vectors):
    class Wrong(Embedder):
        async def __call__(self, texts):
            return vectors

    service = open_memory(embedder=Wrong())
    with caplog.at_level(logging.WARNING):
        await service.add_session_to_memory(session("tea"))
    assert "The embedder failed" in caplog.text
    assert [each["kind"] for each in documents_of(cosmos) if "kind" in each] == ["memory"]


async def test_an_account_without_the_capability_says_how_to_enable_it(open_memory, emulator):
    service = open_memory(embedder=Embedder())
    emulator.faults.fail(400, resource="colls", operation="create", times=None)
    with pytest.raises(ConfigurationError, match="EnableNoSQLVectorSearch"):
        await found_texts(service, "tea")


async def test_a_fork_finds_by_meaning_what_it_shares_with_its_source(open_memory, embedder):
    shared = event("my cat sleeps", id="one")
    source = session(shared, event("a kitten of the source", id="two"), id="source")
    fork = session(shared, event("the truck is red", id="three"), id="fork")
    memory = open_memory(embedder=embedder, repeat_seconds=0)
    for each in (source, fork):
        await memory.add_session_to_memory(each)
    of_fork = await found_texts(memory, "feline", session_id="fork")
    assert of_fork == ["my cat sleeps"]
    await memory.purge_memories(**WHO, session_id="source")
    assert await found_texts(memory, "feline", session_id="fork") == of_fork
