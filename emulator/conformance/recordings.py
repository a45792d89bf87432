"""Recorded exchanges, replayed in process: strict, and like Microsoft's container.

`testdata/cosmos` of xo/dbimp has 248 exchanges that were recorded on an account, and the same 248
on the container `vnext-EN20260907`. Each request is sent as it was recorded, with a signature of
today, at the recorded pace of the server's clock, and with the continuations and etags of this
emulator. An answer is alike if status, sub-status, the headers that clients use, the error code and
the documents without what a server makes up are the same.
"""

from __future__ import annotations

import base64
import email.utils
import hashlib
import hmac
import json
import urllib.parse
from typing import Any

from outcomes import Outcome
from sources import checkout

from cosmos_emulator import Emulator
from cosmos_emulator.messages import Request, Response

OF_ACCOUNT, OF_CONTAINER = "cosmos-[0-9][0-9][0-9]-*.json", "cosmos-EN*.json"
MADE_UP = {"_rid", "_self", "_etag", "_ts", "_lsn", "_attachments"}
# Named by one answer and sent back by a later request.
ECHOED = ("x-ms-continuation", "etag")
COMPARED = ("x-ms-substatus", "x-ms-item-count", "x-ms-documentdb-partitionkeyrangeid")
PRESENT = ("x-ms-continuation", "etag", "x-ms-retry-after-ms")
WITHIN = 0.1  # of a recorded charge


def run(pattern: str, only: list[str], expression: str) -> Outcome:
    """`only`: numbers of exchanges. All are sent, because they build on each other."""
    folder = checkout("DBIMP", "xo/dbimp", "testdata/cosmos")
    exchanges = [json.loads(path.read_text("utf-8")) for path in sorted(folder.glob(pattern))]
    different = replay(exchanges, {"like": "vnext"} if pattern == OF_CONTAINER else {})
    outcome = Outcome(f"xo/dbimp, {_headers(exchanges[0]['response'])['date'][5:16]}")
    for number, exchange in enumerate(exchanges, 1):
        name = f"{number} {exchange['request']['method']} {exchange['request']['path']}"
        if (only and str(number) not in only) or expression not in name:
            continue
        if number in different:
            outcome.failures.append(f"{name}\n    {'; '.join(different[number])}")
        else:
            outcome.passed += 1
    return outcome


def replay(exchanges: list[dict[str, Any]], options: dict[str, Any]) -> dict[int, list[str]]:
    """What differs, by the number of the exchange."""
    different = {}
    ours: dict[str, str] = {}  # for what a recorded answer named
    with Emulator(enforce_throughput=not options, **options) as emulator:
        emulator.clock.freeze()
        last = None
        for number, exchange in enumerate(exchanges, 1):
            moment = _moment(exchange["response"])
            emulator.clock.advance(max(0, moment - (last or moment)))
            last = moment
            recorded = exchange["response"]
            answer = emulator.exchange(_request(exchange["request"], emulator, ours))
            for name in ECHOED:
                if name in _headers(recorded) and name in answer.headers:
                    ours[_headers(recorded)[name]] = answer.headers[name]
            if found := differences(recorded, answer):
                different[number] = found
    return different


def differences(recorded: dict[str, Any], answer: Response) -> list[str]:
    theirs = _headers(recorded)
    if recorded["status"] != answer.status:
        return [f"{answer.status} instead of {recorded['status']}"]
    found = [
        f"{name} {answer.headers.get(name)} instead of {theirs.get(name)}"
        for name in COMPARED
        if theirs.get(name) != answer.headers.get(name)
    ]
    found += [
        f"{name} is {'missing' if name in theirs else 'not recorded'}"
        for name in PRESENT
        if (name in theirs) != (name in answer.headers)
    ]
    charge = float(theirs.get("x-ms-request-charge", answer.charge))
    if abs(charge - answer.charge) > WITHIN * charge:
        found.append(f"a charge of {answer.charge} instead of {charge}")
    if _own(_json(recorded.get("body"))) != _own(_json(answer.body.decode())):
        found.append("another body")
    return found


def _request(recorded: dict[str, Any], emulator: Emulator, ours: dict[str, str]) -> Request:
    headers = {name: ours.get(value, value) for name, value in _headers(recorded).items()}
    body = (recorded.get("body") or "").encode()
    request = Request(recorded["method"], recorded["path"], headers, body)
    if "authorization" in headers:
        _sign(request, emulator.key)
    return request


def _sign(request: Request, key: str) -> None:
    date = email.utils.formatdate(usegmt=True).lower()
    link = "/".join(request.segments[: len(request.segments) // 2 * 2])
    text = f"{request.method.lower()}\n{request.resource}\n{link}\n{date}\n\n"
    digest = base64.b64encode(hmac.digest(base64.b64decode(key), text.encode(), hashlib.sha256))
    request.headers["x-ms-date"] = date
    token = f"type=master&ver=1.0&sig={digest.decode()}"
    request.headers["authorization"] = urllib.parse.quote(token, safe="")


def _own(body: Any) -> Any:
    """A body without what a server makes up: ids, times, the words of messages."""
    if isinstance(body, list):
        return [_own(each) for each in body]
    if not isinstance(body, dict):
        return body
    left = MADE_UP | {"message", "requestCharge", "eTag"}
    return {name: _own(each) for name, each in body.items() if name not in left}


def _json(text: str | None) -> Any:
    return json.loads(text) if text else None


def _headers(message: dict[str, Any]) -> dict[str, str]:
    return {name.lower(): values[0] for name, values in message["header"].items()}


def _moment(response: dict[str, Any]) -> float:
    return email.utils.parsedate_to_datetime(_headers(response)["date"]).timestamp()
