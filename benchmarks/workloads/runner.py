"""A turn through ADK's own Runner, with an LlmAgent whose model is scripted."""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator

from google.adk.agents import LlmAgent
from google.adk.models.base_llm import BaseLlm
from google.adk.models.llm_request import LlmRequest
from google.adk.models.llm_response import LlmResponse
from google.adk.runners import Runner
from google.genai import types

from benchmarks.lanes import creates
from benchmarks.material import APP, USER
from benchmarks.measure import Effort, Lane, clock, compare
from benchmarks.peers import Peer
from benchmarks.results import Plot, Result, Target, ms, ratio
from benchmarks.stand import (
    BARE,
    BLOCK,
    IN_MEMORY,
    IN_PROCESS,
    IN_PROCESS_BLOCK,
    OURS,
    POSTGRES,
    SQLITE,
    Stand,
)

QUESTION = types.Content(role="user", parts=[types.Part(text="and then? " * 50)])
ANSWER = types.Content(role="model", parts=[types.Part(text="and then " * 100)])
AFTER = 50


class Model(BaseLlm):
    """Answers at once, and has been shown the whole conversation."""

    model: str = "scripted"
    shown: int = 0

    async def generate_content_async(
        self, llm_request: LlmRequest, stream: bool = False
    ) -> AsyncGenerator[LlmResponse, None]:
        assert len(llm_request.contents) > self.shown
        yield LlmResponse(content=ANSWER.model_copy(deep=True))


class RunnerTurn:
    """A turn on one session, which grows by two events."""

    def __init__(self, peer: Peer, session_id: str, length: int) -> None:
        self.peer, self.session_id = peer, session_id
        agent = LlmAgent(name="agent", model=Model(shown=length))
        self.runner = Runner(app_name=APP, agent=agent, session_service=peer.service)

    async def turn(self) -> None:
        async for _ in self.runner.run_async(
            user_id=USER, session_id=self.session_id, new_message=QUESTION
        ):
            pass

    async def processor(self) -> float:
        """Processor time of this process, on all threads."""
        start = time.process_time()
        await self.turn()
        spent = time.process_time() - start
        await self.peer.drain()
        return spent

    async def elapsed(self) -> float:
        start = clock()
        await self.turn()
        spent = clock() - start
        await self.peer.drain()
        return spent


async def runner_long(stand: Stand) -> Result:
    """What an agent does with a long conversation: it reads every event for its prompt."""
    length = 500 if stand.quick else 5000
    result = Result(
        "runner_long",
        f"A turn of an LlmAgent through the Runner after {length:,} events, seen before, in"
        " process: processor time",
        ["", "× ours", "processor time"],
    )
    lanes: dict[str, Lane] = {}
    for label in (IN_PROCESS, IN_PROCESS_BLOCK, SQLITE, IN_MEMORY):
        peer = await stand.peer(label, 0)
        lanes[label] = RunnerTurn(peer, await stand.session(peer, length), length).processor
    timings = await compare(lanes, Effort(stand.effort.runs, 4))
    ours = timings[IN_PROCESS]
    result.rows = [
        [label, ratio(timing.by(ours)), ms(timing.seconds)] for label, timing in timings.items()
    ]
    result.plot = Plot(
        result.title, "ms", [(label, timing.seconds * 1e3) for label, timing in timings.items()]
    )
    promise = f"a turn through the Runner after {length:,} events, faster than {IN_MEMORY}"
    in_memory = timings[IN_MEMORY]
    result.targets = [
        Target(promise, "≥", 1.3, in_memory.by(ours)),
        Target("… in a block", "≥", 1.3, in_memory.by(timings[IN_PROCESS_BLOCK])),
    ]
    return result


async def runner(stand: Stand) -> Result:
    """The common case. No service can be faster than its requests and the Runner itself."""
    result = Result(
        "runner",
        f"A turn of an LlmAgent through the Runner after {AFTER} events, at 5 ms",
        ["", "× the least", "time", "round trips"],
    )
    bare, document = await stand.bare(BARE), await stand.event_document()
    lanes: dict[str, Lane] = {}
    trips: dict[str, int] = {}
    for label in (OURS, BLOCK, POSTGRES, SQLITE):
        peer = await stand.peer(label)
        turn = RunnerTurn(peer, await stand.session(peer, AFTER), AFTER)
        await turn.elapsed()
        if peer.port:
            trips[label] = (await stand.count(peer.port, turn.elapsed, peer.drain)).round_trips
        lanes[label] = turn.elapsed
    in_memory = await stand.peer(IN_MEMORY)
    alone = RunnerTurn(in_memory, await stand.session(in_memory, AFTER), AFTER).elapsed
    requests = creates(bare, document, trips[OURS])

    async def least() -> float:
        return await requests() + await alone()

    name = f"{trips[OURS]} bare requests, and the Runner with {IN_MEMORY}"
    lanes[name], trips[name] = least, trips[OURS]
    timings = await compare(lanes, Effort(stand.effort.runs, 3 if stand.quick else 10))
    limit = timings[name]
    result.rows = [
        [label, ratio(timing.by(limit)), ms(timing.seconds), str(trips.get(label, "none"))]
        for label, timing in timings.items()
    ]
    result.targets = [
        Target(
            f"a turn through the Runner after {AFTER} events, by the least that it can take",
            "≤",
            1.15,
            timings[OURS].by(limit),
        ),
        Target("… in a block", "≤", 1.15, timings[BLOCK].by(limit)),
    ]
    return result
