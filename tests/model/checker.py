"""An explicit-state model checker for protocols written as Python generators.

Every `yield` of a process is one atomic remote operation, or a "par" group whose members are each
atomic and complete in any order. A process is compiled lazily into an automaton: a node is the
frozen content of the generator's frames (position and local variables), a transition is a server
response. So a global state (store, session tokens, ghost, nodes, budgets) is hashable and is
visited only once. The search is breadth first: the trace of a violation is a shortest one.

Rules for process code: no `for` loop and no temporary on the stack across a `yield`
(always `reply = yield op`); locals are plain data; a local that is no longer needed is set to
None before the next `yield`, or it multiplies the states.

What may go wrong: a process stops for good (crash). A write commits, its reply is lost, and the
identical request is sent again later (lost reply). A process reads any snapshot that is not older
than its session token (stale). Clocks differ. Documents with a ttl expire.

Session tokens are per range: a range is the set of partitions that share a token (`range_of`).
Every answer to a write, including 404, 409 and 412, brings the token of its range up to date.
"""

from __future__ import annotations

import itertools
import time
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from tests.model.store import Frozen, execute

CONSTANT_LOCALS = {"rules", "proc"}
STOPPED = -1


class Handle:
    """The process as its own code sees it: its name, and the marks by which it reports what it
    does.

    `start` marks take effect with the next operation, `end` marks with the one just completed.
    """

    def __init__(self, name: str):
        self.name = name
        self.starts: list[tuple] = []
        self.ends: list[tuple] = []

    def start(self, *mark):
        self.starts.append(mark)

    def end(self, *mark):
        self.ends.append(mark)


@dataclass
class Process:
    """One participant. `body(handle)` is its generator, which begins when all of `after` have
    ended."""

    name: str
    body: Callable[[Handle], Iterator]
    after: tuple[str, ...] = ()
    crash: bool = False
    lost_reply: bool = False
    stale: bool = False
    clock: int | None = None  # does not advance
    offset: int = 0  # how far its clock is ahead of the server's


def range_of(partition: str) -> str:
    """The real partition that contains a partition of the model. Session documents and the user's
    state share one. The records and bodies of a session share another."""
    kind, number = partition.rstrip("0123456789"), partition.lstrip("abcdefghijklmnopqrstuvwxyz")
    return {"session": "user", "body": "log" + number, "log": "log" + number}.get(kind, kind)


@dataclass
class Node:
    id: int
    op: tuple | None
    starts: tuple
    done: bool
    history: tuple
    next: dict = field(default_factory=dict)


def _freeze(value):
    if isinstance(value, Frozen):
        return value
    if isinstance(value, dict):
        return Frozen({k: _freeze(v) for k, v in value.items()})
    if isinstance(value, list):
        return ("list", *(_freeze(v) for v in value))
    if isinstance(value, tuple):
        return tuple(_freeze(v) for v in value)
    if isinstance(value, set):
        return frozenset(value)
    return value


def _frames(generator):
    """Position and locals of a generator and of the generators that it delegates to."""
    key = []
    while generator is not None and getattr(generator, "gi_frame", None) is not None:
        frame = generator.gi_frame
        held = frozenset(
            (name, _freeze(value))
            for name, value in frame.f_locals.items()
            if name not in CONSTANT_LOCALS and not callable(value)
        )
        key.append((frame.f_code.co_name, frame.f_lasti, held))
        generator = generator.gi_yieldfrom
    return tuple(key)


class Automaton:
    """A process as nodes and transitions, built only as far as the search needs."""

    def __init__(self, process: Process):
        self.name, self.body = process.name, process.body
        self.nodes: list[Node] = []
        self._index: dict[Any, Node] = {}
        handle = Handle(self.name)
        _, self.root = self._advance(self.body(handle), handle, None, ())

    def _advance(self, generator, handle, response, history):
        handle.starts, handle.ends = [], []
        try:
            op = generator.send(response)
            key = (_frames(generator), tuple(handle.starts), op)
        except StopIteration:
            op, key = None, None
        node = self._index.get(key)
        if node is None:
            node = Node(len(self.nodes), op, tuple(handle.starts), key is None, history)
            self.nodes.append(node)
            self._index[key] = node
        return tuple(handle.ends), node

    def step(self, node: Node, response) -> tuple[tuple, Node]:
        """The end marks and the node that follow a response. Replays the process if the response is
        new."""
        known = node.next.get(response)
        if known is None:
            handle = Handle(self.name)
            generator = self.body(handle)
            next(generator)
            for earlier in node.history:
                generator.send(earlier)
            known = self._advance(generator, handle, response, (*node.history, response))
            node.next[response] = known
        return known


