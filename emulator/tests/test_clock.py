"""The server's clock: timestamps, expiry and the Date of every answer follow it, wherever it is
set."""

from email.utils import parsedate_to_datetime

import pytest
from azure.cosmos import exceptions


def date_of(headers):
    return int(parsedate_to_datetime(headers["date"]).timestamp())


async def test_every_answer_has_the_date_of_the_server(container, emulator):
    for seconds in (0, 86_400, -172_800):
        emulator.clock.advance(seconds)
        before = emulator.clock.now()
        item = await container.upsert_item({"id": "a", "pk": "x"})
        with pytest.raises(exceptions.CosmosResourceNotFoundError) as missing:
            await container.read_item("b", "x")
        with pytest.raises(exceptions.CosmosResourceExistsError) as conflict:
            await container.create_item({"id": "a", "pk": "x"})
        after = emulator.clock.now()
        assert before <= item["_ts"] <= after
        for headers in (item.get_response_headers(), missing.value.headers, conflict.value.headers):
            assert before <= date_of(headers) <= after


async def test_the_clock_can_be_set_ahead_and_back(new_container, emulator):
    container = await new_container(default_ttl=60)
    emulator.clock.set_offset(600)
    await container.create_item({"id": "a", "pk": "x"})
    emulator.clock.set_offset(0)
    assert await container.read_item("a", "x")
    emulator.clock.set_offset(661)
    with pytest.raises(exceptions.CosmosResourceNotFoundError):
        await container.read_item("a", "x")
    assert emulator.clock.offset == 661
