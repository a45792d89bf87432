"""A run of the tests on an endpoint: its database, which tests run, and the table at the end."""

from __future__ import annotations

import os
import signal
from collections import Counter
from collections.abc import Iterator

import pytest
from azure.cosmos._session import Session, SessionContainer

from tests.support.cosmos import DATABASE, LACKS, NEEDS, Endpoint, new_database

# Fixtures that say what a test needs.
BY_FIXTURE = {"emulator": "emulator", "later": "clock"}


class EndpointRun:
    """Runs what needs only a store. Everything else is not collected, or skipped with a reason."""

    def __init__(self, endpoint: Endpoint, config: pytest.Config) -> None:
        self._endpoint = endpoint
        self._config = config
        self._leads = not hasattr(config, "workerinput")  # of pytest-xdist: several processes
        self._created = False

    def pytest_sessionstart(self) -> None:
        share_session_tokens()
        if not self._leads or self._config.option.collectonly:
            return
        # Ctrl-C ends a run in order, and so does `kill`.
        signal.signal(signal.SIGTERM, signal.default_int_handler)
        os.environ[DATABASE] = new_database()
        self._endpoint.create_database(os.environ[DATABASE])
        self._created = True

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self) -> None:
        if self._created:
            self._created = False
            self._endpoint.drop_database(os.environ[DATABASE])

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(
        self, config: pytest.Config, items: list[pytest.Item]
    ) -> None:
        ours, others = [], []
        for item in items:
            used = set(getattr(item, "fixturenames", ()))
            (ours if used & {"cosmos", *BY_FIXTURE} else others).append(item)
        lacks = LACKS[self._endpoint.like]
        for item in ours:
            for need in needs_of(item):
                if need in lacks:
                    item.add_marker(pytest.mark.skip(reason=f"needs {need}: {lacks[need]}"))
        items[:] = ours
        config.hook.pytest_deselected(items=others)

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        if not self._leads or self._config.option.collectonly:
            return
        write = terminalreporter.write_line
        counted = {
            name: len(terminalreporter.getreports(name)) for name in ("passed", "failed", "error")
        }
        reasons = Counter(
            report.longrepr[2].removeprefix("Skipped: ")
            for report in terminalreporter.getreports("skipped")
            if isinstance(report.longrepr, tuple)
        )
        terminalreporter.section(f"{self._endpoint.like}: {self._endpoint.url}")
        write(f"{counted['passed']:6}  passed")
        if broken := counted["failed"] + counted["error"]:
            write(f"{broken:6}  failed")
        for reason, count in reasons.most_common():
            write(f"{count:6}  left out: {reason}")


def share_session_tokens() -> None:
    """Lets every client of this process know what the others have written, as the SDK allows.

    A test plays several processes by several clients, and expects one to read what another has just
    written. Replicas may lag: without its session token, a client reads what was a moment ago. What
    the services make of that is tested where lag can be held (tests/reliability/test_lag.py), and
    with real processes (tests/anywhere).
    """
    shared = SessionContainer()

    def begin(session: Session, url_connection: str) -> None:
        session.url_connection = url_connection
        session.session_container = shared

    Session.__init__ = begin


def needs_of(item: pytest.Item) -> Iterator[str]:
    """What a test needs besides a store, the most telling first."""
    for mark in item.iter_markers("needs"):
        for name in mark.args:
            if name not in NEEDS:
                raise pytest.UsageError(f"{item.nodeid} needs {name!r}, which no store knows")
            yield name
    used = getattr(item, "fixturenames", ())
    yield from (need for fixture, need in BY_FIXTURE.items() if fixture in used)
