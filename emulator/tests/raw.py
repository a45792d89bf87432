"""Hand-made requests that the SDK would never send."""

import base64
import email.utils
import hashlib
import hmac
import json
from urllib.parse import quote

from cosmos_emulator.messages import Request


def signed(key, method, path, body=b"", **headers):
    """A request with a valid signature. Keywords are headers, with _ for -."""
    request = Request(method, path, {}, body)
    date = email.utils.formatdate(usegmt=True)
    parts = request.segments[: len(request.segments) // 2 * 2]
    if "operations" in parts:
        parts = parts[: parts.index("operations")]
    text = f"{method.lower()}\n{request.resource}\n{'/'.join(parts)}\n{date.lower()}\n\n"
    digest = hmac.digest(base64.b64decode(key), text.encode(), hashlib.sha256)
    token = f"type=master&ver=1.0&sig={base64.b64encode(digest).decode()}"
    mine = {"x-ms-date": date, "authorization": quote(token, safe="")}
    theirs = {name.replace("_", "-"): value for name, value in headers.items()}
    return Request(method, path, {**mine, **theirs}, body)


def send(emulator, method, path, body=None, **headers):
    """Sends a request. Returns the status and the body."""
    data = body if isinstance(body, bytes) else b"" if body is None else json.dumps(body).encode()
    response = emulator.exchange(signed(emulator.key, method, path, data, **headers))
    return response.status, json.loads(response.body) if response.body else None


def create(emulator, item, container="c"):
    key = json.dumps([item.get("pk")])
    path = f"/dbs/db/colls/{container}/docs"
    return send(emulator, "POST", path, item, x_ms_documentdb_partitionkey=key)


def make_container(emulator, container="c", **definition):
    send(emulator, "POST", "/dbs", {"id": "db"})
    key = {"paths": ["/pk"], "kind": "Hash", "version": 2}
    body = {"id": container, "partitionKey": key, **definition}
    return send(emulator, "POST", "/dbs/db/colls", body)
