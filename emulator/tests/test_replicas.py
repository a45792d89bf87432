"""Replicas that lag: what clients other than the writer may see, and what brings them up to
date."""

import itertools
import math
import random

import pytest
from azure.core import MatchConditions
from azure.cosmos import PartitionKey, exceptions
from azure.cosmos.aio import CosmosClient

from cosmos_emulator import Emulator, Replicas

IF_MATCH = MatchConditions.IfNotModified
IF_NONE_MATCH = MatchConditions.IfModified


class World:
    """One emulator, and clients that are independent of each other."""

    def __init__(self, emulator, enter):
        self.emulator = emulator
        self.replicas = emulator.replicas
        self._enter = enter

    async def container(self, name="c", **options):
        client = CosmosClient(
            self.emulator.endpoint,
            self.emulator.key,
            transport=self.emulator.async_transport(),
            **options,
        )
        database = await (await self._enter(client)).create_database_if_not_exists("db")
        return await database.create_container_if_not_exists(
            name, partition_key=PartitionKey("/pk"), default_ttl=-1
        )


@pytest.fixture
async def world():
    """Makes a world with the test's own replicas."""
    emulators, clients = [], []

    async def enter(client):
        clients.append(client)
        return await client.__aenter__()

    def make(replicas=None, **options):
        emulators.append(Emulator(replicas=replicas or Replicas(), **options))
        return World(emulators[-1], enter)

    yield make
    for client in clients:
        await client.close()
    for emulator in emulators:
        emulator.close()


async def read(container, item_id="a", pk="x"):
    try:
        return (await container.read_item(item_id, pk)).get("n")
    except exceptions.CosmosResourceNotFoundError:
        return None


async def listed(container, **options):
    return [row["n"] async for row in container.read_all_items(**options)]


async def queried(container, text="SELECT VALUE c.n FROM c ORDER BY c.n", **options):
    return [row async for row in container.query_items(text, **options)]


async def many(container, *ids):
    rows = await container.read_items([(item_id, "x") for item_id in ids])
    return sorted(row["n"] for row in rows)


async def fed(container):
    return [row["n"] async for row in container.query_items_change_feed(start_time="Beginning")]


WAYS = {
    "point read": lambda c: read(c),
    "feed": lambda c: listed(c),
    "query": lambda c: queried(c),
    "query of a partition": lambda c: queried(c, partition_key="x"),
    "count": lambda c: queried(c, "SELECT VALUE COUNT(1) FROM c WHERE c.n > 0"),
    "read_items": lambda c: many(c, "a", "b"),
    "change feed": lambda c: fed(c),
}


@pytest.mark.parametrize("way", WAYS)
async def test_a_write_that_a_held_replica_misses_is_seen_after_the_release(world, way):
    world = world()
    writer, reader = await world.container(), await world.container()
    await writer.create_item({"id": "a", "pk": "x", "n": 1})
    before = await WAYS[way](writer)
    world.replicas.hold("c")
    await writer.replace_item("a", {"id": "a", "pk": "x", "n": 2})
    await writer.create_item({"id": "b", "pk": "x", "n": 3})
    after = await WAYS[way](writer)
    assert after != before
    assert await WAYS[way](reader) == before
    world.replicas.release()
    assert await WAYS[way](reader) == after


@pytest.mark.parametrize("way", WAYS)
async def test_an_item_whose_deletion_a_held_replica_misses_is_still_seen(world, way):
    world = world()
    writer, reader = await world.container(), await world.container()
    await writer.create_item({"id": "a", "pk": "x", "n": 1})
    before = await WAYS[way](writer)
    world.replicas.hold()
    await writer.delete_item("a", "x")
    assert await WAYS[way](writer) != before
    assert await WAYS[way](reader) == before
    world.replicas.release("c")
    assert await WAYS[way](reader) != before


async def replace_with_412(container):
    with pytest.raises(exceptions.CosmosAccessConditionFailedError) as refused:
        await container.replace_item(
            "a", {"id": "a", "pk": "x"}, etag='"no such"', match_condition=IF_MATCH
        )
    return refused.value.headers


