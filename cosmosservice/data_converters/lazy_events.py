"""Events that stay JSON text until they are used.

A session of thousands of events is returned for every turn, and most of its events are never
used. So `lazy_event` makes an Event from stored text without parsing it. The first access decodes
the text. From then on the object is an ordinary Event, including its class.

How: pydantic keeps the fields of a model in the instance's `__dict__`, so access to a missing field
calls `__getattr__`. Everything that bypasses it (operators, pydantic's own access to `__dict__`,
protocols that look at the class) is overridden to decode first and then to use the Event. An event
of a registered subclass is a lazy object of that subclass.

Whoever reads some events of a session one after the other, as an LlmAgent does for its prompt, will
probably read them all. So from then on those that follow are decoded in blocks, each twice as large
as the one before, with the garbage collector held off.
"""

import contextlib
import json
import threading
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from google.adk.events.event import Event
from pydantic import BaseModel, ConfigDict

from cosmosservice.data_converters import fields_to_event, from_json
from cosmosservice.data_converters.classes import event_subclasses
from cosmosservice.data_converters.collector import collector_held_off
from cosmosservice.data_converters.tags import CLASS

_RAW, _AHEAD, _AT = "_raw", "_ahead", "_at"
_INTERNAL = {_RAW, _AHEAD, _AT}
_WITHOUT_DECODING = _INTERNAL | {"id", "timestamp"}

_READ_ONE_BY_ONE = 16  # events in a row, before blocks are decoded

# The instance's own dict, beneath the property of the lazy class.
_get_dict: Callable[[Any], dict[str, Any]] = BaseModel.__dict__["__dict__"].__get__
_set_dict: Callable[[Any, dict[str, Any]], None] = BaseModel.__dict__["__dict__"].__set__
# What else pydantic stores in a model.
_SLOTS = [
    (slot.__get__, slot.__set__)
    for slot in (
        BaseModel.__dict__["__pydantic_fields_set__"],
        BaseModel.__dict__["__pydantic_extra__"],
        BaseModel.__dict__["__pydantic_private__"],
    )
]
_new: Callable[[type[Event]], Event] = object.__new__

# Reentrant: the garbage collector may run any code at any point.
_becoming = threading.RLock()

_NAMED = f'{{"{CLASS}":"'.encode()  # how the text of a subclass begins
_TAG = f'"{CLASS}":'.encode()
_DECODED_FIRST = (
    *("__repr__", "__str__", "__iter__", "__setattr__", "__delattr__"),
    *("__copy__", "__replace__", "__reduce__", "__reduce_ex__", "__getstate__"),
    *("__repr_args__", "__repr_name__", "__pretty__", "__rich_repr__"),
    *("model_copy", "model_dump", "model_dump_json", "copy", "dict", "json"),
)


class ReadAhead:
    """Decodes the events of one session, ahead of a caller that reads them in a row.

    It has their texts and not the events, so that there is no cycle of references. Several threads
    may use it: at worst they decode the same events twice.
    """

    __slots__ = ("_decoded", "_last", "_row", "_step", "_texts")

    def __init__(self, texts: Sequence[bytes]) -> None:
        self._texts = texts
        self._decoded: dict[int, Event] = {}
        self._last, self._step = -1, 1  # the event that was read last, and the direction
        self._row = 0  # how many were read in this direction

    def read(self, at: int) -> Event:
        step = at - self._last
        self._row = self._row + 1 if step == self._step else 1
        if step in (1, -1):
            self._step = step
        self._last = at
        found = self._decoded.pop(at, None)
        if found is not None:
            return found
        if self._row > _READ_ONE_BY_ONE:
            self._decode_ahead(at)
        return fields_to_event(from_json(self._texts[at]))

    def _decode_ahead(self, at: int) -> None:
        end = min(max(at + self._step * self._row, -1), len(self._texts))
        with collector_held_off():
            for following in range(at + self._step, end, self._step):
                self._decoded[following] = fields_to_event(from_json(self._texts[following]))


def lazy_events(texts: Sequence[bytes], ids: Iterable[str], times: Iterable[float]) -> list[Event]:
    """The events of a session."""
    given = zip(texts, ids, times, strict=True)
    if len(texts) <= _READ_ONE_BY_ONE:
        return [lazy_event(*each) for each in given]
    ahead, known = ReadAhead(texts), None if event_subclasses else _lazy_class(Event)
    with collector_held_off():
        return [
            _lazy(
                known or _lazy_class(_class_of(raw)),
                {_RAW: raw, _AHEAD: ahead, _AT: at},
                event_id,
                timestamp,
            )
            for at, (raw, event_id, timestamp) in enumerate(given)
        ]


