"""Session tokens: the SDK learns them, sends them back, and reads its own writes."""

import pytest

pytestmark = pytest.mark.parametrize("way", ["in process"], indirect=True)


def sent_token(captured):
    def hook(request):
        captured.append(request.http_request.headers.get("x-ms-session-token"))

    return hook


async def test_a_write_gives_a_token_that_the_next_read_sends(container):
    item = await container.create_item({"id": "a", "pk": "x"})
    token = item.get_response_headers()["x-ms-session-token"]
    sent = []
    await container.read_item("a", "x", raw_request_hook=sent_token(sent))
    assert sent == [token]


async def test_tokens_grow_with_every_write(container):
    seen = []
    for n in range(3):
        item = await container.upsert_item({"id": "a", "pk": "x", "n": n})
        seen.append(int(item.get_response_headers()["x-ms-session-token"].partition("#")[2]))
    assert seen == sorted(set(seen))


async def test_each_range_has_a_token_of_its_own(new_container):
    container = await new_container(offer_throughput=12_000)
    for n in range(20):
        await container.create_item({"id": str(n), "pk": f"key {n}"})
    ranges = [found async for found in container.read_feed_ranges()]
    tokens = []
    for found in ranges:
        pages = container.query_items(
            "SELECT * FROM c", feed_range=found, raw_request_hook=sent_token(tokens)
        )
        assert [row async for row in pages]
    assert sorted(token.partition(":")[0] for token in tokens) == ["1", "2"]
