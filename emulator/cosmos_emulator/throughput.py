"""Throughput that is enforced: each physical partition may use its share of the RU/s, no more.

Time is cut into seconds. A request is admitted as long as its partition has used less than its
share in this second. Its charge is known when it is done, and may exceed the share: what is too
much is taken from the seconds that follow. Until then every request to the partition gets 429.

    standard    the RU/s of the container, divided by its partitions
    autoscale   the same with the maximum; the answers say up to where the hour has scaled
    shared      the RU/s of the database, for all its containers that have none of their own
    serverless  5,000 RU/s for each partition
"""

from __future__ import annotations

import math
import threading
from dataclasses import dataclass, field

from cosmos_emulator.catalog import Catalog
from cosmos_emulator.clock import Clock
from cosmos_emulator.containers import Container
from cosmos_emulator.errors import CosmosError, TooManyRequests
from cosmos_emulator.messages import Document, Request, Response
from cosmos_emulator.partition_keys import parse_header
from cosmos_emulator.ranges import count_for, overlapping
from cosmos_emulator.storage import Storage

SERVERLESS = 5_000  # RU/s of a partition
LOWEST = 0.1  # autoscale never scales below a tenth of its maximum
HOUR = 3600
# The service has no such header: it reports this figure as the metric "Autoscaled RU".
SCALED_HEADER = "x-ms-emulator-scaled-throughput"


def maximum(offer: Document) -> int:
    """The RU/s that an offer allows at most."""
    autoscale = offer.get("offerAutopilotSettings")
    found: int = autoscale["maxThroughput"] if autoscale else offer["offerThroughput"]
    return found


@dataclass(slots=True)
class Partition:
    """What one physical partition has used in this second, with what earlier ones left over."""

    share: float
    second: int = 0
    used: float = 0.0

    def move_to(self, second: int) -> None:
        if second > self.second:
            self.used = max(0.0, self.used - self.share * (second - self.second))
            self.second = second

    def wait(self, now: float) -> float:
        """Seconds until a request is admitted."""
        self.move_to(math.floor(now))
        if self.used < self.share:
            return 0.0
        return self.second + self.used // self.share - now


@dataclass(slots=True)
class Provision:
    """The throughput of a container or a database: its partitions, and this hour's peak."""

    rate: float  # of all partitions
    count: int
    autoscale: bool
    partitions: dict[int, Partition] = field(default_factory=dict)
    hour: int = 0
    peak: float = 0.0  # of the share of the partition that was used most in one second

    @property
    def terms(self) -> tuple[float, int, bool]:
        return self.rate, self.count, self.autoscale

    def partition(self, number: int) -> Partition:
        number %= self.count
        if number not in self.partitions:
            self.partitions[number] = Partition(self.rate / self.count)
        return self.partitions[number]

    def scaled(self) -> int:
        return math.ceil(self.rate * max(LOWEST, min(1.0, self.peak)))


class Meter:
    """One admitted request, until its charge is known."""

    def __init__(self, owner: Throughput, provision: Provision, partitions: list[Partition]):
        self._owner = owner
        self._provision = provision
        self._partitions = partitions

    def charge(self, response: Response) -> None:
        self._owner.take(self._provision, self._partitions, response.charge)
        if self._provision.autoscale:
            response.headers[SCALED_HEADER] = str(self._provision.scaled())


class Throughput:
    """Admits the requests for items, and takes their charges from the partitions they are for."""

    def __init__(self, storage: Storage, catalog: Catalog, clock: Clock, serverless: bool) -> None:
        self._storage = storage
        self._catalog = catalog
        self._clock = clock
        self._serverless = serverless
        self._lock = threading.Lock()
        self._provisions: dict[str, Provision] = {}  # by the rid of their container or database
        # The rid of a container and the number of its partitions, and whose throughput it uses.
        self._owners: dict[tuple[str, int], str] = {}

    def admit(self, request: Request) -> Meter | None:
        """429 if a partition of the request has nothing left; None if nothing is to be paid."""
        if request.container is None or request.resource != "docs":
            if request.method != "GET":
                self._forget()  # of a container that is gone, of an offer that is another now
            return None
        if request.operation == "query plan":
            return None
        try:
            with self._storage.reading():
                container = self._catalog.container_of(request)
                numbers = _numbers(request, container)
                provision = self._provision(container)
        except CosmosError:
            return None  # The route refuses it in its own words.
        with self._lock:
            now = self._clock.elapsed()
            partitions = [provision.partition(number) for number in numbers]
            wait = max(partition.wait(now) for partition in partitions)
        if wait > 0:
            raise TooManyRequests(math.ceil(wait * 1000))
        return Meter(self, provision, partitions)

    def take(self, provision: Provision, partitions: list[Partition], charge: float) -> None:
        with self._lock:
            second = math.floor(self._clock.elapsed())
            hour = self._clock.now() // HOUR
            if hour != provision.hour:
                provision.hour, provision.peak = hour, 0.0
            for partition in partitions:
                partition.move_to(second)
                partition.used += charge / len(partitions)
                provision.peak = max(provision.peak, partition.used / partition.share)

    def _forget(self) -> None:
        with self._lock:
            self._owners.clear()

    def _provision(self, container: Container) -> Provision:
        count = len(container.ranges)
        owner = self._owners.get((container.rid, count))
        if owner is not None:
            return self._provisions[owner]
        if self._serverless:
            owner, made = container.rid, Provision(SERVERLESS * count, count, False)
        else:
            owner, made = self._provisioned(container)
        with self._lock:
            kept = self._provisions.get(owner)
            if kept is None or kept.terms != made.terms:
                self._provisions[owner] = made
            self._owners[container.rid, count] = owner
            return self._provisions[owner]

    def _provisioned(self, container: Container) -> tuple[str, Provision]:
        count = len(container.ranges)
        offer = self._catalog.offer_of(container.rid)
        if offer is not None:
            autoscale = "offerAutopilotSettings" in offer
            return container.rid, Provision(maximum(offer), count, autoscale)
        offer = self._catalog.offer_of(container.database_rid) or {"offerThroughput": 400}
        rate = maximum(offer)
        # Its containers are spread over the partitions of the database.
        made = Provision(rate, count_for(rate), "offerAutopilotSettings" in offer)
        return container.database_rid, made


def _numbers(request: Request, container: Container) -> list[int]:
    """The physical partitions that a request is for. One that names none is for all."""
    ranges = container.ranges
    header = request.headers.get("x-ms-documentdb-partitionkey")
    name = request.headers.get("x-ms-documentdb-partitionkeyrangeid")
    touched = ranges
    if len(ranges) > 1 and header is not None:
        key, size = parse_header(header)
        if 0 < size < len(container.keys.paths):  # a prefix of a hierarchical key
            low = container.keys.epk(key)
            touched = overlapping(ranges, low, low + "FF")
        else:
            touched = container.ranges_of(container.keys.of_header(header))
    elif len(ranges) > 1 and name is not None:
        touched = (container.range_named(name),)
    return [ranges.index(each) for each in touched]
