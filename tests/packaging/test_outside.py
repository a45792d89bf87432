"""The runs on Microsoft's container and on accounts, as far as they can be seen without Docker."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


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
