"""The gateway: one function from request to response, which every transport calls."""

from __future__ import annotations

import email.utils
import uuid
from collections.abc import Callable
from functools import lru_cache

from cosmos_emulator.auth import Authenticator, secret
from cosmos_emulator.catalog import Catalog
from cosmos_emulator.catalog_routes import CatalogRoutes
from cosmos_emulator.clock import Clock
from cosmos_emulator.deviations import EXPIRED_FOR
from cosmos_emulator.documents import dumps, load_object
from cosmos_emulator.errors import (
    BadRequest,
    CosmosError,
    Forbidden,
    InvalidUrl,
    NotAllowed,
    NotFound,
)
from cosmos_emulator.item_routes import ItemRoutes
from cosmos_emulator.messages import JSON, NAMED, Request, Response
from cosmos_emulator.permissions import ResourceTokens
from cosmos_emulator.replicas import Replicas
from cosmos_emulator.rules import Rules, weaker
from cosmos_emulator.snapshots import Snapshots
from cosmos_emulator.storage import Storage
from cosmos_emulator.throughput import Throughput

_VERBS = {"GET", "POST", "PUT", "PATCH", "DELETE"}


class Gateway:
    """Authenticates the request, finds the route, and formats the answer like the service."""

    def __init__(
        self,
        storage: Storage,
        clock: Clock,
        key: str,
        endpoint: str,
        partitions: int,
        replicas: Replicas | None,
        rules: Rules,
        *,
        serverless: bool = False,
        enforce_throughput: bool = False,
    ) -> None:
        grace = EXPIRED_FOR if "late-expiry" in rules.deviations else 0
        catalog = Catalog(storage, clock, partitions, rules, grace)
        tokens = ResourceTokens(secret(key), catalog, clock)
        self._authenticator = Authenticator(secret(key), tokens, clock)
        items = ItemRoutes(storage, catalog, clock, Snapshots(catalog, replicas), rules)
        resources = CatalogRoutes(storage, catalog, tokens, serverless)
        self._throughput = (
            Throughput(storage, catalog, clock, serverless) if enforce_throughput else None
        )
        self._endpoint = endpoint
        self._consistency = rules.consistency
        self._weaker = weaker(rules.consistency)
        self._clock = clock
        self._catalog = catalog
        self._checks_key = "any-key" not in rules.deviations
        self._items = items.handle
        self._resources = resources.handle
        self._ranges = items.ranges
        self.split = catalog.split
        self._operations: dict[str, Callable[[Request], Response]] = {
            "partitionkeydelete": items.delete_partition,
        }

    def handle(
        self, request: Request, endpoint: str | None = None, *, trusted: bool = False
    ) -> Response:
        """Answers a request. `endpoint` is how the client reached us, if not in process. One that
        is `trusted` needs no signature."""
        activity_id = request.headers.get("x-ms-activity-id") or str(uuid.uuid4())
        meter = None
        try:
            if request.method == "OPTIONS":
                raise Forbidden("")
            if request.method not in _VERBS:
                raise NotAllowed(f"The method {request.method} is not supported.")
            if self._checks_key and not trusted:
                self._authenticator.check(request)
                self._check_consistency(request)
            if self._throughput is not None:
                meter = self._throughput.admit(request)
            response = self._route(request, endpoint or self._endpoint)
        except CosmosError as error:
            response = error.response(activity_id)
        except UnicodeEncodeError:
            # Half of a surrogate pair, which JSON can express but which cannot be stored.
            refusal = BadRequest("The request contains a string that is not valid Unicode.")
            response = refusal.response(activity_id)
        except RecursionError:
            refusal = BadRequest("The request is nested too deeply.")
            response = refusal.response(activity_id)
        if meter is not None:
            meter.charge(response)
        headers = response.headers
        headers["content-location"] = (endpoint or self._endpoint) + request.path.strip("/")
        headers["x-ms-activity-id"] = activity_id
        headers["date"] = _date(self._clock.now())
        headers["x-ms-version"] = request.headers.get("x-ms-version", "2020-07-15")
        headers["x-ms-gatewayversion"] = "2.0.0"
        return response

    def recognises(self, request: Request) -> bool:
        """Whether the signature of a request, or whatever it has instead, will be accepted."""
        try:
            if self._checks_key:
                self._authenticator.check(request)
        except CosmosError:
            return False
        return True

    def key_of(self, request: Request) -> str:
        """The partition key of the document in a request, as its header would name it."""
        return self._catalog.container_of(request).keys.of_document(load_object(request))

    def _check_consistency(self, request: Request) -> None:
        """A request may relax the account's level, but not ask for more."""
        level = request.headers.get("x-ms-consistency-level")
        if level is not None and level.replace(" ", "").lower() not in self._weaker:
            raise BadRequest(
                f"ConsistencyLevel {level[:40]} specified in the request is invalid when service "
                f"is configured with consistency level {self._consistency}. Ensure the request "
                "consistency level is not stronger than the service consistency level.",
                plain=True,
            )

    def _route(self, request: Request, endpoint: str) -> Response:
        parts = request.segments
        if not parts:
            if request.method != "GET":
                raise NotAllowed("The account can only be read.")
            return _account(endpoint, self._consistency)
        if len(parts) > 1 and parts[-2] == "operations" and len(parts) == 6:
            operation = self._operations.get(parts[-1])
            if operation is None or request.method != "POST":
                raise NotFound(f"The operation '{parts[-1]}' is unknown.")
            return operation(request)
        if any(kind not in NAMED for kind in parts[::2]) or not all(parts):
            raise InvalidUrl
        if request.resource == "docs" and len(parts) in (5, 6):
            return self._items(request)
        if request.resource == "pkranges":
            return self._ranges(request)
        return self._resources(request)


@lru_cache(maxsize=1)
def _date(seconds: int) -> str:
    return email.utils.formatdate(seconds, usegmt=True)


# The limits that some SDKs read.
_QUERY_ENGINE = dumps(
    {
        "allowNewKeywords": True,
        "maxJoinsPerSqlQuery": 10,
        "maxQueryRequestTimeoutFraction": 0.9,
        "maxSqlQueryInputLength": 524288,
        "maxUdfRefPerSqlQuery": 10,
        "queryEnableFullText": True,
        "sqlAllowAggregateFunctions": True,
        "sqlAllowGroupByClause": True,
        "sqlAllowLike": True,
        "sqlAllowNonFiniteNumbers": False,
        "sqlAllowScalarSubQuery": True,
        "sqlAllowSubQuery": True,
        "sqlAllowTop": True,
    }
)


def _account(endpoint: str, consistency: str) -> Response:
    region = [{"name": "Emulator", "databaseAccountEndpoint": endpoint}]
    body = {
        "_self": "",
        "id": "emulator",
        "_rid": "emulator",
        "media": "//media/",
        "addresses": "//addresses/",
        "_dbs": "//dbs/",
        "writableLocations": region,
        "readableLocations": region,
        "enableMultipleWriteLocations": False,
        "continuousBackupEnabled": False,
        "userReplicationPolicy": {
            "asyncReplication": False,
            "minReplicaSetSize": 1,
            "maxReplicasetSize": 4,
        },
        "userConsistencyPolicy": {"defaultConsistencyLevel": consistency},
        "systemReplicationPolicy": {"minReplicaSetSize": 1, "maxReplicasetSize": 4},
        "readPolicy": {"primaryReadCoefficient": 1, "secondaryReadCoefficient": 1},
        "queryEngineConfiguration": _QUERY_ENGINE,
    }
    return Response(200, {"content-type": JSON}, dumps(body).encode())