def lazy_event(raw: bytes, event_id: str, timestamp: float) -> Event:
    """The event of a JSON document. Its id and timestamp can be read without decoding it."""
    cls = _class_of(raw) if event_subclasses else Event
    return _lazy(_lazy_class(cls), {_RAW: raw}, event_id, timestamp)


def _lazy(cls: type[Event], fields: dict[str, Any], event_id: str, timestamp: float) -> Event:
    event = _new(cls)
    # Tagged values are left out, so that access to one decodes the event.
    if event_id[:1] != "{":
        fields["id"] = event_id
    if type(timestamp) is float:
        fields["timestamp"] = timestamp
    _set_dict(event, fields)
    return event


def _class_of(raw: bytes) -> type[Event]:
    """The class that the text names, if the application has registered it."""
    if _TAG not in raw:
        return Event
    name: Any = None
    if raw.startswith(_NAMED):
        name = raw[len(_NAMED) : raw.index(b'"', len(_NAMED))].decode()
    else:  # a store may return the fields in any order
        with contextlib.suppress(ValueError):
            name = json.loads(raw).get(CLASS)
    return event_subclasses.get(name, Event) if isinstance(name, str) else Event


def _decode(event: Event) -> None:
    """Turns a lazy event into an ordinary one. Any number of threads may call it at once."""
    fields = _get_dict(event)
    raw, ahead = fields.get(_RAW), fields.get(_AHEAD)
    decoded: Event | None = None
    if raw is not None:
        decoded = fields_to_event(from_json(raw)) if ahead is None else ahead.read(fields[_AT])
    with _becoming:
        # Only the first thread may write: afterwards the event may have been changed.
        if decoded is not None and type(event) in _lazy_classes.values():
            for get, set_ in _SLOTS:
                set_(event, get(decoded))
            # What `object.__setattr__` has set, beneath the class, stays.
            present = {k: v for k, v in _get_dict(event).items() if k not in _INTERNAL}
            _set_dict(event, _get_dict(decoded) | present)
            object.__setattr__(event, "__class__", type(decoded))


def _decoding(name: str) -> Callable[..., Any]:
    def method(self: Event, *args: Any, **kwargs: Any) -> Any:
        _decode(self)
        return getattr(self, name)(*args, **kwargs)

    method.__name__ = name
    return method


_lazy_classes: dict[type[Event], type[Event]] = {}


def _lazy_class(cls: type[Event]) -> type[Event]:
    """The lazy class for a class of events, created once."""
    found = _lazy_classes.get(cls)
    if found is None:
        with _becoming:
            found = _lazy_classes.get(cls) or _lazy_classes.setdefault(cls, _made_lazy(cls))
    return found


def _made_lazy(cls: type[Event]) -> type[Event]:
    class LazyEvent(cls):  # type: ignore[misc, valid-type]
        model_config = ConfigDict(defer_build=True)  # the validator of `cls` serves it too

        @property
        def __dict__(self) -> dict[str, Any]:  # type: ignore[override]
            _decode(self)
            return self.__dict__

        def __getattr__(self, name: str) -> Any:
            _decode(self)
            return getattr(self, name)

        def __eq__(self, other: object) -> bool:
            _decode(self)
            # With the operator, so that another lazy event is decoded as well.
            return bool(self == other)

        def __deepcopy__(self, memo: dict[int, Any] | None = None) -> Event:
            """Returns another lazy event, so that copying a session decodes nothing."""
            fields = _get_dict(self)
            if _RAW in fields and fields.keys() <= _WITHOUT_DECODING:
                copy = _new(type(self))
                _set_dict(copy, fields.copy())
                return copy
            _decode(self)  # waits for a thread that is about to finish it
            made: Event = self.__deepcopy__(memo)
            return made

    for name in _DECODED_FIRST:
        if hasattr(cls, name):
            type.__setattr__(LazyEvent, name, _decoding(name))
    for name in ("__pydantic_serializer__", "__pydantic_validator__"):
        type.__setattr__(LazyEvent, name, getattr(cls, name))
    return LazyEvent
