"""The parts of the benchmarks whose mistakes nobody would notice: the proxy and its counts."""

import asyncio
import time
from xml.etree import ElementTree

from benchmarks.cosmos import InProcess
from benchmarks.material import event, history
from benchmarks.plots import bars
from benchmarks.proxy import Exchange, Proxy, Traffic
from benchmarks.results import Plot


async def echo(reader, writer):
    while data := await reader.read(65536):
        writer.write(data)
    writer.close()


async def test_proxy_passes_bytes_on_unchanged_and_counts_round_trips():
    server = await asyncio.start_server(echo, "127.0.0.1", 0)
    proxy = Proxy()
    await proxy.start()
    port = await proxy.route(server.sockets[0].getsockname()[1], round_trip=0.002)
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        async with proxy.watch(port) as traffic:
            for message in (b"one", b"two", b"three"):
                start = time.monotonic()
                writer.write(message)
                assert await reader.readexactly(len(message)) == message
                assert time.monotonic() - start >= 0.002
        assert traffic == Traffic(requests=3, round_trips=3, up=11, down=11)
        big = bytes(range(256)) * 4096
        writer.write(big)
        assert await reader.readexactly(len(big)) == big
    finally:
        writer.close()
        await writer.wait_closed()
        await proxy.stop()
        server.close()


def test_round_trips_are_the_longest_chain_of_exchanges_that_waited_for_one_another():
    together = [Exchange(0.0, 5.0, 1, 1), Exchange(0.1, 5.1, 1, 1), Exchange(0.2, 4.0, 1, 1)]
    after = [Exchange(5.2, 10.0, 1, 1)]
    unanswered = [Exchange(6.0, 0.0, 1, 0)]
    in_background = [Exchange(11.0, 20.0, 1, 1)]
    traffic = Traffic()
    traffic.fill([*together, *after, *unanswered, *in_background], until=10.5)
    assert traffic.round_trips == 2
    assert traffic.requests == 6


def test_plot_is_well_formed_whatever_the_labels():
    svg = bars(Plot("a < b & c", "ms", [("ours", 1.0), ('"theirs"', 250.0)]), "ours")
    assert ElementTree.fromstring(svg).tag.endswith("svg")


async def test_session_with_a_made_up_past_is_one_that_the_service_goes_on_with():
    peer = InProcess("ours")
    await peer.open()
    try:
        past = history(120)
        await peer.seed("long", past)
        session = await peer.get("long")
        assert [each.id for each in session.events] == [each.id for each in past]
        assert [each.content for each in session.events] == [each.content for each in past]
        await peer.service.append_event(session, event())
        assert len((await peer.get("long")).events) == 121
    finally:
        await peer.close()
