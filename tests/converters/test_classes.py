"""Objects of the application's registered classes are read back as such."""

import copy
import dataclasses
import enum
import logging
import pickle
import sys
import threading
from datetime import date
from decimal import Decimal
from typing import Any, NamedTuple

import pytest
from google.adk.events.event import Event
from google.adk.events.event_actions import EventActions
from google.adk.sessions.session import Session
from google.genai import types
from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    PrivateAttr,
    RootModel,
    SecretStr,
    field_serializer,
    field_validator,
)

import cosmosservice
from cosmosservice.data_converters import (
    decode_state,
    decode_value,
    encode_state,
    encode_value,
    event_to_fields,
    fields_to_event,
    from_json,
    to_json,
)
from cosmosservice.data_converters.lazy_events import lazy_event
from tests.converters.support import through_the_store
from tests.support.registry import nothing_registered


@pytest.fixture(autouse=True)
def registry():
    with nothing_registered():
        yield


class Size(enum.Enum):
    SMALL = 1
    LARGE = "large"


class Rights(enum.IntFlag):
    READ = 1
    WRITE = 2


class Key(enum.StrEnum):
    CART = "cart"


class Line(BaseModel):
    name: str
    photo: bytes = b""
    weight: float = 0.0


class Order(BaseModel):
    model_config = ConfigDict(extra="allow")

    lines: list[Line]
    size: Size = Size.SMALL
    due: date | None = None
    price: Decimal = Decimal(0)
    tags: set[str] = Field(default_factory=set, alias="orderTags")
    anything: Any = None
    _seen: int = PrivateAttr(default=0)


class Tags(RootModel[list[str]]):
    pass


class Checked(BaseModel):
    """Has a side effect when an object is made."""

    text: str
    _lock: Any = PrivateAttr(default=None)

    def model_post_init(self, context: Any) -> None:
        self._lock = threading.Lock()


class Masked(BaseModel):
    """Defines itself how it is written."""

    token: str
    pin: SecretStr = SecretStr("1234")
    note: str = ""
    scratch: str = Field(default="", exclude=True)

    @field_serializer("token")
    def mask(self, token: str) -> str:
        return "***"


class Hashed(BaseModel):
    digest: str

    @field_validator("digest")
    @classmethod
    def hash(cls, value: str) -> str:
        return f"hash({value})"


@dataclasses.dataclass
class Pair:
    left: Size
    right: Any = None


@dataclasses.dataclass(frozen=True, slots=True)
class Frozen:
    order: Order
    later: list[int] = dataclasses.field(default_factory=list)


@dataclasses.dataclass
class Summed:
    values: list[int]
    total: int = dataclasses.field(init=False)

    def __post_init__(self) -> None:
        self.total = sum(self.values)


class Place(NamedTuple):
    row: int
    size: Size = Size.SMALL


class NodeEvent(Event):
    node: str = ""
    order: Order | None = None
    seq: int = 0  # the document uses this name for another purpose
    _hops: int = PrivateAttr(default=0)


def order(**fields: Any) -> Order:
    made = Order(
        lines=[Line(name="tea", photo=b"\xff", weight=1.0)],
        size=Size.LARGE,
        due=date(2025, 1, 27),
        price=Decimal("1.10"),
        orderTags={"a"},
        **fields,
    )
    made._seen = 3
    return made


def again(value: Any) -> Any:
    return decode_value(through_the_store(encode_value(value)))


ALL = (Order, Tags, Checked, Masked, Hashed, Pair, Frozen, Summed, Place, Rights)
OBJECTS = {
    "model": order(anything=[Line(name="x"), Size.SMALL]),
    "model with more fields": order(note="quick", **{"$class": 1, "other key": (1, 2)}),
    "model with assigned fields": Order.model_construct(lines=[Line(name="a")], price="free"),
    "model of one value": Tags(["a", "b"]),
    "validated once only": Hashed(digest="x"),
    "enumeration": Size.LARGE,
    "flags": Rights.READ | Rights.WRITE,
    "dataclass": Pair(Size.LARGE, {"inner": Pair(Size.SMALL, (1.0, Place(1)))}),
    "frozen dataclass": Frozen(order(), [1, 2]),
    "dataclass that computes": Summed([1, 2]),
    "named tuple": Place(2, Size.LARGE),
    "keys": {Size.LARGE: 1, Place(1): 2},
    "inside others": [{"a": (order(), {Size.SMALL})}],
}


