"""Throughput that is enforced: each partition its share, 429 beyond it, in virtual time."""

import pytest
from azure.cosmos import CosmosClient, PartitionKey, ThroughputProperties
from azure.cosmos.exceptions import CosmosHttpResponseError

from cosmos_emulator import Emulator
from cosmos_emulator.throughput import SCALED_HEADER

from .raw import send, signed


@pytest.fixture
def account():
    """Makes an emulator that enforces throughput on a clock that stands still, and a client."""
    opened = []

    def make(shared=None, **options):
        emulator = Emulator(enforce_throughput=True, **options)
        emulator.clock.freeze()
        client = CosmosClient(
            emulator.endpoint,
            emulator.key,
            transport=emulator.transport(),
            retry_throttle_total=-1,  # the SDK takes 0 for its default, 9
        )
        opened.extend([client, emulator])
        return emulator, client.create_database("db", offer_throughput=shared)

    yield make
    for each in opened:
        each.__exit__(None, None, None)


def make_container(database, name="c", **options):
    return database.create_container(name, partition_key=PartitionKey("/pk"), **options)


def read(emulator, key, container):
    """Hand-made: the SDK would take most of the time of these tests."""
    headers = {"x_ms_documentdb_partitionkey": f'["{key}"]'}
    path = f"/dbs/db/colls/{container}/docs/a"
    return emulator.exchange(signed(emulator.key, "GET", path, **headers))


def use(emulator, units, key="x", container="c"):
    """Reads until this many request units were used, or a refusal. Returns what was used."""
    used = 0.0
    while used < units and (answer := read(emulator, key, container)).status == 200:
        used += answer.charge
    return used


def refused(container, key="x"):
    with pytest.raises(CosmosHttpResponseError) as info:
        container.read_item("a", key)
    return info.value


def with_item(emulator, container, *keys):
    for key in keys or ["x"]:
        container.create_item({"id": "a", "pk": key})
    emulator.clock.advance(1)
    return container


def test_a_container_serves_its_throughput_in_a_second_and_refuses_what_is_beyond(account):
    emulator, database = account()
    with_item(emulator, make_container(database, offer_throughput=400))
    for _ in range(3):
        assert use(emulator, 1000) == pytest.approx(400)
        emulator.clock.advance(1)


def test_a_refusal_says_when_to_come_back_and_changes_nothing(account):
    emulator, database = account()
    container = with_item(emulator, make_container(database))
    use(emulator, 1000)
    with pytest.raises(CosmosHttpResponseError) as info:
        container.create_item({"id": "b", "pk": "x"})
    error = info.value
    assert (error.status_code, error.sub_status) == (429, 3200)
    assert "no changes were made" in error.message
    assert error.headers["x-ms-request-charge"] == "0.38"
    assert "retry-after" not in error.headers
    milliseconds = int(error.headers["x-ms-retry-after-ms"])
    assert 0 < milliseconds <= 1000
    emulator.clock.advance((milliseconds - 2) / 1000)
    assert refused(container)
    emulator.clock.advance(0.002)
    assert [item["id"] for item in container.read_all_items()] == ["a"]


