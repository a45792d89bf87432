"""Runs the self-test: one finding a promise, then what was measured."""

from __future__ import annotations

import statistics
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import dataclass

from cosmosservice.errors import CosmosServiceError
from cosmosservice.selftest import figures
from cosmosservice.selftest.promises import PROMISES, Broken
from cosmosservice.selftest.scratch import Scratch

# Measured on the embedded emulator; `ESTIMATE` request units cover a run with its database.
ESTIMATE = 25_000
DOLLARS = 0.01  # serverless, at $0.25 per million; provisioned throughput is paid for anyway


@dataclass(frozen=True)
class Finding:
    promise: str
    title: str
    kept: bool
    seen: str
    seconds: float
    advice: str = ""


async def findings(scratch: Scratch) -> AsyncIterator[Finding]:
    """One promise after the other. Without access, no other one is tried."""
    async with AsyncExitStack() as stack:
        one = await stack.enter_async_context(scratch.client())
        other = await stack.enter_async_context(scratch.client())
        for promise, title, check in PROMISES:
            started = time.monotonic()
            advice = ""
            try:
                seen, kept = await check(scratch, one, other), True
            except Broken as broken:
                seen, kept = f"{broken}", False
                advice = "Please report it, with what `cosmosservice doctor` prints."
            except CosmosServiceError as error:
                seen, kept = f"{type(error).__name__}: {error}", False
                advice = "Run `cosmosservice doctor`, which says what to do."
            seconds = time.monotonic() - started
            yield Finding(promise, title, kept, seen, round(seconds, 1), advice)
            if promise == "access" and not kept:
                return


async def measured(scratch: Scratch) -> tuple[list[figures.Figure], dict[str, float]]:
    """Request units and times; and how far another client lags, in milliseconds."""
    async with scratch.client() as one, scratch.client() as other:
        waited = await figures.lag(scratch, one, other)
    lag = {"median": round(statistics.median(waited), 1), "longest": round(max(waited), 1)}
    return await figures.measure(scratch), lag
