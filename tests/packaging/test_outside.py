"""The runs on Microsoft's container and on accounts, as far as they can be seen without Docker."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest
import yaml

from cosmos_emulator import Emulator
from cosmos_emulator.serving import serving
from tests.support import container
from tests.support.raw import raw_client

ROOT = Path(__file__).parents[2]
A_TEST = "tests/contract/test_append.py::test_an_event_that_changes_no_state_is_stored_too"

# Starts our emulator instead of the container, which listens only after a while, as it would.
DOCKER = """#!{python}
import os, pathlib, signal, subprocess, sys

pid = pathlib.Path(__file__ + ".pid")
with open(__file__ + ".log", "a") as log:
    print(*sys.argv[1:], file=log)
if "up" in sys.argv and {port}:
    command = "sleep 2; exec {python} -m cosmos_emulator --like vnext --port {port}"
    nowhere = subprocess.DEVNULL
    made = subprocess.Popen(["sh", "-c", command], stdout=nowhere, start_new_session=True)
    pid.write_text(str(made.pid))
if "down" in sys.argv and pid.exists():
    os.kill(int(pid.read_text()), signal.SIGTERM)
    pid.unlink()
"""

# In place of the body of every test.
HANGS = """
import pathlib, time
def pytest_pyfunc_call():
    pathlib.Path({path!r}).touch()
    time.sleep(60)
"""
FAILS = """
def pytest_pyfunc_call():
    raise AssertionError("as it was told to")
"""


@pytest.fixture
def port():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


@pytest.fixture
def in_container(tmp_path, port):
    """Runs tests on the container, with a `docker` that starts our emulator in its place."""
    docker = tmp_path / "docker"

    def start(*arguments, starts=True, patience=60, plugin=""):
        docker.write_text(DOCKER.format(python=sys.executable, port=port if starts else 0))
        docker.chmod(0o755)
        (tmp_path / "instead.py").write_text(plugin)
        program = (
            "import sys; from tests.support import container;"
            f"container.ENDPOINT, container.PATIENCE = 'http://127.0.0.1:{port}', {patience};"
            "sys.exit(container.main())"
        )
        return subprocess.Popen(
            [sys.executable, "-c", program, "-p", "instead", *arguments],
            env=os.environ | {"PATH": f"{tmp_path}:/usr/bin:/bin", "PYTHONPATH": str(tmp_path)},
            cwd=ROOT,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            preexec_fn=heed_ctrl_c,
            start_new_session=True,  # so that it can be interrupted as by Ctrl-C
        )

    log = Path(f"{docker}.log")
    start.log = lambda: log.read_text().splitlines() if log.exists() else []
    yield start
    with contextlib.suppress(FileNotFoundError, ProcessLookupError):
        os.kill(int(Path(f"{docker}.pid").read_text()), signal.SIGTERM)


def listens(port):
    with socket.socket() as found:
        return found.connect_ex(("127.0.0.1", port)) == 0


def wait_until(holds):
    for _ in range(600):
        if holds():
            return
        time.sleep(0.1)
    raise AssertionError("waited for a minute")


def heed_ctrl_c():
    """Also where the tests themselves run in the background, and ignore it."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def interrupt(run):
    """As Ctrl-C does: the signal goes to all of its processes."""
    os.killpg(run.pid, signal.SIGINT)


def test_the_container_is_waited_for_tested_and_stopped(in_container, port):
    run = in_container(A_TEST)
    output, _ = run.communicate()
    assert run.returncode == 0, output
    assert re.search(rf"= vnext: http://127.0.0.1:{port} =+\n +\d+  passed\n", output), output
    assert [line.split("cosmosservice-test ")[-1] for line in in_container.log()] == [
        "compose version",
        "info",
        "up --detach",
        "down --volumes",
    ]
    wait_until(lambda: not listens(port))


def test_a_test_that_fails_on_the_container_fails_the_run_which_is_stopped(in_container, port):
    run = in_container(A_TEST, plugin=FAILS)
    output, _ = run.communicate()
    assert run.returncode == 1, output
    assert re.search(r"^ +\d+  failed$", output, re.M), output
    assert in_container.log()[-1].endswith("down --volumes")
    wait_until(lambda: not listens(port))


def test_after_ctrl_c_the_container_is_stopped(in_container, port, tmp_path):
    started = tmp_path / "started"
    run = in_container(A_TEST, plugin=HANGS.format(path=str(started)))
    wait_until(started.exists)
    interrupt(run)
    output, _ = run.communicate()
    assert run.returncode == 2, output
    assert in_container.log()[-1].endswith("down --volumes")
    wait_until(lambda: not listens(port))


def test_a_container_that_never_answers_is_reported_with_its_log(in_container):
    run = in_container(A_TEST, starts=False, patience=1)
    output, _ = run.communicate()
    assert run.returncode == 1
    assert output == "The container did not answer within 1 seconds.\n"
    assert [line.split("cosmosservice-test ")[-1] for line in in_container.log()[-2:]] == [
        "logs --tail 50",
        "down --volumes",
    ]