@pytest.mark.parametrize("value", OBJECTS.values(), ids=OBJECTS)
def test_objects_of_registered_classes_come_back_equal(value, caplog):
    cosmosservice.register_classes(*ALL)
    back = again(value)
    assert back == value
    assert type(back) is type(value)
    assert repr(back) == repr(value)
    assert again(back) == value
    assert not caplog.records


DATA = {
    "model": (
        order(anything=Size.SMALL),
        {
            "lines": [{"name": "tea", "photo": b"\xff", "weight": 1.0}],
            "size": "large",
            "due": date(2025, 1, 27),
            "price": Decimal("1.10"),
            "tags": {"a"},
            "anything": 1,
        },
    ),
    "model of one value": (Tags(["a"]), ["a"]),
    "enumeration": (Size.LARGE, "large"),
    "dataclass": (Pair(Size.SMALL, b"x"), {"left": 1, "right": b"x"}),
    "named tuple": (Place(2), (2, 1)),
    "what is masked stays masked": (
        Masked(token="T0P", note="n", scratch="s"),
        {"token": "***", "pin": "**********", "note": "n"},
    ),
}


@pytest.mark.parametrize(("value", "data"), DATA.values(), ids=DATA)
def test_without_registration_they_are_data_and_nothing_is_lost(value, data, caplog):
    back = again(value)
    assert back == data
    assert type(back) is type(data)
    assert not caplog.records


def test_the_reader_decides_whoever_wrote():
    stored = encode_value(order())
    assert isinstance(decode_value(stored), dict)
    cosmosservice.register_classes(Order)
    assert decode_value(stored) == order()


def test_classes_of_the_fields_are_registered_too():
    cosmosservice.register_classes(Frozen)
    assert again([Line(name="a"), Size.LARGE]) == [Line(name="a"), Size.LARGE]
    assert again(Pair(Size.LARGE)) == {"left": Size.LARGE, "right": None}


def test_a_class_that_sets_itself_up_is_made_anew(caplog):
    cosmosservice.register_classes(Checked)
    back = again(Checked(text="x"))
    assert back.text == "x"
    with back._lock:
        assert back._lock.locked()
    assert not caplog.records


def test_a_class_with_serializers_comes_back_as_they_wrote_it():
    cosmosservice.register_classes(Masked)
    back = again(Masked(token="T0P", note="n", scratch="s"))
    assert type(back) is Masked
    assert (back.token, back.note, back.scratch) == ("***", "n", "")
    assert "T0P" not in str(encode_value(Masked(token="T0P")))


def test_fields_that_are_excluded_are_not_stored():
    class Open(BaseModel):
        name: str
        connection: Any = Field(default=None, exclude=True)

    cosmosservice.register_classes(Open)
    assert again(Open(name="a", connection=len)) == Open(name="a")


def test_a_class_that_has_changed_since_takes_what_fits_or_leaves_the_data():
    name = f"{__name__}.Line"
    cosmosservice.register_classes(Line, Pair, Size)
    assert decode_value({"$class": name, "name": "a", "gone": 1}) == Line(name="a")
    assert decode_value({"$class": name, "weight": 1.5}) == {"weight": 1.5}
    pair = f"{__name__}.Pair"
    assert decode_value({"$class": pair, "left": 1, "gone": 2}) == {"left": 1, "gone": 2}
    assert decode_value({"$class": pair, "right": 1}) == {"right": 1}
    assert decode_value({"$enum": [f"{__name__}.Size", "huge"]}) == "huge"
    assert decode_value({"$class": f"{__name__}.Size", "value": 1}) == {"value": 1}
    assert decode_value({"$enum": [name, 1]}) == 1


@pytest.mark.parametrize("wrong", [dict, int, object(), "shop.Order", print])
def test_what_cannot_be_registered_is_refused(wrong):
    with pytest.raises(TypeError, match="takes pydantic models, dataclasses, enumerations"):
        cosmosservice.register_classes(Order, wrong)
    assert isinstance(again(order()), dict)  # nothing was registered


