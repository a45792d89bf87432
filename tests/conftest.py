"""Fixtures that every suite may use.

cosmos            the store of the test: an emulator in memory, or the account that
                  COSMOS_TEST_ENDPOINT names (tests/support/cosmos.py)
open_service      opens session services on it, and closes them when the test is over
raw               its documents, without a service
emulator          a fresh emulator in memory, with its faults and its request log
later             lets time pass, for that emulator and for the service
connect_…         how to make a service: embedded, over HTTP

A test that asks for `emulator` or `later` does not run on an endpoint. What else an endpoint may
lack, a test says by a mark: @pytest.mark.needs("charges").
"""

from __future__ import annotations

import gc
import os
from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import settings

from cosmos_emulator import Emulator
from cosmos_emulator.serving import serving
from tests.support.cosmos import Cosmos, Endpoint, embedded, forget_settings, outside
from tests.support.endpoint_run import EndpointRun
from tests.support.figures import record
from tests.support.raw import Raw

if TYPE_CHECKING:
    from cosmosservice import CosmosSessionService

    Connect = Callable[..., CosmosSessionService]

# The same examples in every run, so that a change is not blamed for a random find. To search:
# HYPOTHESIS_PROFILE=search
settings.register_profile("repeat", derandomize=True)
settings.register_profile("search", derandomize=False)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "repeat"))

# Modules and collected tests stay until the end of the run: no collection need look through them.
gc.disable()


def pytest_collection_finish() -> None:
    gc.collect()
    gc.freeze()
    gc.enable()


# ADK takes seconds to import, and many suites do not need it: fixtures that do import it
# themselves.


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers", "claims(*names): run only on the stores that claim all of these"
    )
    config.addinivalue_line("markers", "needs(*names): run only on a store that has all of these")
    forget_settings()
    if (endpoint := Endpoint.from_environment()) is not None:
        config.pluginmanager.register(EndpointRun(endpoint, config))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """With RECORD_AS, the numbers of this run become figures of the docs."""
    if name := os.environ.get("RECORD_AS"):
        passed, failed, errors = (
            len(terminalreporter.getreports(each)) for each in ("passed", "failed", "error")
        )
        record(name, cases=passed + failed, broken=failed + errors)


@pytest.fixture
def emulator() -> Iterator[Emulator]:
    """An account for one test."""
    with Emulator() as made:
        yield made


@pytest.fixture
def later(emulator: Emulator) -> Callable[[float], None]:
    """Lets time pass for the store. The service learns of it from the next answer."""
    return emulator.clock.advance


@pytest.fixture
def connect_embedded(emulator: Emulator) -> Connect:
    """Services on the test's own emulator, in process."""
    from cosmosservice import CosmosSessionService

    return partial(CosmosSessionService.embedded, emulator)


@pytest.fixture(scope="session")
def http_emulator() -> Iterator[tuple[str, str]]:
    """The endpoint and the key of one emulator over HTTP, shared by all tests.

    Its containers have several partitions, so that the SDK must merge, as on a large account.
    """
    with Emulator(partitions=3) as emulator, serving(emulator) as endpoint:
        yield endpoint, emulator.key


@pytest.fixture
def connect_http(http_emulator: tuple[str, str]) -> Connect:
    """Services on an emulator that is reached over HTTP."""
    from cosmosservice import CosmosSessionService

    endpoint, key = http_emulator
    return partial(CosmosSessionService, endpoint=endpoint, credential=key, database="tests")


@pytest.fixture
def shares_containers() -> bool:
    """Whether the test's names are its own, so that its documents may lie among others."""
    return False


@pytest.fixture
def cosmos(request: pytest.FixtureRequest, shares_containers: bool) -> Iterator[Cosmos]:
    """The store of one test."""
    endpoint = Endpoint.from_environment()
    if endpoint is None:
        store = embedded(request.getfixturevalue("emulator"))
    else:
        store = outside(endpoint, own=not shares_containers)
    with store as made:
        yield made


@pytest.fixture
async def open_service(cosmos: Cosmos) -> Any:
    """`open_service(**options)`: one more service on the same data, like another process."""
    yield cosmos.sessions
    await cosmos.close()


@pytest.fixture
def raw(cosmos: Cosmos) -> Raw:
    """The documents of the sessions, without a service."""
    return cosmos.raw()
