"""RegexMatch that cannot explode.

Python's matcher tries one way after the other, which takes years for some patterns. It is used
where the pattern and the length of the text bound its work. Otherwise all ways are followed at
once, as RE2 does: the work is at most the length of the text times the size of the pattern.
"""

import importlib
import math
import re
from functools import lru_cache
from typing import Any, Final

from cosmos_emulator.query.errors import QueryError

# The parsed form of a pattern, and its compiler.
_parser: Any = importlib.import_module("re._parser")
_compiler: Any = importlib.import_module("re._compiler")
_ops: Any = importlib.import_module("re._constants")

MOST_WAYS: Final = 2_000_000  # that Python's matcher may have to try
MOST_STATES: Final = 5_000
MOST_STEPS: Final = 10_000_000  # new sets of states, times their size
_MOST_REMEMBERED: Final = 20_000

_FLAGS: Final = {"m": re.MULTILINE, "s": re.DOTALL, "i": re.IGNORECASE, "x": re.VERBOSE}
_ONE: Final = {_ops.LITERAL, _ops.NOT_LITERAL, _ops.ANY, _ops.IN}
_REPEATS: Final = {_ops.MAX_REPEAT, _ops.MIN_REPEAT}


class _Unsupported(Exception):
    """What only a matcher that tries can do: references back, looking around, atomic groups."""


class Regex:
    """A compiled pattern."""

    def __init__(self, pattern: str, flags: re.RegexFlag) -> None:
        self._regex = re.compile(pattern, flags)
        tree = _parser.parse(pattern, flags)
        self._exponent, self._factor = _ways(tree)
        self._tree = tree
        self._all: _AllWays | None = None

    def found_in(self, text: str) -> bool:
        """Whether the pattern matches somewhere in the text."""
        if self._tries(len(text)) <= MOST_WAYS:
            return self._regex.search(text) is not None
        if self._all is None:
            try:
                self._all = _AllWays(self._tree)
            except _Unsupported:
                raise QueryError(
                    "The regular expression could take too long for the text.", code="SC2007"
                ) from None
        return self._all.found_in(text)

    def _tries(self, length: int) -> float:
        if math.isinf(self._exponent):
            return math.inf
        try:
            return float((length + 1) ** (self._exponent + 1) * self._factor)
        except OverflowError:
            return math.inf


@lru_cache(maxsize=256)
def compiled(pattern: str, modifiers: str) -> Regex | None:
    """None if the pattern or its modifiers are not valid."""
    if not set(modifiers) <= _FLAGS.keys():
        return None
    flags = re.NOFLAG
    for modifier in modifiers:
        flags |= _FLAGS[modifier]
    try:
        return Regex(pattern, flags)
    except (re.error, OverflowError, RecursionError):
        return None


def _ways(tree: Any) -> tuple[float, int]:
    """How many ways there are to match n characters: n to the power of the first, times the
    second. A choice that is repeated has no such bound."""
    exponent: float = 0
    factor = 1
    for op, value in tree:
        parts: list[Any] = []
        if op is _ops.BRANCH:
            parts = value[1]
            factor *= len(parts)
        elif op is _ops.SUBPATTERN:
            parts = [value[3]]
        elif op in _REPEATS or op is _ops.POSSESSIVE_REPEAT:
            least, most, inner = value
            inner_exponent, inner_factor = _ways(inner)
            chooses = inner_exponent > 0 or inner_factor > 1
            exponent += math.inf if chooses and most > 1 else inner_exponent
            factor *= inner_factor
            if least != most:
                exponent += 1
        elif op is _ops.ATOMIC_GROUP:
            parts = [value]
        elif op in (_ops.ASSERT, _ops.ASSERT_NOT):
            parts = [value[1]]
        elif op is _ops.GROUPREF_EXISTS:
            parts = [part for part in value[1:] if part is not None]
        elif op is _ops.GROUPREF:
            exponent += 1
        for part in parts:
            more, times = _ways(part)
            exponent += more
            factor *= times
        factor = min(factor, MOST_WAYS + 1)
    return exponent, factor


class _Reading(dict[str, "_Reading"]):
    """The states in which the automaton is after a character; what follows by the next one."""

    __slots__ = ("before", "states", "ways")

    def __init__(self, ways: "_AllWays", states: frozenset[int], before: str) -> None:
        self.ways = ways
        self.states = states
        self.before = before

    def __missing__(self, character: str) -> "_Reading":
        return self.ways.follow(self, character)


