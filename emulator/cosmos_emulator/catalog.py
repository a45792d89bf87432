"""Everything that is not an item: databases, containers, offers, users, scripts."""

from __future__ import annotations

import json
import sqlite3
from dataclasses import dataclass

from cosmos_emulator import charges, policies, query, rids
from cosmos_emulator.clock import Clock
from cosmos_emulator.containers import Container, complete, retention_of
from cosmos_emulator.documents import SYSTEM_PROPERTIES, check_name, dumps
from cosmos_emulator.errors import BadRequest, Conflict, Forbidden, NotFound, PreconditionFailed
from cosmos_emulator.messages import Document, Request
from cosmos_emulator.rules import Rules
from cosmos_emulator.storage import MANY, Storage

# The name of each kind of resource in a feed, and the links in its body.
FEEDS = {
    "dbs": "Databases",
    "colls": "DocumentCollections",
    "users": "Users",
    "permissions": "Permissions",
    "sprocs": "StoredProcedures",
    "triggers": "Triggers",
    "udfs": "UserDefinedFunctions",
    "conflicts": "Conflicts",
    "clientencryptionkeys": "ClientEncryptionKeys",
    "offers": "Offers",
    "docs": "Documents",
}
_CHILD_LINKS = {
    "dbs": {"_colls": "colls/", "_users": "users/"},
    "colls": {
        "_docs": "docs/",
        "_sprocs": "sprocs/",
        "_triggers": "triggers/",
        "_udfs": "udfs/",
        "_conflicts": "conflicts/",
    },
    "users": {"_permissions": "permissions/"},
}
_OFFER_OF = "kind = 'offers' AND json_extract(body, '$.offerResourceId') = ?"
_MARKS = {"sprocs": 8, "triggers": 7, "udfs": 6, "permissions": 3, "conflicts": 4}


@dataclass(slots=True)
class Resource:
    """A stored resource and its location."""

    kind: str
    rid: str
    self_link: str
    body: Document