@dataclass
class Result:
    states: int
    endings: int
    truncated: bool
    seconds: float
    violations: dict[str, tuple[str, list[tuple]]]


class _Interned:
    """Numbers that stand for large values, to keep states small."""

    def __init__(self):
        self._ids: dict[Any, int] = {}
        self.values: list[Any] = []

    def __call__(self, value) -> int:
        number = self._ids.setdefault(value, len(self.values))
        if number == len(self.values):
            self.values.append(value)
        return number


def _with(items: tuple, index: int, value) -> tuple:
    return (*items[:index], value, *items[index + 1 :])


class Explorer:
    """Visits every reachable state.

    A state is (store, ghost, session tokens, position of each process, crashes left, lost replies
    left, clock). `ghost` has `initial()`, `apply(…) -> (ghost, violations)`, `at_rest(…)`.
    """

    def __init__(
        self, processes, store, ghost, *, crashes=0, lost_replies=0, token_on_error=True, limit
    ):
        self.processes, self.ghost, self.limit = processes, ghost, limit
        self.token_on_error = token_on_error
        self.automata = [Automaton(p) for p in processes]
        number = {p.name: i for i, p in enumerate(processes)}
        self.after = [tuple(number[a] for a in p.after) for p in processes]
        self.keep_past = any(p.stale for p in processes)
        self.partition = {name: i for i, name in enumerate(sorted(store))}
        self.ranges: dict[str, list[str]] = {}
        for name in sorted(store):
            self.ranges.setdefault(range_of(name), []).append(name)
        self.stores, self.ghosts = _Interned(), _Interned()
        tokens = tuple((0,) * len(store) if p.stale else () for p in processes)
        positions = tuple((a.root.id, None) for a in self.automata)
        first = (self.stores(store), self.ghosts(ghost.initial()), tokens, positions)
        self.states = [(*first, crashes, lost_replies, 0)]
        self.parents: list[tuple | None] = [None]
        self.violations: dict[str, tuple[str, int, tuple | None]] = {}

    def run(self, until: str | None = None) -> Result:
        """Visits all states, or stops at the first violation of the invariant `until`."""
        began = time.process_time()
        numbers = {self.states[0]: 0}
        followers: list[tuple[int, ...]] = []
        endings: list[int] = []
        waiting = deque([0])
        truncated = False
        while waiting:
            current = waiting.popleft()
            state = self.states[current]
            follow = []
            if all(self._ended(state[3], i) for i in range(len(self.processes))):
                endings.append(current)
                ghost, store = self.ghosts.values[state[1]], self.stores.values[state[0]]
                self._note(self.ghost.at_rest(ghost, store), current, None)
            for reached, step, violations in self._successors(state):
                number = numbers.setdefault(reached, len(self.states))
                if number == len(self.states):
                    self.states.append(reached)
                    self.parents.append((current, step))
                    if number < self.limit:
                        waiting.append(number)
                    else:
                        truncated = True
                follow.append(number)
                self._note(violations, current, step)
            followers.append(tuple(follow))
            if until in self.violations:
                truncated = True
                break
        endings_seen = len(endings)
        if not truncated:
            self._check_termination(followers, endings)
        return Result(
            len(self.states),
            endings_seen,
            truncated,
            time.process_time() - began,
            {k: (text, self._trace(*at)) for k, (text, *at) in sorted(self.violations.items())},
        )

    def _ended(self, positions, i) -> bool:
        at = positions[i][0]
        return at == STOPPED or self.automata[i].nodes[at].done

    def _note(self, violations, state_number, step):
        for name, text in violations:
            self.violations.setdefault(name, (text, state_number, step))

    def _successors(self, state):
        store_no, ghost_no, tokens, positions, crashes, losses, clock = state
        store, ghost = self.stores.values[store_no], self.ghosts.values[ghost_no]
        for i, process in enumerate(self.processes):
            if self._ended(positions, i):
                continue
            if any(not self._ended(positions, a) for a in self.after[i]):
                continue
            automaton = self.automata[i]
            at, partial = positions[i]
            node = automaton.nodes[at]
            op = node.op
            if crashes and process.crash:
                gone = _with(positions, i, (STOPPED, None))
                after = (store_no, ghost_no, tokens, gone, crashes - 1, losses, clock)
                yield after, (process.name, ("crash",), None), ()
            if op[0] in ("now", "local", "wait"):
                reply, tick = None, op[1] if op[0] == "wait" else 0
                if op[0] == "now":
                    tick = process.clock is None
                    reply = clock + 1 + process.offset if tick else process.clock
                ends, following = automaton.step(node, reply)
                marks = node.starts + ends
                seen, violations = self.ghost.apply(ghost, marks, process.name, None, store, store)
                moved = _with(positions, i, (following.id, None))
                after = (store_no, self.ghosts(seen), tokens, moved, crashes, losses, clock + tick)
                yield after, (process.name, op, reply), violations
                continue
            if op[0] == "par":
                partial = partial or (None,) * len(op[1])
                choices = [(j, o) for j, o in enumerate(op[1]) if partial[j] is None]
            else:
                choices = [(None, op)]
            for j, choice in choices:
                for reply, new_store, new_tokens, lost in self._replies(
                    store, tokens, i, choice, losses, clock
                ):
                    starts, ends = node.starts, ()
                    if lost:
                        moved = positions
                    elif j is None:
                        ends, following = automaton.step(node, reply)
                        moved = _with(positions, i, (following.id, None))
                    else:
                        if any(r is not None for r in partial):
                            starts = ()
                        replies = _with(partial, j, reply)
                        if any(r is None for r in replies):
                            moved = _with(positions, i, (at, replies))
                        else:
                            ends, following = automaton.step(node, replies)
                            moved = _with(positions, i, (following.id, None))
                    seen, violations = self.ghost.apply(
                        ghost, starts + ends, process.name, choice, store, new_store
                    )
                    after = (
                        self.stores(new_store),
                        self.ghosts(seen),
                        new_tokens,
                        moved,
                        crashes,
                        losses - lost,
                        clock,
                    )
                    shown = "committed, reply lost" if lost else reply
                    yield after, (process.name, choice, shown), violations

    def _replies(self, store, tokens, i, op, losses, clock):
        """(reply, store, tokens, reply lost?) for each way the store may answer process i."""
        process = self.processes[i]
        if op[0] == "list":
            yield from self._listed(store, tokens, i, op, clock)
            return
        column = self.partition[op[1]]
        if op[0] in ("read", "query", "scan"):
            if not process.stale:
                yield execute(store, op, self.keep_past, clock)[0], store, tokens, False
                return
            for at in range(tokens[i][column], len(store[op[1]])):
                reply = execute(store, op, self.keep_past, clock, at)[0]
                yield reply, store, _with(tokens, i, _with(tokens[i], column, at)), False
            return
        reply, new_store = execute(store, op, self.keep_past, clock)
        after = tokens
        if process.stale and (reply[0] == "ok" or self.token_on_error):
            after = _with(tokens, i, self._up_to_date(tokens[i], new_store, op[1]))
        yield reply, new_store, after, False
        if reply[0] == "ok" and losses and process.lost_reply:
            yield reply, new_store, tokens, True

    def _up_to_date(self, token, store, partition):
        for name in self.ranges[range_of(partition)]:
            token = _with(token, self.partition[name], len(store[name]) - 1)
        return token

    def _listed(self, store, tokens, i, op, clock):
        """A query over several partitions. Each may be as old as its token allows."""
        names = op[1]
        snapshots = [
            range(tokens[i][self.partition[name]], len(store[name]))
            if self.processes[i].stale
            else (-1,)
            for name in names
        ]
        for chosen in itertools.product(*snapshots):
            found, token = [], tokens[i]
            for name, at in zip(names, chosen, strict=True):
                found.append(execute(store, ("query", name), self.keep_past, clock, at)[0][1])
                token = _with(token, self.partition[name], at) if token else token
            yield ("ok", tuple(found)), store, _with(tokens, i, token), False

    def _check_termination(self, followers, endings):
        """Every state has a continuation in which all processes end: no deadlock, no livelock."""
        leading: list[list[int]] = [[] for _ in self.states]
        for number, follow in enumerate(followers):
            for reached in follow:
                leading[reached].append(number)
        can_end = bytearray(len(self.states))
        for number in endings:
            can_end[number] = 1
        while endings:
            for earlier in leading[endings.pop()]:
                if not can_end[earlier]:
                    can_end[earlier] = 1
                    endings.append(earlier)
        stuck = can_end.count(0)
        if stuck:
            text = f"{stuck} states cannot reach an end"
            self.violations["I10-livelock"] = (text, can_end.index(0), None)

    def _trace(self, number, step):
        steps = [step] if step else []
        while self.parents[number] is not None:
            number, earlier = self.parents[number]
            steps.append(earlier)
        return steps[::-1]