async def replace_with_404(container):
    with pytest.raises(exceptions.CosmosResourceNotFoundError) as refused:
        await container.replace_item("missing", {"id": "missing", "pk": "x"})
    return refused.value.headers


async def delete_with_404(container):
    with pytest.raises(exceptions.CosmosResourceNotFoundError) as refused:
        await container.delete_item("missing", "x")
    return refused.value.headers


async def create_with_409(container):
    with pytest.raises(exceptions.CosmosResourceExistsError) as refused:
        await container.create_item({"id": "a", "pk": "x"})
    return refused.value.headers


async def patch_with_412(container):
    with pytest.raises(exceptions.CosmosAccessConditionFailedError) as refused:
        await container.patch_item(
            "a",
            "x",
            [{"op": "set", "path": "/n", "value": 9}],
            filter_predicate="from c where false",
        )
    return refused.value.headers


async def write(container):
    await container.upsert_item({"id": "other", "pk": "x"})


REFUSED = [
    replace_with_412,
    replace_with_404,
    delete_with_404,
    create_with_409,
    patch_with_412,
]


async def changed_under_lag(world, first):
    """A client that has not seen the second version of an item, and may have read the first."""
    world = world()
    writer, reader = await world.container(), await world.container()
    await writer.create_item({"id": "a", "pk": "x", "n": 1})
    world.replicas.hold()
    await writer.replace_item("a", {"id": "a", "pk": "x", "n": 2})
    if not first:
        assert await read(reader) == 1
    return reader


first_or_later = pytest.mark.parametrize(
    "first", [True, False], ids=["at first", "after a stale read"]
)


@first_or_later
async def test_a_write_brings_the_client_up_to_date(world, first):
    reader = await changed_under_lag(world, first)
    await write(reader)
    assert await read(reader) == 2


@first_or_later
@pytest.mark.parametrize("refused", REFUSED)
async def test_a_refused_write_has_the_newest_token_but_the_sdk_does_not_take_it(
    world, refused, first
):
    """Since the answer does not name the container."""
    reader = await changed_under_lag(world, first)
    headers = await refused(reader)
    assert await read(reader) == 1
    newest = headers["x-ms-session-token"]
    assert (await reader.read_item("a", "x", session_token=newest))["n"] == 2


@pytest.mark.parametrize("item_id", ["a", "b"], ids=["refused", "applied"])
async def test_a_batch_does_not_because_the_sdk_takes_no_token_from_it(world, item_id):
    world = world()
    writer, reader = await world.container(), await world.container()
    await writer.create_item({"id": "a", "pk": "x", "n": 1})
    world.replicas.hold()
    await writer.replace_item("a", {"id": "a", "pk": "x", "n": 2})
    token = None
    try:
        batch = [("create", ({"id": item_id, "pk": "x"},))]
        token = (await reader.execute_item_batch(batch, "x")).get_response_headers()
    except exceptions.CosmosBatchOperationError as refused:
        token = refused.headers
    assert await read(reader) == 1
    newest = token["x-ms-session-token"]
    assert (await reader.read_item("a", "x", session_token=newest))["n"] == 2


async def test_a_read_that_finds_nothing_reports_the_lsn_of_its_replica(world):
    world = world()
    writer, reader = await world.container(), await world.container()
    world.replicas.hold()
    await writer.create_item({"id": "a", "pk": "x", "n": 1})
    with pytest.raises(exceptions.CosmosResourceNotFoundError) as caught:
        await reader.read_item("a", "x")
    assert caught.value.headers["x-ms-session-token"] == "0:-1#0"
    assert await read(reader) is None


async def test_a_client_that_learnt_a_token_reads_no_further_than_it_must(world):
    world = world()
    writer, reader = await world.container(), await world.container()
    world.replicas.hold()
    await writer.create_item({"id": "a", "pk": "x", "n": 1})
    await reader.create_item({"id": "b", "pk": "x", "n": 1})
    await writer.upsert_item({"id": "a", "pk": "x", "n": 2})
    assert await read(reader) == 1
    assert await read(writer) == 2


