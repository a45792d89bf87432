"""A pytest plugin: writes the outcome of each test, and whether the server answered during it."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Generator
from typing import Any

import pytest
from azure.core.pipeline.transport import AioHttpTransport, RequestsTransport

answers = 0
tests: dict[str, dict[str, Any]] = {}


def counted(send: Callable[..., Any]) -> Callable[..., Any]:
    def counting(*args: Any, **kwargs: Any) -> Any:
        global answers
        response = send(*args, **kwargs)
        answers += 1
        return response

    return counting


def counted_async(send: Callable[..., Any]) -> Callable[..., Any]:
    async def counting(*args: Any, **kwargs: Any) -> Any:
        global answers
        response = await send(*args, **kwargs)
        answers += 1
        return response

    return counting


RequestsTransport.send = counted(RequestsTransport.send)
AioHttpTransport.send = counted_async(AioHttpTransport.send)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    before = answers
    test = tests[item.nodeid] = {
        "name": item.nodeid.partition("::")[2],
        "outcome": "passed",
        "reason": "",
    }
    result = yield
    test["touched"] = answers > before
    with open(os.environ["OUTCOMES"], "a") as file:
        file.write(json.dumps(test) + "\n")
    return result


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    test = tests[report.nodeid]
    if report.outcome != "passed" and test["outcome"] != "failed":
        test["outcome"] = report.outcome
        crash = getattr(report.longrepr, "reprcrash", None)
        reason = crash.message if crash is not None else str(report.longrepr)
        test["reason"] = f"{report.when}: {' '.join(reason.split())[:300]}"