def test_a_member_of_an_enumeration_is_the_key_that_it_equals():
    state = encode_state({Key.CART: 1})
    assert state == {"cart": 1}
    event = Event(author="a", actions=EventActions(state_delta={Key.CART: 2}))
    delta = event_to_fields(event)["actions"]["state_delta"]
    assert decode_state(delta) == {"cart": 2}
    assert [type(key) for key in decode_state(delta)] == [str]


# Names that an application chose


HOSTILE = [
    "subprocess.Popen",
    "os.system",
    "builtins.eval",
    "builtins.dict",
    "antigravity.Flight",
    "tests.converters.not_imported.Model",
    "tests.converters.not_imported",
    "cosmosservice.cli.commands.main",
    "google.adk.events.event.BaseModel",
    "google.adk.events.event.__builtins__",
    "google.adk.events.event.logging",
    "google.genai.types.sys",
    "google.genai.types.Part.__init__",
    "google.genai.types",
    "google.adk.tools.agent_tool.AgentTool",
    "pydantic.BaseModel",
    "__main__.Order",
    f"{__name__}.Line",
    "..",
    "",
    "\x00",
    "a" * 10_000,
    None,
    5,
    ["os", "system"],
    {"$class": "os.system"},
]


@pytest.mark.parametrize("name", HOSTILE, ids=lambda name: repr(name)[:40])
def test_a_name_in_a_document_imports_and_runs_nothing(name):
    sys.modules.pop("tests.converters.not_imported", None)
    decode_value({"$class": "google.genai.types.Part"})  # imports the trusted modules
    before = set(sys.modules)
    fields = {"args": "true", "name": "x"}
    assert decode_value({"$class": name, **fields}) == fields
    assert decode_value({"$enum": [name, "red"]}) == "red"
    assert decode_value({"$root": [name, "red"]}) == "red"
    assert decode_value({"$namedtuple": [name, [1]]}) == (1,)
    document = {"$class": name, "event_id": "e", "timestamp": 1.5, "author": "a", **fields}
    assert type(fields_to_event(document)) is Event
    assert type(copy.copy(lazy_event(to_json(document), "e", 1.5))) is Event
    assert set(sys.modules) == before


def test_a_zone_in_a_document_imports_nothing():
    before = set(sys.modules)
    for zone in (
        "os.path/x",
        "../../etc/passwd",
        "/etc/passwd",
        "tzdata.zoneinfo",
        "a\x00",
        "x" * 99,
    ):
        assert decode_value({"$zone": zone}) == zone
        moment = {"$datetime": ["2025-01-01T00:00:00+00:00", zone, 0]}
        assert decode_value(moment).utcoffset().total_seconds() == 0
    assert set(sys.modules) == before


# Events


def node_event(**fields: Any) -> NodeEvent:
    made = NodeEvent(
        id="e1",
        timestamp=12.5,
        author="agent",
        content=types.Content(role="model", parts=[types.Part(text="hi")]),
        actions=EventActions(state_delta={"a": (1, None)}),
        node="router",
        order=order(),
        seq=7,
        **fields,
    )
    made._hops = 2
    return made


def stored(event: Event) -> dict[str, Any]:
    fields = through_the_store(event_to_fields(event))
    return {"id": "document", "seq": 99, **fields}


def test_an_event_of_a_registered_subclass_comes_back_equal():
    cosmosservice.register_classes(NodeEvent)
    back = fields_to_event(stored(node_event()))
    assert back == node_event()
    assert type(back) is NodeEvent
    assert (back.node, back.order, back.seq, back._hops) == ("router", order(), 7, 2)


def test_without_registration_it_is_an_event_and_its_own_fields_stay_stored(caplog):
    document = stored(node_event())
    back = fields_to_event(document)
    assert type(back) is Event
    ordinary = node_event().model_dump(include=set(Event.model_fields))
    assert back == Event.model_validate(ordinary)
    assert "node" not in back.model_dump()
    assert "router" not in repr(back) + back.model_dump_json() + str(list(back))
    for twin in (back, copy.deepcopy(back), back.model_copy(), pickle.loads(pickle.dumps(back))):
        rewritten = event_to_fields(twin)
        assert {**rewritten, "id": "document", "seq": 99} == document
    cosmosservice.register_classes(NodeEvent)
    assert fields_to_event(rewritten) == node_event()
    assert not caplog.records


