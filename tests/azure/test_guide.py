"""docs/azure.md is correct."""

import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
GUIDE = (ROOT / "docs/azure.md").read_text()
SHELL = re.findall(r"```bash\n(.*?)```", GUIDE, re.DOTALL)


@pytest.mark.parametrize("block", SHELL)
def test_shell_commands_parse(block):
    subprocess.run(["bash", "-n"], input=block, text=True, check=True)


def test_variables_are_set_before_they_are_used():
    known = {"RANDOM", "SESSION_SERVICE_URI"}  # of bash, and of the container
    for line in "\n".join(SHELL).splitlines():
        used = set(re.findall(r"\$([A-Z_]+|provider)\b", line)) - {"provider"}
        assert used <= known, line
        known |= set(re.findall(r"^([A-Z_]+)=", line))


def test_parameters_are_those_of_the_bicep_file():
    declared = set(re.findall(r"^param (\w+)", (ROOT / "deploy/main.bicep").read_text(), re.M))
    table = "\n".join(line for line in GUIDE.splitlines() if line.startswith("| `"))
    named = {word for word in re.findall(r"`(\w+)`", table) if re.search("[a-z][A-Z]", word)}
    assert named | {"capacity", "location"} >= declared
    assert set(re.findall(r"--parameters (\w+)=", GUIDE)) <= declared


def test_files_that_it_names_exist():
    for path in re.findall(r"(?:deploy|examples|tests)/[\w./-]+", GUIDE):
        assert (ROOT / path.rstrip(".")).exists(), path
