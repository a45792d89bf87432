"""State values keep their value and type in every scope."""

from __future__ import annotations

import datetime
import math
import uuid
from decimal import Decimal

import pytest

from tests.support.adk import event, reload
from tests.support.stores import DURABLE

PLAIN = {
    "none": None,
    "true": True,
    "false": False,
    "zero": 0,
    "one": 1,
    "negative": -7,
    "empty_string": "",
    "empty_list": [],
    "empty_dict": {},
    "fraction": 0.1 + 0.2,
    "float_that_is_whole": 1.0,
    "negative_zero": -0.0,
    "tiny": 5e-324,
    "huge": 1.7976931348623157e308,
    "time": 1757296962.409481,
    "above_2_53": 2**53 + 1,
    "above_2_64": -(2**64) - 1,
    "beyond_a_double": 10**400,
    "text": "naïve ☃ 👩‍🚀 \u2028 \x00 \x7f",
    "lone_surrogate": "a\ud800b",
    "nested": {"a": [{"b": [None, True, 1.0, []]}, {}], "": {"$": {"~": {"/": None}}}},
}

RICH = {
    "datetime": datetime.datetime(2026, 11, 16, 2, 30, 0, 123456),
    "datetime_with_zone": datetime.datetime(2026, 11, 16, tzinfo=datetime.UTC),
    "date": datetime.date(2026, 11, 16),
    "decimal": Decimal("1.10"),
    "uuid": uuid.UUID(int=7),
    "bytes": b"\x00\xff",
    "set": {1, 2},
    "tuple": (1, "two", (3.0,)),
    "nested": {"list": [Decimal("0.1"), {"set": {"a"}}], "tuple": ({"b": b"b"},)},
    "like_an_escape": {"$": None, "$dict": [["a", 1]], "$type": "datetime"},
    "numbers_as_keys": {1: "one", 2: {3: None}},
}


def same(left, right) -> bool:
    """Equal in value and in type all the way down: 1, 1.0 and True are three things."""
    if type(left) is not type(right):
        return False
    if isinstance(left, dict):
        return list(left) == list(right) and all(same(left[k], right[k]) for k in left)
    if isinstance(left, list | tuple):
        return len(left) == len(right) and all(map(same, left, right))
    if isinstance(left, float):
        return repr(left) == repr(right)
    return left == right


@pytest.mark.parametrize("prefix", ["", "user:", "app:"])
@pytest.mark.parametrize("values", [PLAIN, RICH], ids=["plain", "rich"])
async def test_values_survive_exactly(service, app, prefix, values):
    created = {f"{prefix}created {name}": value for name, value in values.items()}
    appended = {f"{prefix}appended {name}": value for name, value in values.items()}
    session = await service.create_session(app_name=app, user_id="ann", state=dict(created))
    await service.append_event(session, event("set", delta=dict(appended)))
    stored = await reload(service, session)
    for key, value in (created | appended).items():
        assert same(stored.state[key], value), key
    for key, value in appended.items():
        assert same(stored.events[0].actions.state_delta[key], value), key


@pytest.mark.needs("order")
async def test_keys_stay_in_their_order(service, app):
    value = {"long": 1, "b": {"z": 1, "$": 2}, "a": 3}
    session = await service.create_session(app_name=app, user_id="ann", state={"user:v": value})
    await service.append_event(session, event("set", delta={"v": value}))
    stored = await reload(service, session)
    assert same(stored.state["v"], value)
    assert same(stored.state["user:v"], value)


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf], ids=repr)
async def test_floats_that_json_lacks_survive(service, app, value):
    session = await service.create_session(app_name=app, user_id="ann", state={"user:v": value})
    await service.append_event(session, event("set", delta={"v": [value]}))
    stored = await reload(service, session)
    assert repr(stored.state) == repr({"v": [value], "user:v": value})


async def test_values_may_be_overwritten_by_ones_of_another_kind(service, app):
    session = await service.create_session(app_name=app, user_id="ann", state={"v": "text"})
    for value in (None, {"a": 1}, [], 1.5, {"b": {}}, True, "text"):
        await service.append_event(session, event("set", delta={"v": value}))
        assert same((await reload(service, session)).state, {"v": value})


@pytest.mark.claims(DURABLE)
async def test_what_cannot_be_stored_becomes_its_repr_with_a_warning(service, app, caplog):
    session = await service.create_session(app_name=app, user_id="ann")
    await service.append_event(session, event("set", delta={"f": len, "ok": 1, "user:f": [len]}))
    assert any(record.levelname == "WARNING" for record in caplog.records)
    stored = await reload(service, session)
    assert stored.state["ok"] == 1
    assert isinstance(stored.state["f"], str)
    assert "len" in stored.state["f"]
    assert "len" in stored.state["user:f"][0]