class _AllWays:
    """A nondeterministic automaton. A state is a character to read, a condition, or a fork; what
    follows a set of states is remembered."""

    def __init__(self, tree: Any) -> None:
        self._group_state = tree.state
        self._states: list[tuple[str, Any, tuple[int, ...]]] = [("end", None, ())]
        self._first = self._sequence(tree, tree.state.flags, 0)
        self._readings: dict[tuple[frozenset[int], str], _Reading] = {}
        self._found = _Reading(self, frozenset(), "")
        self._remembered = 0
        self._left = MOST_STEPS

    def _add(self, kind: str, what: Any, *following: int) -> int:
        if len(self._states) >= MOST_STATES:
            raise QueryError("The regular expression is too large.", code="SC2007")
        self._states.append((kind, what, following))
        return len(self._states) - 1

    def _sequence(self, tree: Any, flags: int, then: int) -> int:
        """The state that reads the tree, and goes on with `then`."""
        for op, value in reversed(list(tree)):
            then = self._one(op, value, flags, then)
        return then

    def _one(self, op: Any, value: Any, flags: int, then: int) -> int:
        if op in _ONE:
            single = _parser.SubPattern(self._group_state, [(op, value)])
            return self._add("read", _compiler.compile(single, flags).match, then)
        if op is _ops.AT:
            return self._add("at", _condition(value, flags), then)
        if op is _ops.BRANCH:
            return self._add(
                "fork", None, *(self._sequence(part, flags, then) for part in value[1])
            )
        if op is _ops.SUBPATTERN:
            _, added, removed, inner = value
            return self._sequence(inner, (flags | added) & ~removed, then)
        if op in _REPEATS:
            least, most, inner = value
            if most is _ops.MAXREPEAT:
                loop = self._add("fork", None)
                self._states[loop] = ("fork", None, (self._sequence(inner, flags, loop), then))
                then = loop
            else:
                for _ in range(most - least):
                    then = self._add("fork", None, self._sequence(inner, flags, then), then)
            for _ in range(least):
                then = self._sequence(inner, flags, then)
            return then
        raise _Unsupported

    def found_in(self, text: str) -> bool:
        self._left = MOST_STEPS
        reading = self._reading(frozenset(), "")
        for character in text[:-1]:
            reading = reading[character]
        if reading is self._found:
            return True
        states = reading.states
        if text:
            states, is_found = self._step(states, reading.before, text[-1], is_last=True)
            if is_found:
                return True
        return 0 in self._reached(states, text[-1:], "", is_last=True)

    def follow(self, reading: _Reading, character: str) -> _Reading:
        """What follows a character that was not read here before."""
        if self._remembered >= _MOST_REMEMBERED:
            self._forget()
        self._remembered += 1
        self._left -= len(reading.states) + 1
        if self._left < 0:
            raise QueryError("The regular expression is too large for the text.", code="SC2007")
        following = self._found
        if reading is not self._found:
            states, is_found = self._step(reading.states, reading.before, character, is_last=False)
            if not is_found:
                following = self._reading(states, character)
        reading[character] = following
        return following

    def _reading(self, states: frozenset[int], before: str) -> _Reading:
        found = self._readings.get((states, before))
        if found is None:
            found = self._readings[states, before] = _Reading(self, states, before)
        return found

    def _forget(self) -> None:
        for reading in [self._found, *self._readings.values()]:
            reading.clear()
        self._readings.clear()
        self._remembered = 0

    def _step(
        self, states: frozenset[int], before: str, character: str, *, is_last: bool
    ) -> tuple[frozenset[int], bool]:
        reached = self._reached(states, before, character, is_last=is_last)
        if 0 in reached:
            return frozenset(), True
        return frozenset(
            following[0]
            for kind, what, following in map(self._states.__getitem__, reached)
            if kind == "read" and what(character)
        ), False

    def _reached(
        self, states: frozenset[int], before: str, after: str, *, is_last: bool
    ) -> set[int]:
        """The states that are reached without reading; a match may also begin here."""
        reached: set[int] = set()
        waiting = [self._first, *states]
        while waiting:
            state = waiting.pop()
            if state in reached:
                continue
            reached.add(state)
            kind, what, following = self._states[state]
            if kind == "fork" or (kind == "at" and what(before, after, is_last)):
                waiting.extend(following)
        return reached


def _condition(kind: Any, flags: int) -> Any:
    """A condition on the characters before and after an offset; "" is none."""
    is_word = re.compile(r"\w", re.ASCII if flags & re.ASCII else re.NOFLAG).match

    def at_boundary(before: str, after: str) -> bool:
        return (is_word(before) is None) is not (is_word(after) is None)

    multiline = flags & re.MULTILINE
    return {
        _ops.AT_BEGINNING: lambda before, after, last: not before or (multiline and before == "\n"),
        _ops.AT_BEGINNING_STRING: lambda before, after, last: not before,
        _ops.AT_END: lambda before, after, last: (
            not after or (after == "\n" and (multiline or last))
        ),
        _ops.AT_END_STRING: lambda before, after, last: not after,
        _ops.AT_BOUNDARY: lambda before, after, last: at_boundary(before, after),
        _ops.AT_NON_BOUNDARY: lambda before, after, last: not at_boundary(before, after),
    }[kind]
