"""Containers that JSON lacks, as an object with one key, the tag, and the contents.

{"$tuple": [1, 2]}   {"$set": [1, 2]}   {"$deque": [[1, 2], 5]}   {"$ordereddict": [["a", 1]]}
"""

from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Callable
from typing import Any

from cosmosservice.data_converters.text import to_json

Child = Callable[[Any], Any]

# The default factories that can be stored. Other functions cannot.
_FACTORIES: dict[str | None, Callable[[], Any] | None] = {
    None: None,
    **{cls.__name__: cls for cls in (list, dict, set, int, float, str, bool, tuple)},
}


def _items(value: Any, child: Child) -> list[Any]:
    return [child(inner) for inner in value]


def _sorted(value: Any, child: Child) -> list[Any]:
    # So that an equal value gives an equal document.
    return sorted(_items(value, child), key=to_json)


def _pairs(value: Any, child: Child) -> list[Any]:
    return [[child(key), child(inner)] for key, inner in value.items()]


def _encode_defaultdict(value: defaultdict[Any, Any], child: Child) -> Any:
    for name, factory in _FACTORIES.items():
        if factory is value.default_factory:
            return {"$defaultdict": [name, _pairs(value, child)]}
    return child(dict(value))


CONTAINERS: dict[type, Callable[[Any, Child], Any]] = {
    tuple: lambda value, child: {"$tuple": _items(value, child)},
    set: lambda value, child: {"$set": _sorted(value, child)},
    frozenset: lambda value, child: {"$frozenset": _sorted(value, child)},
    deque: lambda value, child: {"$deque": [_items(value, child), value.maxlen]},
    OrderedDict: lambda value, child: {"$ordereddict": _pairs(value, child)},
    Counter: lambda value, child: {"$counter": _pairs(value, child)},
    defaultdict: _encode_defaultdict,
}


def _filled(items: Any) -> list[Any]:
    if type(items) is not list:
        raise TypeError("not a list")
    return items


def _build_defaultdict(body: Any) -> defaultdict[Any, Any]:
    name, pairs = _filled(body)
    return defaultdict(_FACTORIES[name], _filled(pairs))


def _build_deque(body: Any) -> deque[Any]:
    items, maxlen = _filled(body)
    return deque(_filled(items), maxlen)


# Each takes the decoded contents, and raises if they do not fit.
BUILDERS: dict[str, Callable[[Any], Any]] = {
    "$tuple": lambda body: tuple(_filled(body)),
    "$set": lambda body: set(_filled(body)),
    "$frozenset": lambda body: frozenset(_filled(body)),
    "$deque": _build_deque,
    "$ordereddict": lambda body: OrderedDict(_filled(body)),
    "$counter": lambda body: Counter(dict(_filled(body))),
    "$defaultdict": _build_defaultdict,
}
