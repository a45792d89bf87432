"""The wheels in environments of their own, with the dependencies that pip installs (make
test-packaging)."""

from __future__ import annotations

import json
import subprocess
import tarfile
import venv
from pathlib import Path

import pytest

from tests.packaging.test_distributions import USE

pytestmark = pytest.mark.timeout(1200)  # google-adk and its dependencies are downloaded


class Environment:
    def __init__(self, folder: Path) -> None:
        venv.create(folder, with_pip=True)
        self._bin = folder / "bin"

    def run(self, *command: str, folder: Path | None = None) -> subprocess.CompletedProcess[str]:
        program, *arguments = command
        return subprocess.run(
            [self._bin / program, *arguments],
            capture_output=True,
            text=True,
            cwd=folder or self._bin,
        )

    def install(self, *what: str) -> None:
        done = self.run("python", "-m", "pip", "install", "-q", *what)
        assert done.returncode == 0, done.stderr

    def packages(self) -> set[str]:
        done = self.run("python", "-m", "pip", "list", "--format=json")
        return {each["name"].lower() for each in json.loads(done.stdout)}

    def test(self, text: str) -> str:
        """What pytest reports for a test, with only the plugins of installed packages."""
        self._bin.joinpath("test_it.py").write_text(text)
        return self.run("python", "-m", "pytest", "-q", "test_it.py").stdout

    def use(self) -> str:
        done = self.run("python", "-c", USE)
        assert done.returncode == 0, done.stderr
        file, result = done.stdout.splitlines()
        assert "site-packages" in file
        return result


@pytest.fixture(scope="module")
def environment(tmp_path_factory, wheel) -> Environment:
    environment = Environment(tmp_path_factory.mktemp("environment"))
    environment.install(str(wheel))
    return environment


def test_a_plain_install_is_whole_and_light_and_extras_add_to_it(
    environment, wheel, emulator_wheel
):
    assert environment.run("python", "-m", "pip", "check").returncode == 0
    assert environment.packages().isdisjoint({"azure-identity", "cosmos-emulator", "pytest"})
    assert "pip install 'cosmosservice[emulator]'" in environment.use()

    environment.install(f"{wheel}[emulator]", str(emulator_wheel))
    assert environment.use() == "1"

    environment.install("pytest")
    tested = environment.test("def test_it(cosmos_sessions): assert cosmos_sessions.account")
    assert "1 passed" in tested

    environment.install(f"{wheel}[cli,entra]", str(emulator_wheel))
    assert environment.packages() >= {"azure-identity", "click", "rich"}
    helped = environment.run("cosmosservice", "--help")
    assert (helped.returncode, helped.stderr) == (0, "")
    assert "migrate" in helped.stdout


@pytest.mark.parametrize(
    ("name", "tests"),
    [
        ("cosmosservice", ["tests/contract/test_append.py", "emulator/tests/test_items.py"]),
        ("cosmos_emulator", ["tests/test_items.py"]),
    ],
)
def test_the_tests_in_an_sdist_pass(environment, dist, emulator_wheel, tmp_path, name, tests):
    plugins = ("pytest-asyncio", "pytest-timeout", "hypothesis")
    environment.install("pytest", *plugins, f"{emulator_wheel}[azure,server]")
    (sdist,) = dist.glob(f"{name}-*.tar.gz")
    with tarfile.open(sdist) as archive:
        archive.extractall(tmp_path, filter="data")
    (folder,) = tmp_path.iterdir()
    done = environment.run("python", "-m", "pytest", *tests, folder=folder)
    assert done.returncode == 0, done.stdout
    assert "passed" in done.stdout
