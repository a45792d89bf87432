"""The process that is killed: writes to the emulator's file and prints what was acknowledged.

    python writer.py FILE FIRST WRITES

Creates, replaces, deletes and batches in turn, like a service would. A line is printed only after
the answer: `+ id version` for what is stored now, `- id` for what was deleted.
"""

from __future__ import annotations

import sys

from azure.cosmos import PartitionKey

from cosmos_emulator import Emulator
from tests.support.raw import raw_client


def say(*what: object) -> None:
    sys.stdout.write(" ".join(map(str, what)) + "\n")
    sys.stdout.flush()


def main(path: str, first: int, writes: int) -> None:
    with (
        Emulator(path) as emulator,
        raw_client(emulator) as client,
    ):
        database = client.create_database_if_not_exists("db")
        container = database.create_container_if_not_exists("c", PartitionKey("/pk"))
        say("ready")
        number = first
        while number < first + writes:
            name, pk = str(number), f"p{number % 5}"
            container.create_item({"id": name, "pk": pk, "version": 1, "text": "x" * 500})
            say("+", name, 1)
            if number % 3 == 0:
                container.replace_item(name, {"id": name, "pk": pk, "version": 2})
                say("+", name, 2)
            if number % 7 == 0:
                container.delete_item(name, pk)
                say("-", name)
            if number % 11 == 0:
                names = [f"{number}-{part}" for part in range(3)]
                create = [("create", ({"id": each, "pk": pk, "version": 1},)) for each in names]
                container.execute_item_batch(create, pk)
                say("=", *names)
            number += 1
        say("done")


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
