"""Azurite, Microsoft's emulator of Blob Storage: started on a free port, ended with its process."""

from __future__ import annotations

import contextlib
import datetime
import os
import shutil
import signal
import socket
import subprocess
import time
import uuid
from collections.abc import Iterator
from pathlib import Path

from azure.storage.blob import (
    BlobServiceClient,
    ContainerClient,
    ContainerSasPermissions,
    generate_container_sas,
)

ACCOUNT = "devstoreaccount1"
# Azurite's well-known key: published by Microsoft, and not a secret.
KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
ROOT = Path(__file__).parents[2]


def command() -> str:
    """`make test-blobs` installs Azurite into .azurite. AZURITE names another one."""
    here = ROOT / ".azurite" / "node_modules" / ".bin" / "azurite-blob"
    found = os.environ.get("AZURITE") or (str(here) if here.exists() else None)
    found = found or shutil.which("azurite-blob")
    assert found, "there is no azurite-blob: run `make test-blobs`"
    return found


class Azurite:
    def __init__(self, endpoint: str, process: subprocess.Popen[bytes]) -> None:
        self.endpoint = endpoint
        self._process = process
        self.connection_string = (
            f"DefaultEndpointsProtocol=http;AccountName={ACCOUNT};AccountKey={KEY};"
            f"BlobEndpoint={endpoint};"
        )

    def behind(self, port: int) -> Azurite:
        """The same, reached through a proxy on this port."""
        return Azurite(f"http://127.0.0.1:{port}/{ACCOUNT}", self._process)

    @contextlib.contextmanager
    def stopped(self) -> Iterator[None]:
        """A block in which it takes connections and does not answer."""
        self._process.send_signal(signal.SIGSTOP)
        try:
            yield
        finally:
            self._process.send_signal(signal.SIGCONT)

    def container(self) -> ContainerClient:
        """A new container, made with the plain SDK."""
        name = f"c{uuid.uuid4().hex}"
        return BlobServiceClient.from_connection_string(self.connection_string).create_container(
            name
        )

    def url(self, container: str, *, read_only: bool = False) -> str:
        """The URL of the container, with a signature that grants access."""
        may = ContainerSasPermissions(
            read=True, list=True, write=not read_only, create=not read_only, delete=not read_only
        )
        signature = generate_container_sas(
            ACCOUNT,
            container,
            account_key=KEY,
            permission=may,
            expiry=datetime.datetime.now(datetime.UTC) + datetime.timedelta(hours=1),
        )
        return f"{self.endpoint}/{container}?{signature}"


@contextlib.contextmanager
def running(folder: Path) -> Iterator[Azurite]:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    options = "--inMemoryPersistence --skipApiVersionCheck --disableTelemetry --silent"
    with (folder / "azurite.log").open("wb") as log:
        process = subprocess.Popen(
            [command(), *options.split(), "--blobHost", "127.0.0.1", "--blobPort", str(port)],
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
        )
    try:
        _wait(process, port, folder / "azurite.log")
        yield Azurite(f"http://127.0.0.1:{port}/{ACCOUNT}", process)
    finally:
        process.terminate()
        process.wait(30)


def _wait(process: subprocess.Popen[bytes], port: int, log: Path) -> None:
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and process.poll() is None:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
            return
        time.sleep(0.1)
    raise AssertionError("azurite did not start:\n" + log.read_text())