def test_a_subclass_that_sets_itself_up_is_made_anew(caplog):
    class Timed(Event):
        started: float = 0.0
        _lock: Any = PrivateAttr(default=None)

        def model_post_init(self, context: Any) -> None:
            super().model_post_init(context)
            self._lock = threading.Lock()

    cosmosservice.register_classes(Timed)
    back = fields_to_event(stored(Timed(author="a", id="e", timestamp=-3.0, started=1.0)))
    assert type(back) is Timed
    assert (back.id, back.timestamp, back.started) == ("e", -3.0, 1.0)
    assert back._lock.acquire(blocking=False)
    assert not caplog.records

    class Call(types.FunctionCall):
        _lock: Any = PrivateAttr(default=None)

        def model_post_init(self, context: Any) -> None:
            self._lock = threading.Lock()

    cosmosservice.register_classes(Call)
    call = again(Call(name="f", args={"a": (1,)}))
    assert (type(call), call.name, call.args) == (Call, "f", {"a": (1,)})
    assert call._lock.acquire(blocking=False)
    assert not caplog.records


def test_a_document_that_does_not_fit_the_subclass_gives_an_event():
    cosmosservice.register_classes(NodeEvent)
    document = stored(node_event())
    document["$class"] = f"{__name__}.Line"
    assert type(fields_to_event(document)) is Event


@pytest.mark.parametrize("field", sorted({"output", "custom_metadata"} & set(Event.model_fields)))
def test_a_model_in_an_event_comes_back(field):
    event = Event(author="a", **{field: {"order": order()}})
    assert isinstance(getattr(fields_to_event(stored(event)), field)["order"], dict)
    cosmosservice.register_classes(Order)
    back = fields_to_event(stored(event))
    assert back == event
    assert type(getattr(back, field)["order"]) is Order


def lazy(document: dict[str, Any] | None = None) -> Event:
    return lazy_event(to_json(document or event_to_fields(node_event())), "e1", 12.5)


USES = {
    "field": lambda e: (e.node, e.order, e.content),
    "private": lambda e: e._hops,
    "missing": lambda e: hasattr(e, "nothing"),
    "repr": repr,
    "vars": vars,
    "copy": copy.copy,
    "deepcopy": copy.deepcopy,
    "model_copy": lambda e: e.model_copy(update={"node": "b"}),
    "pickle": lambda e: pickle.loads(pickle.dumps(e)),
    "model_dump": lambda e: e.model_dump(),
    "model_dump_json": lambda e: e.model_dump_json(exclude={"order"}),
    "validate": NodeEvent.model_validate,
    "document": event_to_fields,
    "assignment": lambda e: (setattr(e, "node", "b"), e)[1],
    "session": lambda e: Session(id="s", app_name="a", user_id="u", events=[e]).model_dump(),
}


@pytest.mark.parametrize("use", USES.values(), ids=USES)
def test_a_lazy_event_of_a_subclass_is_like_an_ordinary_one(use):
    cosmosservice.register_classes(NodeEvent)
    assert use(lazy()) == use(fields_to_event(event_to_fields(node_event())))


def test_a_lazy_event_of_a_subclass_is_one_before_and_after_it_is_read():
    cosmosservice.register_classes(NodeEvent)
    event = lazy()
    session = Session(id="s", app_name="a", user_id="u", events=[event])
    assert isinstance(session.events[0], NodeEvent)
    assert (event.id, event.timestamp) == ("e1", 12.5)
    assert type(event) is not NodeEvent  # nobody has looked into it
    assert event == node_event()
    assert node_event() == lazy()
    assert type(event) is NodeEvent
    reordered = dict(reversed(event_to_fields(node_event()).items()))
    assert isinstance(lazy(reordered), NodeEvent)
    assert not isinstance(lazy(event_to_fields(Event(author="a"))), NodeEvent)


def test_a_lazy_event_of_a_subclass_that_is_registered_later_becomes_one(caplog):
    event, other = lazy(), lazy()
    assert type(copy.copy(other)) is Event
    cosmosservice.register_classes(NodeEvent)
    assert event.author == "agent"
    assert type(event) is NodeEvent
    with caplog.at_level(logging.DEBUG):
        assert from_json(to_json(event_to_fields(event))) == from_json(
            to_json(event_to_fields(other))
        )