class Catalog:
    """Reads and writes resources; caches the containers in use."""

    def __init__(
        self, storage: Storage, clock: Clock, partitions: int, rules: Rules, grace: int = 0
    ) -> None:
        self._grace = grace
        self._storage = storage
        self._clock = clock
        self._partitions = partitions
        self._rules = rules
        self._containers: dict[tuple[str, str], Container] = {}
        self._vanished: set[tuple[str, str]] = set()
        storage.on_foreign_change(self._containers.clear)

    def find(self, kind: str, parent: Resource | None, name: str) -> Resource:
        """A resource by id, or by rid as in `_self` links."""
        with self._storage.reading() as connection:
            row = connection.execute(
                "SELECT rid, body FROM resources WHERE kind = ? AND parent = ? "
                "AND (id = ? OR rid = ?)",
                [kind, parent.rid if parent else "", name, name],
            ).fetchone()
        if row is None:
            raise NotFound
        body = json.loads(row[1])
        return Resource(kind, row[0], body["_self"], body)

    def owner(self, segments: list[str]) -> Resource | None:
        """The resource that a feed belongs to."""
        resource: Resource | None = None
        for kind, name in zip(segments[::2], segments[1::2], strict=False):
            resource = self.find(kind, resource, name)
        return resource

    def container_of(self, request: Request) -> Container:
        """The container that a request is about. Call it with the storage's lock held."""
        container = self._container(request.segments[1], request.segments[3])
        intended = request.headers.get("x-ms-cosmos-intended-collection-rid")
        if intended is not None and intended != container.rid:
            raise BadRequest(
                "The container was deleted and created again since the client last looked.",
                substatus=1024,
            )
        return container

    def _container(self, database: str, name: str) -> Container:
        found = self._containers.get((database, name))
        if found is not None:
            return found
        try:
            parent = self.find("dbs", None, database)
            resource = self.find("colls", parent, name)
        except NotFound:
            if (database, name) in self._vanished:
                # The service looks names up once, and finds out from the partition.
                raise NotFound("Owner resource does not exist", substatus=1003) from None
            raise
        with self._storage.reading() as connection:
            number, ranges = connection.execute(
                "SELECT num, ranges FROM containers WHERE rid = ?", [resource.rid]
            ).fetchone()
        container = Container.load(
            number, resource.rid, parent.rid, parent.body["id"], resource.body, ranges
        )
        container.grace = self._grace
        self._containers[database, name] = container
        return container

    def create(
        self,
        kind: str,
        parent: Resource | None,
        definition: Document,
        ranges: int = 1,
        *,
        shared: bool = False,
    ) -> Resource:
        """`shared`: a container that uses the throughput of its database."""
        check_name(definition.get("id"))
        definition = _without_system_properties(definition)
        if kind == "colls":
            definition = complete(definition)
            policies.check(definition, self._rules, shared=shared)
        number = None
        with self._storage.writing() as connection:
            resource = self._insert(connection, kind, parent, definition)
            if kind == "colls":
                number = self._storage.add_container(resource.rid, max(ranges, self._partitions))
                if retention_of(definition) is not None:
                    self._storage.keep_changes(number, keep=True)
        if number is not None:
            for path in query.indexed_arrays(definition["indexingPolicy"]):
                self._storage.ensure_array_index(number, path)
        return resource

    def split(self, name: str) -> None:
        """Splits every range of the containers of this name."""
        with self._storage.writing() as connection:
            changed = connection.execute(
                "UPDATE containers SET ranges = ranges * 2 WHERE rid IN "
                "(SELECT rid FROM resources WHERE kind = 'colls' AND id = ?)",
                [name],
            )
            if not changed.rowcount:
                raise ValueError(f"there is no container {name!r}")
        self._containers.clear()

    def _insert(
        self,
        connection: sqlite3.Connection,
        kind: str,
        parent: Resource | None,
        definition: Document,
    ) -> Resource:
        ts = self._clock.now()
        try:
            cursor = connection.execute(
                "INSERT INTO resources (kind, parent, id, rid, ts, body) "
                "VALUES (?, ?, ?, ?, ?, '')",
                # The rid is made from the row's number, which is known only now.
                [
                    kind,
                    parent.rid if parent else "",
                    definition["id"],
                    f"new {definition['id']}",
                    ts,
                ],
            )
        except sqlite3.IntegrityError:
            # As recorded: the name of a container is looked up before anything is written.
            charge = 0 if kind == "colls" else charges.REFUSED_WRITE
            raise Conflict(charge=charge) from None
        number = cursor.lastrowid or 0
        rid = _rid(kind, parent, number)
        self_link = f"{parent.self_link if parent else ''}{kind}/{rid}/"
        body = {
            **definition,
            "_rid": rid,
            "_self": self_link,
            "_etag": rids.etag(0, number),
            **_CHILD_LINKS.get(kind, {}),
            "_ts": ts,
        }
        connection.execute(
            "UPDATE resources SET rid = ?, body = ? WHERE seq = ?", [rid, dumps(body), number]
        )
        return Resource(kind, rid, self_link, body)

    def replace(self, old: Resource, definition: Document, if_match: str | None) -> Resource:
        definition = _without_system_properties(definition)
        check_name(definition.get("id"))
        if old.kind == "colls":
            keeps = "keeps-unique-keys" in self._rules.deviations
            definition = _replacement(old.body, complete(definition), keeps_unique_keys=keeps)
            database = old.self_link.split("/")[1]
            shared = self.offer_of(old.rid) is None and self.offer_of(database) is not None
            policies.check(definition, self._rules, shared=shared)
            policies.check_replacement(old.body, definition)
        ts = self._clock.now()
        with self._storage.writing() as connection:
            _check_match(old, if_match)
            # A fresh number for the etag, from the same counter that names new resources.
            number = _next_number(connection)
            body = {
                **definition,
                "_rid": old.rid,
                "_self": old.self_link,
                "_etag": rids.etag(0, number),
                **_CHILD_LINKS.get(old.kind, {}),
                "_ts": ts,
            }
            try:
                connection.execute(
                    "UPDATE resources SET id = ?, ts = ?, body = ? WHERE rid = ?",
                    [definition["id"], ts, dumps(body), old.rid],
                )
            except sqlite3.IntegrityError:
                raise Conflict from None
            if old.kind == "colls":
                (container,) = connection.execute(
                    "SELECT num FROM containers WHERE rid = ?", [old.rid]
                ).fetchone()
                keep = retention_of(definition) is not None
                self._storage.keep_changes(container, keep=keep)
            self._containers.clear()
        return Resource(old.kind, old.rid, old.self_link, body)

    def delete(self, resource: Resource, if_match: str | None = None) -> None:
        """Deletes a resource and everything that belongs to it."""
        with self._storage.writing(frees=True) as connection:
            _check_match(resource, if_match)
            self._delete(connection, resource.kind, resource.rid)
            self._vanished.update(
                names
                for names, container in self._containers.items()
                if container.self_prefix.startswith(resource.self_link)
            )
            self._containers.clear()
        self._storage.erased(MANY)

    def _delete(self, connection: sqlite3.Connection, kind: str, rid: str) -> None:
        children = connection.execute(
            "SELECT kind, rid FROM resources WHERE parent = ?", [rid]
        ).fetchall()
        for child_kind, child_rid in children:
            self._delete(connection, child_kind, child_rid)
        if kind == "colls":
            (number,) = connection.execute(
                "SELECT num FROM containers WHERE rid = ?", [rid]
            ).fetchone()
            self._storage.drop_container(number)
        connection.execute("DELETE FROM resources WHERE rid = ?", [rid])
        connection.execute(f"DELETE FROM resources WHERE {_OFFER_OF}", [rid])

    def children(self, kind: str, parent: Resource | None) -> list[Document]:
        with self._storage.reading() as connection:
            rows = connection.execute(
                "SELECT body FROM resources WHERE kind = ? AND parent = ? ORDER BY seq",
                [kind, parent.rid if parent else ""],
            ).fetchall()
        return [json.loads(body) for (body,) in rows]

    def add_offer(self, resource: Resource, content: Document) -> None:
        """Records the throughput that a database or a container was created with."""
        definition = {
            "id": f"offer of {resource.rid}",
            "offerVersion": "V2",
            "offerType": "Invalid",
            "content": content,
            "resource": resource.self_link,
            "offerResourceId": resource.rid,
        }
        with self._storage.writing() as connection:
            offer = self._insert(connection, "offers", None, definition)
            # An offer's id is its own rid, which is known only now.
            connection.execute(
                "UPDATE resources SET id = rid, body = json_set(body, '$.id', rid) WHERE rid = ?",
                [offer.rid],
            )

    def offer_of(self, rid: str) -> Document | None:
        """The throughput that a database or a container has of its own."""
        with self._storage.reading() as connection:
            row = connection.execute(
                f"SELECT json_extract(body, '$.content') FROM resources WHERE {_OFFER_OF}", [rid]
            ).fetchone()
        return None if row is None else json.loads(row[0])

    def usage(self, container: Resource) -> tuple[int, int]:
        """How many items a container holds, and how many bytes they take."""
        with self._storage.reading() as connection:
            (number,) = connection.execute(
                "SELECT num FROM containers WHERE rid = ?", [container.rid]
            ).fetchone()
            count, size = connection.execute(
                f"SELECT count(*), coalesce(sum(length(body)), 0) FROM items_{number}"
            ).fetchone()
        return count, size

    def lsn(self, container: Container) -> int:
        with self._storage.reading() as connection:
            row = connection.execute(
                "SELECT lsn FROM containers WHERE num = ?", [container.number]
            ).fetchone()
        if row is None:
            raise NotFound
        return int(row[0])