async def test_writes_are_decided_on_the_newest_version(world):
    world = world()
    writer, reader = await world.container(), await world.container()
    world.replicas.hold()
    created = await writer.create_item({"id": "a", "pk": "x", "n": 1})
    newer = await writer.replace_item("a", {"id": "a", "pk": "x", "n": 2})
    assert await read(reader) is None
    with pytest.raises(exceptions.CosmosAccessConditionFailedError):
        await reader.replace_item(
            "a", {"id": "a", "pk": "x"}, etag=created["_etag"], match_condition=IF_MATCH
        )
    await reader.replace_item(
        "a", {"id": "a", "pk": "x", "n": 3}, etag=newer["_etag"], match_condition=IF_MATCH
    )


async def test_a_stale_version_has_its_own_etag(world):
    world = world()
    writer, reader = await world.container(), await world.container()
    old = await writer.create_item({"id": "a", "pk": "x", "n": 1})
    world.replicas.hold()
    new = await writer.replace_item("a", {"id": "a", "pk": "x", "n": 2})
    assert (await reader.read_item("a", "x"))["_etag"] == old["_etag"] != new["_etag"]
    same = await reader.read_item("a", "x", etag=old["_etag"], match_condition=IF_NONE_MATCH)
    assert same.get_response_headers()["etag"] == old["_etag"]
    assert not dict(same)


@pytest.mark.parametrize("level", ["Strong", "BoundedStaleness"])
async def test_strong_and_bounded_staleness_read_the_newest(world, level):
    world = world(consistency=level)
    writer, reader = await world.container(), await world.container(consistency_level=level)
    world.replicas.hold()
    await writer.create_item({"id": "a", "pk": "x", "n": 1})
    assert await read(reader) == 1
    assert await queried(reader) == [1]


@pytest.mark.parametrize("level", ["Eventual", "ConsistentPrefix"])
async def test_weaker_levels_do_not_even_read_their_own_writes(world, level):
    world = world()
    container = await world.container(consistency_level=level)
    world.replicas.hold()
    await container.create_item({"id": "a", "pk": "x", "n": 1})
    assert await read(container) is None


async def test_a_token_from_the_future_is_refused(world):
    world = world()
    container = await world.container()
    await container.create_item({"id": "a", "pk": "x", "n": 1})
    assert (await container.read_item("a", "x", session_token="0:-1#1"))["n"] == 1
    with pytest.raises(exceptions.CosmosResourceNotFoundError) as caught:
        await container.read_item("a", "x", session_token="0:-1#2")
    assert caught.value.sub_status == 1002


async def test_an_invalid_token_is_refused(world):
    world = world()
    container = await world.container()
    with pytest.raises(exceptions.CosmosHttpResponseError) as caught:
        await container.read_item("a", "x", session_token="0:soon")
    assert caught.value.status_code == 400


async def test_a_replica_applies_a_write_when_its_lag_has_passed(world):
    world = world(Replicas(lag=1000))
    writer, reader = await world.container(), await world.container()
    await writer.create_item({"id": "a", "pk": "x", "n": 1})
    world.emulator.clock.advance(600)
    await writer.replace_item("a", {"id": "a", "pk": "x", "n": 2})
    assert await read(reader) is None
    world.emulator.clock.advance(600)
    assert await read(reader) == 1
    world.emulator.clock.advance(600)
    assert await read(reader) == 2


async def test_an_infinite_lag_ends_when_a_test_says_so(world):
    world = world(Replicas(lag=math.inf))
    writer, reader = await world.container(), await world.container()
    await writer.create_item({"id": "a", "pk": "x", "n": 1})
    world.emulator.clock.advance(1e9)
    assert await read(reader) is None
    world.replicas.catch_up("c")
    await writer.replace_item("a", {"id": "a", "pk": "x", "n": 2})
    assert await read(reader) == 1


async def test_each_container_lags_on_its_own(world):
    world = world(Replicas(lag={"slow": math.inf}))
    for name, expected in [("slow", None), ("quick", 1)]:
        writer, reader = await world.container(name), await world.container(name)
        await writer.create_item({"id": "a", "pk": "x", "n": 1})
        assert await read(reader) == expected


