"""Requests for everything that is not an item: databases, containers, offers, users, scripts."""

from __future__ import annotations

import json
from typing import Any

from cosmos_emulator import charges
from cosmos_emulator.catalog import FEEDS, Catalog, Resource
from cosmos_emulator.documents import check_id, check_size, dumps, load_object
from cosmos_emulator.errors import (
    BadRequest,
    CosmosError,
    CrossPartitionDisabled,
    InvalidUrl,
    NotAllowed,
    NotFound,
)
from cosmos_emulator.messages import JSON, Document, Request, Response
from cosmos_emulator.permissions import ResourceTokens, check_definition, lifetime_of
from cosmos_emulator.query_routes import check_length, connection_for, crosses, query_spec, run_page
from cosmos_emulator.ranges import count_for
from cosmos_emulator.sources import TableSource
from cosmos_emulator.storage import Storage
from cosmos_emulator.throughput import maximum

DEFAULT_THROUGHPUT = 400
HIERARCHICAL = "2020-07-15"  # the API version of SDKs that know hierarchical partition keys

# Which kinds of resources each kind contains.
_PLACES = {
    (): {"dbs", "offers"},
    ("dbs",): {"colls", "users", "clientencryptionkeys"},
    ("dbs", "colls"): {"sprocs", "triggers", "udfs", "conflicts"},
    ("dbs", "users"): {"permissions"},
}