def test_a_request_that_costs_more_than_a_second_is_paid_for_by_the_next_ones(account):
    emulator, database = account()
    container = with_item(emulator, make_container(database))
    batch = [("create", ({"id": str(n), "pk": "x"},)) for n in range(100)]
    container.execute_item_batch(batch, "x")
    (charge,) = [each.charge for each in emulator.requests if each.operation == "batch"]
    assert 400 < charge < 1200
    assert int(refused(container).headers["x-ms-retry-after-ms"]) > 1000 * (charge // 400 - 1)
    emulator.clock.advance(charge // 400)
    assert use(emulator, 10)


def test_each_partition_has_its_share_so_that_a_hot_one_is_refused_alone(account):
    emulator, database = account(partitions=4)
    container = make_container(database, offer_throughput=400)
    keys = [str(n) for n in range(40)]
    for key in keys:
        with_item(emulator, container, key)
    used = [use(emulator, 1000, key) for key in keys]
    assert sum(used) == pytest.approx(400)
    assert sorted(each for each in used if each) == pytest.approx([100] * 4)


def test_a_query_over_all_partitions_is_paid_by_all(account):
    emulator, database = account(partitions=2)
    container = with_item(emulator, make_container(database, offer_throughput=400), "x")

    def queries_without_end():
        while True:
            list(container.query_items("SELECT * FROM c", enable_cross_partition_query=True))

    with pytest.raises(CosmosHttpResponseError, match="429"):
        queries_without_end()
    queries = [record for record in emulator.requests if record.operation == "query"]
    assert 395 < sum(record.charge for record in queries) < 405


def test_more_throughput_applies_at_once(account):
    emulator, database = account()
    container = with_item(emulator, make_container(database))
    assert use(emulator, 1000) == pytest.approx(400)
    container.replace_throughput(1000)
    emulator.clock.advance(1)
    assert use(emulator, 5000) == pytest.approx(1000)


def test_the_containers_of_a_database_share_its_throughput(account):
    emulator, database = account(shared=500)
    first, second = (make_container(database, name) for name in ("first", "second"))
    own = make_container(database, "own", offer_throughput=400)
    for container in (first, second, own):
        with_item(emulator, container)
    assert use(emulator, 300, container="first") == pytest.approx(300)
    assert use(emulator, 1000, container="second") == pytest.approx(200)
    assert refused(first)
    assert use(emulator, 1000, container="own") == pytest.approx(400)


def test_autoscale_serves_its_maximum_and_says_how_far_the_hour_has_scaled(account):
    emulator, database = account()
    offer = ThroughputProperties(auto_scale_max_throughput=1000)
    with_item(emulator, make_container(database, offer_throughput=offer))

    def scaled():
        return int(read(emulator, "x", "c").headers[SCALED_HEADER])

    emulator.clock.advance(3600)
    assert scaled() == 100  # a tenth is the least
    emulator.clock.advance(1)
    use(emulator, 500)
    assert scaled() == 501
    emulator.clock.advance(1)
    assert use(emulator, 3000) == pytest.approx(1000)
    emulator.clock.advance(1)
    assert scaled() == 1000  # for the rest of the hour
    emulator.clock.advance(3600)
    assert scaled() == 100


def test_a_serverless_partition_serves_5000_and_takes_no_throughput(account):
    emulator, database = account(serverless=True)
    with_item(emulator, make_container(database))
    assert use(emulator, 9000) == pytest.approx(5000)
    with pytest.raises(CosmosHttpResponseError, match="not supported for serverless") as info:
        make_container(database, "d", offer_throughput=400)
    assert info.value.status_code == 400
    assert send(emulator, "GET", "/offers")[1]["Offers"] == []


def test_a_split_gives_each_half_its_share(account):
    emulator, database = account()
    with_item(emulator, make_container(database, offer_throughput=1000))
    emulator.split("c")
    assert use(emulator, 2000) == pytest.approx(500)


def test_reading_definitions_and_plans_costs_no_throughput(account):
    emulator, database = account()
    container = with_item(emulator, make_container(database))
    use(emulator, 1000)
    assert container.read()["id"] == "c"
    assert database.read()["id"] == "db"


def test_an_hour_of_load_passes_in_virtual_time(account):
    """One read in each second of an hour is within 400 RU/s; 500 in one of them are not."""
    emulator, database = account()
    with_item(emulator, make_container(database))
    started = emulator.clock.now()
    for second in range(3600):
        if second % 60 == 0:
            assert use(emulator, 1) == pytest.approx(1)
        emulator.clock.advance(1)
    assert use(emulator, 500) == pytest.approx(400)
    assert emulator.clock.now() - started == 3600


def test_without_it_nothing_is_refused():
    with (
        Emulator() as emulator,
        CosmosClient(emulator.endpoint, emulator.key, transport=emulator.transport()) as client,
    ):
        emulator.clock.freeze()
        with_item(emulator, make_container(client.create_database("db")))
        assert use(emulator, 600) == pytest.approx(600)