async def test_all_can_be_held_but_one(world):
    world = world()
    world.replicas.hold()
    world.replicas.release("quick")
    for name, expected in [("slow", None), ("quick", 1)]:
        writer, reader = await world.container(name), await world.container(name)
        await writer.create_item({"id": "a", "pk": "x", "n": 1})
        assert await read(reader) == expected


class Ticks:
    """A clock that advances only when told to."""

    now = 0.0

    def __call__(self):
        return self.now


async def eventual_reads(world, seed):
    ticks = Ticks()
    world = world(Replicas(lag=(0, 10), seed=seed, time=ticks))
    writer, reader = await world.container(), await world.container(consistency_level="Eventual")
    seen = []
    for n in range(30):
        ticks.now = float(n)
        await writer.upsert_item({"id": "a", "pk": "x", "n": n})
        seen.append(await read(reader) or 0)
    return seen


async def test_reads_of_several_replicas_may_go_back_in_time(world):
    seen = await eventual_reads(world, seed=7)
    assert any(later < earlier for earlier, later in itertools.pairwise(seen))
    assert all(n - 10 <= value <= n for n, value in enumerate(seen))


async def test_a_seed_decides_what_is_seen(world):
    assert await eventual_reads(world, seed=7) == await eventual_reads(world, seed=7)
    assert await eventual_reads(world, seed=7) != await eventual_reads(world, seed=8)


@pytest.mark.parametrize("partitions", [1, 3])
@pytest.mark.parametrize("held_after", range(0, 40, 5))
async def test_a_replica_shows_exactly_the_state_at_which_it_was_held(
    world, held_after, partitions
):
    chance = random.Random(held_after)
    world = world(partitions=partitions)
    writer, reader = await world.container(), await world.container(consistency_level="Eventual")
    model, frozen = {}, {}
    for step in range(40):
        if step == held_after:
            world.replicas.hold()
            frozen = dict(model)
        where = (str(chance.randrange(6)), f"key {chance.randrange(3)}")
        document = {"id": where[0], "pk": where[1], "n": step}
        kind = chance.choice(["upsert", "delete", "batch"])
        if kind == "upsert":
            await writer.upsert_item(document)
            model[where] = step
        elif kind == "batch":
            # Twice in one transaction: no reader may ever see the state in between.
            operations = [("upsert", ({**document, "n": -1},)), ("upsert", (document,))]
            await writer.execute_item_batch(operations, where[1])
            model[where] = step
        elif model.pop(where, None) is not None:
            await writer.delete_item(*where)
    for where in {*model, *frozen}:
        assert await read(reader, *where) == frozen.get(where)
    assert await queried(reader) == sorted(frozen.values())
    assert sorted(await fed(reader)) == sorted(frozen.values())
    world.replicas.release()
    assert await queried(reader) == sorted(model.values())
    assert sorted(await fed(reader)) == sorted(model.values())


async def test_a_range_is_not_brought_up_to_date_by_the_token_of_another(world):
    world = world(partitions=2)
    writer, reader = await world.container(), await world.container()
    world.replicas.hold()
    for n in range(20):
        await writer.create_item({"id": "a", "pk": f"key {n}", "n": n})
    await reader.upsert_item({"id": "b", "pk": "key 0", "n": 100})
    seen = [await read(reader, "a", f"key {n}") for n in range(20)]
    assert seen[0] == 0
    assert None in seen
    assert any(seen[1:])
    assert sorted(await queried(reader)) == sorted([n for n in seen if n is not None] + [100])


async def test_expiry_goes_by_the_clock_of_the_server_on_every_replica(world):
    world = world()
    writer, reader = await world.container(), await world.container()
    await writer.create_item({"id": "a", "pk": "x", "n": 1, "ttl": 60})
    await writer.create_item({"id": "b", "pk": "x", "n": 2, "ttl": 60})
    world.replicas.hold()
    world.emulator.clock.advance(30)
    await writer.replace_item("a", {"id": "a", "pk": "x", "n": 3, "ttl": 60})
    assert await queried(reader) == [1, 2]
    world.emulator.clock.advance(31)
    assert await queried(reader) == []
    assert await read(reader) is None
    assert await queried(writer) == [3]


