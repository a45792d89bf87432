"""`python -m cosmos_emulator`: starts, prints its address, stops, and explains mistakes."""

import signal
import socket
import subprocess
import sys
import time
import urllib.request

import pytest
from azure.cosmos import CosmosClient, PartitionKey


def start(*arguments):
    command = [sys.executable, "-m", "cosmos_emulator", *arguments]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def refusal(*arguments):
    return failure(*arguments, code=2)


def failure(*arguments, code=1):
    process = start(*arguments)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == code
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


def test_its_replicas_lag_on_request():
    with start("--port", "0", "--lag", "inf") as process:
        endpoint = process.stdout.readline().split()[-1]
        key = process.stdout.readline().split()[-1]
        with CosmosClient(endpoint, key) as writer, CosmosClient(endpoint, key) as reader:
            database = writer.create_database("db")
            container = database.create_container("c", partition_key=PartitionKey("/pk"))
            container.create_item({"id": "a", "pk": "x"})
            stale = reader.get_database_client("db").get_container_client("c")
            assert len(list(container.read_all_items())) == 1
            assert list(stale.read_all_items()) == []
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=60)


def test_a_lag_that_makes_no_sense_is_named():
    assert "0.5-0.1" in refusal("--port", "0", "--lag", "0.5-0.1")
    assert "soon" in refusal("--port", "0", "--lag", "soon")


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


def test_other_machines_are_served_only_on_request_and_with_a_key_of_its_own():
    assert "--public-key" in failure("--host", "0.0.0.0")


def test_a_name_that_leads_here_is_refused_unless_it_is_allowed():
    def status(endpoint, host):
        with pytest.raises(urllib.error.HTTPError) as info:
            urllib.request.urlopen(urllib.request.Request(endpoint, headers={"Host": host}))
        info.value.close()
        return info.value.code

    arguments = ["--host", "0.0.0.0", "--public-key", "--allow-host", "emulator"]
    with start("--port", "0", *arguments) as process:
        endpoint = process.stdout.readline().split()[-1]
        assert status(endpoint, "evil.example") == 403
        assert status(endpoint, "emulator:8081") == 401  # it may come in; the signature is missing
        assert status(endpoint, "localhost:8081") == 401
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=60)


def test_the_data_page_is_served_on_request():
    with start("--port", "0", "--explorer") as process:
        address = [process.stdout.readline() for _ in range(4)][-1].split()[-1]
        with urllib.request.urlopen(address) as answer:
            assert answer.status == 200
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=60)


def test_latency_makes_answers_late():
    assert "not a number of seconds" in refusal("--latency", "soon")
    with start("--port", "0", "--latency", "0.2") as process:
        endpoint = process.stdout.readline().split()[-1]
        began = time.monotonic()
        with pytest.raises(urllib.error.HTTPError, match="401"):
            urllib.request.urlopen(endpoint)
        assert time.monotonic() - began >= 0.2
        process.terminate()
