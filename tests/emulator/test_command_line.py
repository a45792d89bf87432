"""``python -m cosmos_emulator``: starts, says where, stops, and explains what is wrong."""

import signal
import socket
import subprocess
import sys
import urllib.request

import pytest


def start(*arguments):
    command = [sys.executable, "-m", "cosmos_emulator", *arguments]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def failure(*arguments):
    process = start(*arguments)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 1
    assert "Traceback" not in errors
    return errors


def test_it_prints_where_it_listens_and_stops_on_ctrl_c(tmp_path):
    path = tmp_path / "data.db"
    with start("--port", "0", "--path", str(path)) as process:
        endpoint = process.stdout.readline().split()[-1]
        key = process.stdout.readline().split()[-1]
        assert endpoint.startswith("http://127.0.0.1:")
        assert len(key) == 88
        with pytest.raises(urllib.error.HTTPError, match="401"):
            urllib.request.urlopen(endpoint)
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=60)
    assert (process.returncode, errors) == (0, "")
    assert path.exists()


def test_a_port_in_use_is_named():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert f"port {port} is in use" in failure("--port", str(port))


def test_a_foreign_file_is_named(tmp_path):
    path = tmp_path / "letter.txt"
    path.write_text("Dear aunt, " * 100)
    assert "letter.txt: not a usable SQLite database" in failure("--port", "0", "--path", str(path))


def test_a_bad_certificate_and_a_bad_key_are_named(tmp_path):
    assert "none.pem" in failure("--port", "0", "--tls", str(tmp_path / "none.pem"))
    assert "base64" in failure("--port", "0", "--key", "short!")
