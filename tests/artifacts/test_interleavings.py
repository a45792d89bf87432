"""Concurrent saves, deletes and sweeps: every order of their requests.

In every order, versions have no gaps and all of them load, what was saved after a delete is there,
and nothing in use was removed.
"""

from __future__ import annotations

import asyncio
import os

import pytest

from tests.artifacts.interleaving import Schedule, every_order
from tests.artifacts.kinds import blob
from tests.artifacts.processes import THIS, Process, bytes_of, documents, garbage, store, view

SMALL, SHORT = bytes_of("a", 12), bytes_of("s", 15)
MEDIUM = bytes_of("m", 200)  # in the version's document, which then has a header
LARGE, OTHER = bytes_of("b", 500), bytes_of("c", 400)
PIECE = bytes_of("p", 300)  # one piece
# How often a process may be interrupted. `make artifacts-matrix` tries more.
BOUND = int(os.environ.get("ARTIFACT_INTERRUPTIONS", "1"))
DAYS = 2 * 24 * 3600.0


def save(process, data, name="f"):
    return process.service.save_artifact(**THIS, filename=name, artifact=blob(data))


async def delete(process, name="f"):
    await process.service.delete_artifact(**THIS, filename=name)


async def play(schedule: Schedule, prepare, *work):
    """Prepares, runs the processes concurrently, and returns what each was told, what a reader sees
    then, and what a sweep leaves."""
    emulator = store()
    first = Process(emulator)
    await prepare(first)
    processes = [first if known else Process(emulator) for known, _ in work]
    for process in processes:
        await process.service.list_artifact_keys(**THIS)  # connects
    for number, process in enumerate(processes):
        schedule.hold(number, process)
    answers = await schedule.run(
        *(each(process) for process, (_, each) in zip(processes, work, strict=True))
    )
    for process in processes:
        process.wire.hold = None
    reader = processes[0]
    seen = await view(reader.service)
    emulator.clock.advance(DAYS)
    await reader.service.sweep()
    assert await view(reader.service) == seen, "a sweep changed what readers see"
    assert garbage(emulator) == []
    await asyncio.sleep(0)
    return answers, seen, documents(emulator)


def orders(prepare, *work, bound=BOUND):
    return every_order(lambda schedule: play(schedule, prepare, *work), bound)


async def nothing(process):
    pass


async def has_small(process):
    await save(process, SMALL)


async def has_large(process):
    await save(process, LARGE)


def test_two_savers_of_a_new_name_get_two_versions():
    outcomes = set()
    for (one, two), seen, _ in orders(
        nothing, (True, lambda p: save(p, SMALL)), (False, lambda p: save(p, SHORT)), bound=None
    ):
        assert {one, two} == {0, 1}
        assert seen["f"][one] == SMALL
        assert seen["f"][two] == SHORT
        outcomes.add((one, two))
    assert outcomes == {(0, 1), (1, 0)}


@pytest.mark.parametrize("known", [True, False])
@pytest.mark.parametrize("data", [SHORT, MEDIUM], ids=["small", "medium"])
def test_a_save_beside_a_delete_is_deleted_or_the_first_of_a_new_life(known, data):
    outcomes = set()
    for (version, _), seen, _ in orders(
        has_small, (known, lambda p: save(p, data)), (False, delete), bound=BOUND + 1
    ):
        assert (version, seen) in [(1, {}), (0, {"f": [data]})]
        outcomes.add(version)
    assert outcomes == {0, 1}


def test_two_deletes_beside_a_save_of_a_version_with_a_header():
    async def has_medium(process):
        await save(process, MEDIUM)

    for (_, version, _), seen, stored in orders(
        has_medium, (False, delete), (True, lambda p: save(p, MEDIUM)), (False, delete)
    ):
        assert (version, seen) in [(1, {}), (0, {}), (0, {"f": [MEDIUM]})]
        headers = [each for each in stored if each["document_type"] == "header"]
        assert len(headers) == len(seen)


@pytest.mark.parametrize(("data", "pieces"), [(PIECE, 1), (LARGE, 2)], ids=["one", "two"])
def test_saving_the_same_bytes_beside_a_delete_of_them_never_loses_them(data, pieces):
    for (version, _), seen, stored in orders(
        lambda p: save(p, data), (False, lambda p: save(p, data, "g")), (False, delete)
    ):
        assert version == 0
        assert seen == {"g": [data]}
        assert len([each for each in stored if each["document_type"] == "piece"]) == pieces


def test_two_savers_of_the_same_bytes_beside_a_delete_of_them():
    for (*versions, _), seen, stored in orders(
        lambda p: save(p, PIECE),
        (False, lambda p: save(p, PIECE, "g")),
        (False, lambda p: save(p, PIECE, "h")),
        (False, delete),
    ):
        assert versions == [0, 0]
        assert seen == {"g": [PIECE], "h": [PIECE]}
        assert 1 <= len([each for each in stored if each["document_type"] == "piece"]) <= 2


def test_saving_a_new_version_of_the_same_bytes_beside_a_delete():
    for (version, _), seen, _ in orders(
        has_large, (True, lambda p: save(p, LARGE)), (False, delete)
    ):
        assert (version, seen) in [(1, {}), (0, {"f": [LARGE]})]


def test_a_sweep_beside_a_save_takes_nothing_of_it():
    for (version, _), seen, _ in orders(
        has_large, (False, lambda p: save(p, OTHER)), (False, lambda p: p.service.sweep())
    ):
        assert version == 1
        assert seen == {"f": [LARGE, OTHER]}


def test_a_purge_beside_a_save_leaves_all_of_the_save_or_nothing():
    async def purge(process):
        return await process.service.purge_artifacts(**THIS)

    for (version, _), seen, _ in orders(
        has_large, (False, lambda p: save(p, LARGE)), (False, purge)
    ):
        assert (version, seen) in [(1, {}), (0, {"f": [LARGE]}), (0, {})]


def test_two_deleters_and_a_saver():
    for (version, *_), seen, _ in orders(
        has_small, (True, lambda p: save(p, SHORT)), (False, delete), (False, delete)
    ):
        assert (version, seen) in [(1, {}), (0, {"f": [SHORT]}), (0, {})]
