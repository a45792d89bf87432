"""What some numbers of daily users cost a month, from the measured charges and Azure's prices."""

from __future__ import annotations

import math
from typing import NamedTuple

from docs.generate.charges import measured
from docs.generate.pages import table

USERS = (100, 10_000, 1_000_000)

# What each of them does in a day: one session.
TURNS = 10
EVENTS = 4  # of a turn, 1 KB each
STORED_EVENT, STORED_SESSION = 1.4e3, 1.2e3  # bytes, with ids and system properties
INDEX = 1.1  # the index is billed as storage too; few paths are indexed
KEPT = 90  # days

# Dollars: list prices of US regions (docs/cost.md says of when).
SERVERLESS = 0.25  # a million RU
AUTOSCALE = 0.012  # 100 RU/s for an hour
STORAGE = 0.25  # a GB for a month
DAYS, HOURS = 30.4, 730

# How the load of a day is spread: hours, and how many times the average they have.
PROFILE = ((1, 3.0), (5, 2.0), (8, 1.0), (10, 0.3))
# Autoscale bills the highest second of an hour: the mean and 3.5 standard deviations, for requests
# of this size that come independently of each other.
REQUEST, DEVIATIONS = 6.0, 3.5
LEAST, FLOOR, PER_GB = 1_000, 0.1, 10  # of autoscale: maximum RU/s, the part billed when idle, RU/s


class Bill(NamedTuple):
    """Of a month."""

    users: int
    units: float
    gigabytes: float
    serverless: float
    autoscale: float
    storage: float

    @property
    def together(self) -> float:
        return min(self.serverless, self.autoscale) + self.storage


def units_of_a_user() -> float:
    """RU in a day."""
    cost = {each.operation: each.request_units for each in measured()}
    turn = (
        cost["get a session that this process has seen, of any length"]
        + EVENTS * cost["append an event that changes the session's state"]
        + cost["the session document that follows these appends, written once for all of them"]
    )
    return cost["create a session"] + TURNS * turn


def units_of_expiry() -> float:
    """RU of a day's documents when their ttl removes them: a delete costs what a create does, and
    a replace is both. Serverless bills it; provisioned throughput uses what is left over."""
    cost = {each.operation: each.request_units for each in measured()}
    document = (
        cost["the session document that follows these appends, written once for all of them"] / 2
    )
    return TURNS * EVENTS * cost["append an event"] + document


def bill(users: int) -> Bill:
    units = users * units_of_a_user()
    expiry = users * units_of_expiry()
    stored = TURNS * EVENTS * STORED_EVENT + STORED_SESSION
    gigabytes = users * KEPT * stored * INDEX / 1e9
    return Bill(
        users,
        units * DAYS,
        gigabytes,
        (units + expiry) * DAYS / 1e6 * SERVERLESS,
        _throughput(units / 86_400, gigabytes) / 100 * AUTOSCALE * HOURS,
        gigabytes * STORAGE,
    )


def _throughput(average: float, gigabytes: float) -> float:
    """The RU/s that autoscale bills, on average over the hours of a day."""
    highest = max(_highest(times * average) for _, times in PROFILE)
    idle = FLOOR * max(LEAST, PER_GB * gigabytes, highest)
    return sum(hours * max(idle, _highest(times * average)) for hours, times in PROFILE) / 24


def _highest(mean: float) -> float:
    return mean + DEVIATIONS * math.sqrt(mean * REQUEST)


def bills() -> str:
    rows = [
        [
            f"{each.users:,}",
            _figure(each.units / 1e6),
            _figure(each.gigabytes),
            _dollars(each.serverless),
            _dollars(each.autoscale),
            _dollars(each.storage),
            f"**{_dollars(each.together)}**",
        ]
        for each in map(bill, USERS)
    ]
    head = ["daily users", "million RU", "GB kept", "serverless", "or autoscale", "storage"]
    return table([*head, "in all"], rows)


def _dollars(value: float) -> str:
    return f"${value:.2f}" if value < 10 else f"${_figure(value)}"


def _figure(value: float) -> str:
    """With two digits that count."""
    digits = 1 - math.floor(math.log10(value))
    return f"{round(value, digits):,.{max(0, digits)}f}"
