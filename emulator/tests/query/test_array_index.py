"""ARRAY_CONTAINS within a partition uses an index, as in Azure, and stays correct."""

import json

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ..raw import create, make_container, send

KEY = '["x"]'
QUERY = "SELECT c.id FROM c WHERE ARRAY_CONTAINS(c.tags, @a) OR ARRAY_CONTAINS(c.tags, @b)"


def ask(emulator, *values, key=KEY):
    parameters = [{"name": f"@{n}", "value": v} for n, v in zip("ab", values, strict=True)]
    status, answer = send(
        emulator,
        "POST",
        "/dbs/db/colls/c/docs",
        {"query": QUERY, "parameters": parameters},
        x_ms_documentdb_isquery="True",
        x_ms_documentdb_partitionkey=key,
    )
    assert status == 200, answer
    return sorted(row["id"] for row in answer["Documents"])


def charged(emulator):
    return emulator.requests[-1].charge


def put(emulator, body, key=KEY):
    send(
        emulator,
        "POST",
        "/dbs/db/colls/c/docs",
        body,
        x_ms_documentdb_partitionkey=key,
        x_ms_documentdb_is_upsert="True",
    )


def test_a_query_reads_the_items_that_match_and_no_others(emulator):
    make_container(emulator)
    for number in range(500):
        create(emulator, {"id": f"{number}", "pk": "x", "tags": ["all", f"t{number}"]})
    assert ask(emulator, "t7", "t9") == ["7", "9"]
    assert charged(emulator) < 3
    create(emulator, {"id": "new", "pk": "x", "tags": ["t7"]})
    put(emulator, {"id": "9", "pk": "x", "tags": ["none"]})
    assert ask(emulator, "t7", "t9") == ["7", "new"]
    send(emulator, "DELETE", "/dbs/db/colls/c/docs/7", x_ms_documentdb_partitionkey=KEY)
    assert ask(emulator, "t7", "t9") == ["new"]


def test_partitions_are_kept_apart(emulator):
    make_container(emulator)
    create(emulator, {"id": "1", "pk": "x", "tags": ["t"]})
    create(emulator, {"id": "2", "pk": "y", "tags": ["t"]})
    assert ask(emulator, "t", "u") == ["1"]
    assert ask(emulator, "t", "u", key='["y"]') == ["2"]


def test_a_container_that_is_made_again_knows_nothing_of_the_old_one(emulator):
    for tags in (["t"], ["u"]):
        make_container(emulator)
        create(emulator, {"id": "1", "pk": "x", "tags": tags})
        assert ask(emulator, "t", "t") == (["1"] if tags == ["t"] else [])
        send(emulator, "DELETE", "/dbs/db/colls/c")
        send(emulator, "DELETE", "/dbs/db")


VALUES = st.one_of(
    st.none(),
    st.integers(0, 2),
    st.booleans(),
    st.sampled_from(["", "a", "1", "true", "null", "\0", "a\0b", "é", "\U0001f600"]),
)


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    documents=st.lists(
        st.one_of(VALUES, st.lists(st.one_of(VALUES, st.lists(VALUES, max_size=1)), max_size=3)),
        max_size=6,
    ),
    wanted=st.tuples(VALUES, VALUES),
)
def test_it_finds_what_a_look_at_each_item_would_find(emulator, documents, wanted):
    make_container(emulator)
    for number, tags in enumerate(documents):
        create(emulator, {"id": f"{number}", "pk": "x", "tags": tags})
    kinds = [json.dumps(value) for value in wanted]
    expected = [
        f"{number}"
        for number, tags in enumerate(documents)
        if isinstance(tags, list) and any(json.dumps(tag) in kinds for tag in tags)
    ]
    assert ask(emulator, *wanted) == expected
    send(emulator, "DELETE", "/dbs/db")


def test_a_policy_that_names_the_array_makes_the_index_with_the_container(opened, emulator):
    policy = {"includedPaths": [{"path": "/tags/[]/?"}], "excludedPaths": [{"path": "/*"}]}
    make_container(emulator, indexingPolicy=policy)
    create(emulator, {"id": "1", "pk": "x", "tags": ["t", "u"]})
    statements = []
    opened[0].set_trace_callback(statements.append)
    assert ask(emulator, "t", "v") == ["1"]
    assert not [each for each in statements if each.startswith("CREATE TABLE")]
