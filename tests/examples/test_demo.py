"""The example does what it promises: two processes, one conversation."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

EXAMPLES = Path(__file__).parents[2] / "examples"
DEMO = EXAMPLES / "agent_runner.py"


def run(folder: Path, *arguments: str) -> str:
    environment = {k: v for k, v in os.environ.items() if k != "GOOGLE_API_KEY"}
    done = subprocess.run(
        [sys.executable, DEMO, *arguments],
        cwd=folder,
        env=environment | {"PYTHONIOENCODING": "utf-8"},
        capture_output=True,
        encoding="utf-8",
        timeout=100,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stderr == ""
    return done.stdout


def test_a_second_process_goes_on_where_the_first_one_stopped(tmp_path):
    tmp_path.joinpath("demo.db").write_text("left over from an earlier run")
    first = run(tmp_path, "--fresh")
    assert "A new session" in first
    assert "calls update_num_tool(num='146')" in first
    assert "funny_sub_agent  I told my database a dark joke." in first

    second = run(tmp_path)
    assert "The same session in a new process: 10 events" in second
    assert "postAgent  Of course. You picked 146." in second
    assert "funny_sub_agent  Why did the in-memory store break up?" in second
    assert "adk_event 18 by funny_sub_agent" in second
    assert "session, revision 18" in second
    assert 'state {"favourite_num": "146"}' in second
    assert "append_event" in second
