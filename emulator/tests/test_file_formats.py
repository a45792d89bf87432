"""Files that this emulator does not know are refused, and left alone."""

import sqlite3
import subprocess
import sys

import pytest

from cosmos_emulator import Emulator, ForeignFile, StorageError


@pytest.fixture
def path(tmp_path):
    return tmp_path / "data.db"


@pytest.mark.parametrize(
    ("version", "message"),
    [
        (99, r"newer version of this emulator \(its format is 99"),
        (1, "a format that this emulator does not know; nothing was changed"),
        (0, "a format that this emulator does not know; nothing was changed"),
    ],
)
def test_a_file_in_another_format_is_refused_and_left_alone(path, version, message):
    Emulator(path).close()
    connection = sqlite3.connect(path)
    connection.execute(f"PRAGMA user_version = {version}")
    connection.close()
    before = path.read_bytes()
    with pytest.raises(StorageError, match=message):
        Emulator(path)
    assert path.read_bytes() == before
    assert [p.name for p in path.parent.iterdir()] == ["data.db"]


def test_processes_that_make_a_file_at_once_all_get_it(path):
    program = "import sys; from cosmos_emulator import Emulator; Emulator(sys.argv[1]).close()"
    command = [sys.executable, "-c", program, str(path)]
    processes = [subprocess.Popen(command) for _ in range(3)]
    assert [process.wait(60) for process in processes] == [0, 0, 0]


def test_a_file_of_adk_itself_is_distinguished_from_a_damaged_one(path):
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE sessions (app_name TEXT, user_id TEXT, id TEXT)")
    connection.close()
    with pytest.raises(ForeignFile, match="SQLite database of another program"):
        Emulator(path)
