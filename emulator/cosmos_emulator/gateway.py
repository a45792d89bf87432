"""The gateway: one function from request to response, which every transport calls."""

from __future__ import annotations

import email.utils
import uuid
from collections.abc import Callable
from functools import lru_cache

from .auth import Authenticator, secret
from .catalog import Catalog
from .catalog_routes import CatalogRoutes
from .clock import Clock
from .documents import dumps
from .errors import BadRequest, CosmosError, NotAllowed, NotFound
from .item_routes import ItemRoutes
from .messages import JSON, NAMED, Request, Response
from .permissions import ResourceTokens
from .replicas import Replicas
from .snapshots import Snapshots
from .storage import Storage

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
    ) -> None:
        catalog = Catalog(storage, clock, partitions)
        tokens = ResourceTokens(secret(key), catalog, clock)
        self._authenticator = Authenticator(secret(key), tokens)
        items = ItemRoutes(storage, catalog, clock, Snapshots(catalog, replicas))
        resources = CatalogRoutes(storage, catalog, tokens)
        self._endpoint = endpoint
        self._clock = clock
        self._items = items.handle
        self._resources = resources.handle
        self._ranges = items.ranges
        self.split = catalog.split
        self._operations: dict[str, Callable[[Request], Response]] = {
            "partitionkeydelete": items.delete_partition,
        }

    def handle(self, request: Request, endpoint: str | None = None) -> Response:
        """Answer a request. ``endpoint`` is how the client reached us, if not in process."""
        activity_id = request.headers.get("x-ms-activity-id") or str(uuid.uuid4())
        try:
            if request.method not in _VERBS:
                raise NotAllowed(f"The method {request.method} is not supported.")
            self._authenticator.check(request)
            response = self._route(request, endpoint or self._endpoint)
        except CosmosError as error:
            response = error.response(activity_id)
        except UnicodeEncodeError:
            # Half of a surrogate pair, which JSON can express but which cannot be stored.
            refusal = BadRequest("The request contains a string that is not valid Unicode.")
            response = refusal.response(activity_id)
        headers = response.headers
        headers["content-location"] = (endpoint or self._endpoint) + request.path.strip("/")
        headers["x-ms-activity-id"] = activity_id
        headers["date"] = _date(self._clock.now())
        headers["x-ms-version"] = request.headers.get("x-ms-version", "2020-07-15")
        headers["x-ms-gatewayversion"] = "2.0.0"
        return response

    def _route(self, request: Request, endpoint: str) -> Response:
        parts = request.segments
        if not parts:
            if request.method != "GET":
                raise NotAllowed("The account can only be read.")
            return _account(endpoint)
        if len(parts) > 1 and parts[-2] == "operations" and len(parts) == 6:
            operation = self._operations.get(parts[-1])
            if operation is None or request.method != "POST":
                raise NotFound(f"The operation '{parts[-1]}' is unknown.")
            return operation(request)
        if any(kind not in NAMED for kind in parts[::2]) or not all(parts):
            raise BadRequest(f"Request url is invalid: {request.path[:200]}")
        if request.resource == "docs" and len(parts) in (5, 6):
            return self._items(request)
        if request.resource == "pkranges":
            return self._ranges(request)
        return self._resources(request)


@lru_cache(maxsize=1)
def _date(seconds: int) -> str:
    return email.utils.formatdate(seconds, usegmt=True)


def _account(endpoint: str) -> Response:
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
        "userConsistencyPolicy": {"defaultConsistencyLevel": "Session"},
        "systemReplicationPolicy": {"minReplicaSetSize": 1, "maxReplicasetSize": 4},
        "readPolicy": {"primaryReadCoefficient": 1, "secondaryReadCoefficient": 1},
        "queryEngineConfiguration": "{}",
    }
    headers = {"content-type": JSON, "x-ms-request-charge": "0"}
    return Response(200, headers, dumps(body).encode())
