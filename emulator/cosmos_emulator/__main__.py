"""`python -m cosmos_emulator`: serve an emulator over HTTP until Ctrl-C."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import re
import signal
import ssl
import sys
from collections.abc import Callable

from cosmos_emulator.auth import EMULATOR_KEY, LOOPBACK
from cosmos_emulator.emulator import Emulator
from cosmos_emulator.errors import StorageError
from cosmos_emulator.replicas import Lag, Replicas


def announce(endpoint: str, key: str) -> None:
    """Prints the endpoint and the key."""
    print(f"endpoint  {endpoint}", f"key       {key}", "Ctrl-C stops.", sep="\n", flush=True)


def main(name: str = "cosmos-emulator", announce: Callable[[str, str], None] = announce) -> None:
    options = _parser(name).parse_args()
    if options.host not in LOOPBACK and options.key == EMULATOR_KEY and not options.public_key:
        sys.exit(
            f"{name}: beyond loopback the server needs a key of its own (--key), because the "
            "default one is public; --public-key uses it all the same"
        )
    try:
        from cosmos_emulator.server import PortInUse
    except ModuleNotFoundError as missing:  # installed without the extra "server"
        sys.exit(f"{name}: {missing}")
    try:
        with (
            Emulator(
                options.path,
                key=options.key,
                partitions=options.partitions,
                serverless=options.serverless,
                enforce_throughput=options.enforce_throughput,
                replicas=None if options.lag is None else Replicas(options.lag, seed=options.seed),
                like=options.like,
                lenient=options.lenient,
            ) as emulator,
            contextlib.suppress(KeyboardInterrupt),
        ):
            emulator.faults.latency = options.latency
            asyncio.run(_serve(emulator, options, _tls(options.tls), announce))
    except (StorageError, PortInUse, TlsError, ValueError) as error:
        sys.exit(f"{name}: {error}")


def _parser(name: str) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog=name,
        description="A Cosmos DB emulator on loopback, with its documents in a SQLite file.",
        epilog=f"Example: {name} --port 8081 --path data.db",
    )
    parser.add_argument("--port", type=int, default=8081, help="default: 8081; 0: any free port")
    parser.add_argument(
        "--explorer",
        action="store_true",
        help="serve a page to look at the data; prints its address",
    )
    parser.add_argument("--path", default=":memory:", help="the SQLite file; default: in memory")
    parser.add_argument("--key", default=EMULATOR_KEY, help="the master key, base64")
    parser.add_argument(
        "--partitions", type=int, default=1, help="physical partitions of each new container"
    )
    parser.add_argument(
        "--lag",
        type=_lag,
        metavar="SECONDS",
        help="seconds by which replicas lag: 0.5, a range such as 0-0.5, or inf",
    )
    parser.add_argument("--seed", type=int, default=0, help="seed for the random lags of --lag")
    parser.add_argument(
        "--latency",
        type=_seconds,
        default=0.0,
        metavar="SECONDS",
        help="seconds by which every answer is late, as in a network; default: 0",
    )
    parser.add_argument(
        "--like",
        metavar="NAME",
        help="behave as another server: vnext, Microsoft's container; vnext,-no-304,+feed-500"
        " changes single deviations",
    )
    parser.add_argument(
        "--serverless", action="store_true", help="an account without provisioned throughput"
    )
    parser.add_argument(
        "--enforce-throughput",
        action="store_true",
        help="429 beyond the RU/s of a container, a database or a serverless partition",
    )
    parser.add_argument(
        "--lenient",
        action="store_true",
        help="answer queries that a client has to merge, as long as there is one partition",
    )
    parser.add_argument(
        "--host", default=LOOPBACK[1], help="the address to listen on; default: loopback only"
    )
    parser.add_argument(
        "--allow-host",
        action="append",
        default=[],
        metavar="NAME",
        help="serve requests addressed to this name, besides those of loopback; * for any",
    )
    parser.add_argument(
        "--public-key", action="store_true", help="listen beyond loopback with the default key"
    )
    parser.add_argument("--tls", metavar="FILE", help="serve https; FILE has certificate and key")
    return parser


def _seconds(text: str) -> float:
    seconds = float(text) if re.fullmatch(r"\d*\.?\d+", text) else -1.0
    if seconds < 0:
        raise argparse.ArgumentTypeError(f"{text}: not a number of seconds")
    return seconds


def _lag(text: str) -> Lag:
    low, dash, high = text.partition("-")
    try:
        lag: Lag = (float(low), float(high)) if dash else float(low)
        Replicas(lag)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text}: not a number of seconds, or two") from None
    return lag


class TlsError(Exception):
    """The certificate cannot be used."""


def _tls(path: str | None) -> ssl.SSLContext | None:
    if path is None:
        return None
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    try:
        context.load_cert_chain(path)
    except OSError as error:
        raise TlsError(f"{path}: not a certificate with its key ({error})") from error
    return context


async def _serve(
    emulator: Emulator,
    options: argparse.Namespace,
    tls: ssl.SSLContext | None,
    announce: Callable[[str, str], None],
) -> None:
    from cosmos_emulator.explorer.pages import Explorer
    from cosmos_emulator.server import Server

    stop = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        # Not every platform has signal handlers on its loop; Ctrl-C still interrupts there.
        with contextlib.suppress(NotImplementedError):
            asyncio.get_running_loop().add_signal_handler(number, stop.set)
    explorer = Explorer(emulator) if options.explorer else None
    server = Server(
        emulator,
        options.port,
        tls,
        host=options.host,
        allowed_hosts=options.allow_host,
        explorer=explorer,
    )
    endpoint = await server.start()
    announce(endpoint, emulator.key)
    if explorer is not None:
        print(f"explorer  {endpoint.rstrip('/')}{explorer.path}", flush=True)
    try:
        await stop.wait()
    finally:
        await server.stop()


if __name__ == "__main__":
    main()