class CatalogRoutes:
    """`/dbs`, `/dbs/…/colls`, `/offers` and similar paths."""

    def __init__(
        self, storage: Storage, catalog: Catalog, tokens: ResourceTokens, serverless: bool
    ) -> None:
        self._serverless = serverless
        self._storage = storage
        self._catalog = catalog
        self._tokens = tokens

    def handle(self, request: Request) -> Response:
        parts = request.segments
        kinds = tuple(parts[::2])
        if kinds[-1] not in _PLACES.get(kinds[:-1], set()):
            raise InvalidUrl
        if len(parts) % 2:
            return self._feed(request)
        return self._one(request)

    def _feed(self, request: Request) -> Response:
        kind = request.resource
        parent = self._catalog.owner(request.segments[:-1])
        operation = request.operation
        if operation == "query":
            text, parameters = query_spec(request)
            if kind == "conflicts" and request.partition_key is None and not crosses(request):
                raise CrossPartitionDisabled
            return self._list(request, kind, parent, text, parameters)
        if operation == "list":
            return self._list(request, kind, parent, "SELECT * FROM r", [])
        if request.method != "POST":
            raise NotAllowed(f"{request.method} does not apply to a feed.")
        if kind in ("offers", "conflicts"):
            raise NotAllowed(f"{kind} cannot be created.")
        check_size(request.body)
        definition = load_object(request)
        if operation == "upsert":
            return self._upsert(request, kind, parent, definition)
        return self._create(request, kind, parent, definition)

    def _create(
        self, request: Request, kind: str, parent: Resource | None, definition: Document
    ) -> Response:
        offer = _offer(request.headers)
        if kind == "permissions":
            check_definition(definition)
            lifetime_of(request)
        if kind == "colls":
            _check_version(request, definition)
        if offer is not None and self._serverless:
            raise BadRequest(
                "Setting offer throughput or autopilot on container is not supported for "
                "serverless accounts."
            )
        throughput = maximum(offer) if offer else DEFAULT_THROUGHPUT
        shared = kind == "colls" and offer is None and self._shared(parent)
        resource = self._catalog.create(
            kind, parent, definition, count_for(throughput), shared=shared
        )
        if kind == "colls" and offer is None and not self._serverless and not shared:
            offer = _manual(DEFAULT_THROUGHPUT)
        if offer is not None and kind in ("dbs", "colls"):
            self._catalog.add_offer(resource, offer)
        charge = charges.CREATED if kind in ("dbs", "colls") else charges.METADATA_WRITE
        return self._answer(request, 201, resource, charge)

    def _shared(self, database: Resource | None) -> bool:
        return database is not None and self._catalog.offer_of(database.rid) is not None

    def _upsert(
        self, request: Request, kind: str, parent: Resource | None, definition: Document
    ) -> Response:
        try:
            old = self._catalog.find(kind, parent, check_id(definition.get("id")))
        except NotFound:
            created = self._catalog.create(kind, parent, definition)
            return self._answer(request, 201, created, charges.METADATA_WRITE)
        replaced = self._catalog.replace(old, definition, None)
        return self._answer(request, 200, replaced, charges.METADATA_WRITE)

    def _one(self, request: Request) -> Response:
        parent = self._catalog.owner(request.segments[:-2])
        resource = self._catalog.find(request.resource, parent, request.segments[-1])
        if_match = request.headers.get("if-match")
        if resource.kind == "permissions":
            lifetime_of(request)  # is checked before anything changes
        if request.method == "GET":
            answer = self._answer(request, 200, resource, charges.METADATA_READ)
            return self._with_statistics(request, resource, answer)
        if request.method == "PUT":
            check_size(request.body)
            definition = load_object(request)
            if resource.kind == "offers":
                _check_offer(definition)
            replaced = self._catalog.replace(resource, definition, if_match)
            return self._answer(request, 200, replaced, charges.METADATA_WRITE)
        if request.method == "DELETE" and resource.kind != "offers":
            self._catalog.delete(resource, if_match)
            return Response(204, {"x-ms-request-charge": f"{charges.METADATA_WRITE:.2f}"})
        if request.operation == "execute":
            raise CosmosError("Stored procedures are kept, but not executed here.", status=501)
        raise NotAllowed(f"{request.method} does not apply to {resource.kind}.")

    def _answer(self, request: Request, status: int, resource: Resource, charge: float) -> Response:
        headers = {
            "content-type": JSON,
            "etag": resource.body["_etag"],
            "x-ms-request-charge": f"{charge:.2f}",
        }
        body = resource.body
        if resource.kind == "permissions":
            body = {**body, "_token": self._tokens.issue(body, lifetime_of(request))}
        return Response(status, headers, dumps(body).encode())

    def _with_statistics(self, request: Request, resource: Resource, answer: Response) -> Response:
        """Adds the size of a container to the response, if requested."""
        if resource.kind != "colls":
            return answer
        if request.flag("x-ms-documentdb-populatequotainfo"):
            count, size = self._catalog.usage(resource)
            kilobytes = size // 1024
            answer.headers["x-ms-documentdb-collection-index-transformation-progress"] = "100"
            answer.headers["x-ms-resource-quota"] = (
                "documentSize=10240;documentsSize=10485760;documentsCount=-1;"
                "collectionSize=10485760;"
            )
            answer.headers["x-ms-resource-usage"] = (
                f"documentSize=0;documentsSize={kilobytes};documentsCount={count};"
                f"collectionSize={kilobytes};"
            )
        if request.flag("x-ms-documentdb-populatepartitionstatistics"):
            count, size = self._catalog.usage(resource)
            statistics = {"id": "0", "sizeInKB": size // 1024, "documentCount": count}
            body = {**resource.body, "statistics": [{**statistics, "partitionKeys": []}]}
            answer.body = dumps(body).encode()
        return answer

    def _list(
        self,
        request: Request,
        kind: str,
        parent: Resource | None,
        text: str,
        parameters: list[dict[str, Any]],
    ) -> Response:
        parent_rid = parent.rid if parent else ""
        check_length(request, text)
        with connection_for(request, self._storage) as connection:
            source = TableSource(
                connection, "resources", ["kind = ?", "parent = ?"], [kind, parent_rid]
            )
            token = request.headers.get("x-ms-continuation")
            page = run_page(request, text, parameters, source, continuation=token)
        if kind == "permissions":
            lifetime = lifetime_of(request)
            for permission in page.items:
                permission["_token"] = self._tokens.issue(permission, lifetime)
        body = {"_rid": parent_rid, FEEDS[kind]: page.items, "_count": len(page.items)}
        charge = charges.MISS if kind == "conflicts" else charges.METADATA_READ
        headers = {
            "content-type": JSON,
            "x-ms-item-count": str(len(page.items)),
            "x-ms-request-charge": f"{charge:.2f}",
        }
        if page.continuation:
            headers["x-ms-continuation"] = page.continuation
        return Response(200, headers, dumps(body).encode())


def _offer(headers: dict[str, str]) -> Document | None:
    """The throughput that a create request asks for."""
    autoscale = headers.get("x-ms-cosmos-offer-autopilot-settings")
    if autoscale is not None:
        if "x-ms-offer-throughput" in headers:
            raise BadRequest("Throughput is standard or autoscale, not both.")
        try:
            settings = json.loads(autoscale)
        except ValueError:
            raise BadRequest("The autoscale settings are not JSON.") from None
        if not isinstance(settings, dict) or not isinstance(settings.get("maxThroughput"), int):
            raise BadRequest("The autoscale settings need a maxThroughput.")
        return _autoscale(settings)
    throughput = headers.get("x-ms-offer-throughput")
    if throughput is None:
        return None
    try:
        return _manual(int(throughput))
    except ValueError:
        raise BadRequest(f"The throughput '{throughput[:100]}' is not a number.") from None


def _manual(throughput: int) -> Document:
    content = {
        "offerThroughput": throughput,
        "offerIsRUPerMinuteThroughputEnabled": False,
        "offerMinimumThroughputParameters": {
            "maxThroughputEverProvisioned": throughput,
            "maxConsumedStorageEverInKB": 0,
        },
    }
    _check_offer({"content": content})
    return content


def _autoscale(settings: Document) -> Document:
    content = {
        "offerThroughput": settings["maxThroughput"] // 10,
        "offerAutopilotSettings": {"maxThroughput": settings["maxThroughput"], **settings},
    }
    _check_offer({"content": content})
    return content


def _check_offer(offer: Document) -> None:
    content = offer.get("content")
    if not isinstance(content, dict):
        raise BadRequest("An offer needs a content.")
    autoscale = content.get("offerAutopilotSettings")
    if autoscale:
        maximum = autoscale.get("maxThroughput")
        if not isinstance(maximum, int) or maximum < 1000 or maximum % 1000:
            raise BadRequest("The maximum throughput must be a multiple of 1000, 1000 or more.")
        return
    throughput = content.get("offerThroughput")
    if not isinstance(throughput, int) or throughput < 400 or throughput % 100:
        raise BadRequest("The throughput must be a multiple of 100, 400 or more.")


def _check_version(request: Request, definition: Document) -> None:
    """An older client must not get what it does not know."""
    key = definition.get("partitionKey")
    kind = key.get("kind") if isinstance(key, dict) else None
    if kind == "MultiHash" and request.headers.get("x-ms-version", HIERARCHICAL) < HIERARCHICAL:
        raise BadRequest(
            "The 'kind' value 'MultiHash' specified in the partition key definition is invalid. "
            "Please choose 'Hash' partition type.",
            charge=0,
        )
