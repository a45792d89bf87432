"""Runs the self-test: one finding a promise, then what was measured."""

from __future__ import annotations

import statistics
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace

from cosmosservice.errors import (
    AuthenticationError,
    ConfigurationError,
    ThrottledError,
    UnavailableError,
)
from cosmosservice.selftest import figures
from cosmosservice.selftest.promises import PROMISES, Broken
from cosmosservice.selftest.scratch import Scratch

ESTIMATE = 25_000  # request units: twice what a run takes on the emulator
DOLLARS = 0.01  # serverless, at $0.25 per million
HOUR = 0.08  # provisioned: the throughput of the scratch database, which is paid by the hour

BROKEN = (
    "Keep no data in this store until it is clear why. If it is an emulator, this is what it does"
    " differently. If it is Azure, report it, with this line and what `cosmosservice doctor`"
    " prints."
)
THROTTLED = "The account has too few request units for the test: run it when there are more."
EXAMINE = "Run `cosmosservice doctor`, which says what to do."


@dataclass(frozen=True)
class Finding:
    promise: str
    title: str
    kept: bool
    seen: str
    seconds: float = 0.0
    advice: str = ""


async def findings(scratch: Scratch) -> AsyncIterator[Finding]:
    """One promise after the other. Without access, no other one is tried."""
    async with AsyncExitStack() as stack:
        one = await stack.enter_async_context(scratch.client())
        other = await stack.enter_async_context(scratch.client())
        for promise, title, check in PROMISES:
            started = time.monotonic()
            try:
                seen = await check(scratch, one, other)
                finding = Finding(promise, title, True, seen)
            except Exception as error:  # a store that breaks its word may lead to any
                finding = unkept(promise, title, error)
            seconds = time.monotonic() - started
            yield replace(finding, seconds=round(seconds, 1))
            if promise == "access" and not finding.kept:
                return


def unkept(promise: str, title: str, error: Exception) -> Finding:
    """What went wrong, and what to do."""
    seen = str(error) if isinstance(error, Broken) else f"{type(error).__name__}: {error}"
    return Finding(promise, title, False, seen, advice=_advice(error))


def _advice(error: Exception) -> str:
    if isinstance(error, AuthenticationError) and error.advice:
        return error.advice
    if isinstance(error, ThrottledError):
        return THROTTLED
    known = isinstance(error, ConfigurationError | AuthenticationError | UnavailableError)
    return EXAMINE if known else BROKEN


async def measured(scratch: Scratch) -> tuple[list[figures.Figure], dict[str, float]]:
    """Request units and times; and how far another client lags, in milliseconds."""
    async with scratch.client() as one, scratch.client() as other:
        waited = await figures.lag(scratch, one, other)
    lag = {"median": round(statistics.median(waited), 1), "longest": round(max(waited), 1)}
    return await figures.measure(scratch), lag