def test_ctrl_c_while_the_container_is_waited_for_stops_it(in_container):
    run = in_container(A_TEST, starts=False)
    wait_until(lambda: any(line.endswith("up --detach") for line in in_container.log()))
    interrupt(run)
    output, _ = run.communicate()
    assert (run.returncode, output) == (2, "")
    assert in_container.log()[-1].endswith("down --volumes")


def test_the_endpoint_is_where_the_compose_file_publishes_the_container():
    compose = yaml.safe_load((ROOT / "emulator" / "compose.yaml").read_text())
    service = compose["services"]["cosmos"]
    published = {each.rpartition(":")[0] for each in service["ports"]}
    assert container.ENDPOINT.removeprefix("http://") in published
    assert service["environment"]["PROTOCOL"] == "http"
    assert service["healthcheck"] == {"disable": True}  # asked from outside


def test_after_ctrl_c_the_database_of_a_run_is_removed(tmp_path):
    started = tmp_path / "started"
    (tmp_path / "instead.py").write_text(HANGS.format(path=str(started)))
    elsewhere = {"COSMOSDB_ENDPOINT": "https://elsewhere.invalid/"}
    with Emulator() as emulator, serving(emulator) as url:
        arguments = ["--endpoint", url, "-n", "1", "-p", "instead", A_TEST]
        run = subprocess.Popen(
            [sys.executable, "-m", "tests.support.endpoints", *arguments],
            env=os.environ | elsewhere | {"PYTHONPATH": str(tmp_path)},
            cwd=ROOT,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            preexec_fn=heed_ctrl_c,
            start_new_session=True,
        )
        wait_until(started.exists)
        with raw_client(emulator) as client:
            assert len(list(client.list_databases())) == 1
            interrupt(run)
            output, _ = run.communicate()
            assert run.returncode == 2, output
            assert list(client.list_databases()) == []


def test_without_docker_the_run_says_so_in_a_sentence(tmp_path):
    done = subprocess.run(
        [sys.executable, "-m", "tests.support.container"],
        env=os.environ | {"PATH": str(tmp_path)},
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 1
    assert done.stderr.startswith("make test-container needs Docker")
    assert len(done.stderr.splitlines()) == 1


def test_docker_that_fails_is_reported_and_what_was_started_is_stopped(tmp_path):
    """With a `docker` that answers questions, but cannot start a container."""
    docker = tmp_path / "docker"
    docker.write_text('#!/bin/sh\necho "$*" >> "$0.log"\ncase "$*" in *" up "*) exit 1;; esac\n')
    docker.chmod(0o755)
    done = subprocess.run(
        [sys.executable, "-m", "tests.support.container"],
        env=os.environ | {"PATH": f"{tmp_path}:/usr/bin:/bin"},
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 1
    assert "could not start the container" in done.stderr
    assert Path(f"{docker}.log").read_text().splitlines()[-1].endswith("down --volumes")


@pytest.mark.parametrize("given", [[], ["ENDPOINT=http://here:1", "KEY=a=", "LIKE=azure"]])
def test_make_passes_on_what_it_is_given(tmp_path, given):
    """With a `python` that only shows what it would have been called with."""
    python = tmp_path / "python"
    python.write_text('#!/bin/sh\necho "$*"; env | grep "^COSMOS_TEST_" | sort\n')
    python.chmod(0o755)
    done = subprocess.run(
        ["make", "test-endpoint", f"BIN={tmp_path}", "STAMP=", "ON=lag", "TESTS=tests/cli", *given],
        # Nothing of the make that may run this test: with its flags the one here reports folders.
        env={k: v for k, v in os.environ.items() if not k.startswith(("COSMOS_TEST_", "MAKE"))},
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    command, *variables = done.stdout.splitlines()
    assert command.startswith("-m tests.support.endpoints --on lag")
    assert command.endswith("tests/cli")
    expected = given or ["ENDPOINT=", "KEY=", "LIKE="]
    assert variables == [f"COSMOS_TEST_{each}" for each in sorted(expected)]


def test_one_tag_of_the_container_is_named_once():
    image = r"azure-cosmos-emulator:(\S+)"
    compose = (ROOT / "emulator" / "compose.yaml").read_text()
    (tag,) = re.findall(image, compose)
    assert re.fullmatch(r"vnext-EN\d{8}", tag)
    for workflow in (ROOT / ".github" / "workflows").glob("*.yml"):
        assert re.findall(image, workflow.read_text()) == []


def test_the_workflow_runs_what_people_run():
    weekly = (ROOT / ".github" / "workflows" / "weekly.yml").read_text()
    assert "- run: make test-container" in weekly
    assert "run: make test-endpoint" in weekly
