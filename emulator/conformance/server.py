"""The server that the suites talk to: `python -m cosmos_emulator` with TLS."""

from __future__ import annotations

import contextlib
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
WORK = ROOT / ".conformance"
PORT = 8081  # Some tests know no other.


@contextlib.contextmanager
def serving(partitions: int = 1) -> Iterator[dict[str, str]]:
    """Gives the variables by which Microsoft's tests find the server.

    With the latency of a network nearby, because some want to be too impatient for it.
    """
    command = [
        sys.executable, "-m", "cosmos_emulator", "--port", str(PORT),
        "--partitions", str(partitions), "--latency", "0.003", "--tls", str(_certificate()),
    ]  # fmt: skip
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        endpoint = process.stdout.readline().split()
        if not endpoint:
            sys.exit(1)  # The emulator has said why.
        key = process.stdout.readline().split()
        try:
            yield {"ACCOUNT_HOST": endpoint[-1], "ACCOUNT_KEY": key[-1]}
        finally:
            process.terminate()


def _certificate() -> Path:
    """A certificate that nobody trusts; the SDK does not ask on loopback."""
    file = WORK / "certificate.pem"
    if not file.exists():
        WORK.mkdir(exist_ok=True)
        made = subprocess.run(
            ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "365",
             "-subj", "/CN=localhost", "-keyout", "-", "-out", "-"],
            check=True, capture_output=True, text=True,
        )  # fmt: skip
        file.write_text(made.stdout)
    return file