async def test_a_change_feed_does_not_go_back_when_it_reads_an_older_replica(world):
    world = world()
    writer, reader = await world.container(), await world.container()
    await writer.create_item({"id": "a", "pk": "x", "n": 1})
    world.replicas.hold()
    await writer.create_item({"id": "b", "pk": "x", "n": 2})
    assert await fed(writer) == [1, 2]
    token = writer.client_connection.last_response_headers["etag"]
    assert [row async for row in reader.query_items_change_feed(continuation=token)] == []
    token = reader.client_connection.last_response_headers["etag"]
    world.replicas.release()
    assert [row async for row in reader.query_items_change_feed(continuation=token)] == []


async def test_the_log_shows_the_lsn_that_a_read_saw(world):
    world = world()
    writer, reader = await world.container(), await world.container()
    await writer.create_item({"id": "a", "pk": "x", "n": 1})
    world.replicas.hold()
    await writer.replace_item("a", {"id": "a", "pk": "x", "n": 2})
    world.emulator.clear_requests()
    await read(reader)
    await read(writer)
    await write(writer)
    records = [r for r in world.emulator.requests if r.resource == "docs"]
    assert [(r.served_lsn, r.stale) for r in records] == [(1, True), (2, False), (None, False)]


async def test_history_that_nobody_can_see_is_dropped(world, opened):
    ticks = Ticks()
    world = world(Replicas(lag=5, time=ticks))
    writer, reader = await world.container(), await world.container()
    for n in range(600):
        ticks.now = float(n)
        await writer.upsert_item({"id": "a", "pk": "x", "n": n})
        assert await read(reader) == (n - 5 if n >= 5 else None)
    for table in ("history_1", "commits"):
        assert opened[0].execute(f"SELECT count(*) FROM {table}").fetchone()[0] < 300


async def test_a_container_that_is_made_again_starts_empty(world):
    world = world()
    writer, reader = await world.container(), await world.container()
    await writer.create_item({"id": "a", "pk": "x", "n": 1})
    database = writer.client_connection
    await database.DeleteContainer("dbs/db/colls/c")
    again = await world.container()
    world.replicas.hold()
    await again.create_item({"id": "a", "pk": "x", "n": 2})
    assert await read(await world.container()) is None
    assert await read(again) == 2
    assert reader is not again


async def test_a_file_keeps_no_history_and_opens_up_to_date(world, tmp_path):
    path = tmp_path / "data.db"
    first = world(path=path)
    writer = await first.container()
    first.replicas.hold()
    await writer.create_item({"id": "a", "pk": "x", "n": 1})
    assert await read(await first.container()) is None
    first.emulator.close()
    second = world(Replicas(lag=math.inf), path=path)
    assert await read(await second.container()) == 1


async def test_what_another_process_writes_is_seen_at_once(world, tmp_path):
    path = tmp_path / "data.db"
    mine, yours = world(path=path), world(path=path)
    writer, reader = await yours.container(), await mine.container()
    await writer.create_item({"id": "a", "pk": "x", "n": 1})
    mine.replicas.hold()
    await reader.upsert_item({"id": "b", "pk": "x", "n": 5})
    await writer.replace_item("a", {"id": "a", "pk": "x", "n": 2})
    assert await queried(await mine.container()) == [2, 5]


@pytest.mark.parametrize("lag", [-1, (2, 1), math.nan, {"events": -1}])
def test_a_lag_that_makes_no_sense_is_refused(lag):
    with pytest.raises(ValueError, match="lag"):
        Replicas(lag=lag)


def test_replicas_belong_to_one_emulator():
    replicas = Replicas()
    with Emulator(replicas=replicas), pytest.raises(ValueError, match="another emulator"):
        Emulator(replicas=replicas)


def test_replicas_without_an_emulator_cannot_be_held():
    with pytest.raises(ValueError, match="no emulator"):
        Replicas().hold()
