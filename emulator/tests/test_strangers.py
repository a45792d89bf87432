"""What those cost who have not proved who they are: connections, and bodies of requests."""

import contextlib
import socket
from urllib.parse import urlsplit

import pytest

from cosmos_emulator import Emulator, server
from cosmos_emulator.serving import serving

from .raw import make_container, signed

HEAD = "POST /dbs/db/colls/c/docs HTTP/1.1\r\nhost: localhost\r\n"


def connected(endpoint):
    url = urlsplit(endpoint)
    return socket.create_connection((url.hostname, url.port), timeout=60)


def answer_of(connection):
    return connection.makefile("rb").readline().decode()


def test_a_connection_that_asks_nothing_is_closed(monkeypatch):
    monkeypatch.setattr(server, "IDLE_SECONDS", 0.05)
    with Emulator() as emulator, serving(emulator) as endpoint:
        for sent in (b"", HEAD.encode()):
            with connected(endpoint) as connection:
                connection.sendall(sent)
                assert connection.recv(1) == b""


def test_there_is_an_end_to_the_number_of_connections(monkeypatch):
    monkeypatch.setattr(server, "MOST_CONNECTIONS", 2)
    with Emulator() as emulator, serving(emulator) as endpoint:
        with connected(endpoint), connected(endpoint), connected(endpoint) as third:
            assert third.recv(1) == b""
        answer = ""
        while " 401 " not in answer:  # until the server has noticed that the others have left
            with connected(endpoint) as connection, contextlib.suppress(ConnectionError):
                connection.sendall(b"GET / HTTP/1.1\r\nhost: localhost\r\n\r\n")
                answer = answer_of(connection)


@pytest.mark.parametrize("length", ["content-length: 30000000", "transfer-encoding: chunked"])
def test_a_long_body_is_not_read_before_its_signature_is_checked(length):
    with Emulator() as emulator, serving(emulator) as endpoint, connected(endpoint) as connection:
        connection.sendall(f"{HEAD}{length}\r\n\r\n".encode())  # and nothing follows
        assert " 401 " in answer_of(connection)
        assert emulator.requests[-1].status == 401


def test_a_body_must_arrive_in_time(monkeypatch):
    monkeypatch.setattr(server, "BODY_SECONDS", 0.05)
    with Emulator() as emulator, serving(emulator) as endpoint, connected(endpoint) as connection:
        make_container(emulator)
        request = signed(emulator.key, "POST", "/dbs/db/colls/c/docs")
        headers = "".join(f"{name}: {value}\r\n" for name, value in request.headers.items())
        connection.sendall(f"{HEAD}{headers}content-length: 1000000\r\n\r\n{{".encode())
        assert connection.recv(1) == b""