def _next_number(connection: sqlite3.Connection) -> int:
    (number,) = connection.execute(
        "UPDATE sqlite_sequence SET seq = seq + 1 WHERE name = 'resources' RETURNING seq"
    ).fetchone()
    return int(number)


def _rid(kind: str, parent: Resource | None, number: int) -> str:
    if parent is None:
        return rids.database_rid(number)
    if kind in _MARKS:
        return rids.item_rid(parent.rid, number, _MARKS[kind])
    return rids.child_rid(parent.rid, number)


def _without_system_properties(definition: Document) -> Document:
    hidden = {*SYSTEM_PROPERTIES, *(name for links in _CHILD_LINKS.values() for name in links)}
    return {name: value for name, value in definition.items() if name not in hidden}


def _check_match(resource: Resource, if_match: str | None) -> None:
    if if_match not in (None, "*", resource.body["_etag"]):
        raise PreconditionFailed


def _replacement(old: Document, new: Document, *, keeps_unique_keys: bool) -> Document:
    """The new definition. The partition key and unique keys of a container cannot change."""
    if new["id"] != old["id"]:
        raise BadRequest("The id of a container cannot be changed.")
    same = ("paths", "kind", "version")
    before, after = old["partitionKey"], new["partitionKey"]
    if any(before.get(name) != after.get(name, before.get(name)) for name in same):
        raise BadRequest("The partition key of a container cannot be changed.")
    if not keeps_unique_keys and old.get("uniqueKeyPolicy") != new.get("uniqueKeyPolicy"):
        raise Forbidden(
            "The unique index cannot be modified. To change the unique index, remove the "
            "collection and re-create a new one.",
            charge=charges.REFUSED_WRITE,
        )
    kept = {"partitionKey": before}
    if "uniqueKeyPolicy" in old:
        kept["uniqueKeyPolicy"] = old["uniqueKeyPolicy"]
    return {**new, **kept}
