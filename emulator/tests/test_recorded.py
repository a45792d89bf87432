"""The recorded exchanges, asked of this emulator: strict as the account, and like the container."""

import json

import pytest

from cosmos_emulator import Emulator
from cosmos_emulator.messages import Request

from .raw import signed
from .recorded import EXCHANGES, SYSTEM
from .recorded import account as of_the_account
from .recorded.forms import Error

# What this emulator answers differently, and why.
ACCOUNT_GAPS = {
    63: "an integer beyond 2^63 keeps its digits in a projection",
    **dict.fromkeys((158, 160), "no JavaScript here: functions and procedures are not run"),
    **dict.fromkeys((140, 141), "a property that a patch adds stands before the service's own"),
    **dict.fromkeys(
        (136, 139, 142, 144, 145, 149, 151),
        "a refusal names the container, so that the SDK takes its session token",
    ),
}
CONTAINER_GAPS: dict[int, str] = {}
WITHIN = 0.1  # of a recorded charge


RANGE = "x-ms-documentdb-partitionkeyrangeid"
CHARGE, TOKEN, COUNT = "x-ms-request-charge", "x-ms-session-token", "x-ms-item-count"
PATH, SUBSTATUS = "x-ms-alt-content-path", "x-ms-substatus"
REACHED = {"lsn", TOKEN}
OF_READS = {CHARGE, *REACHED, RANGE, PATH}
COMPARED = OF_READS | {COUNT, "etag", "x-ms-retry-after-ms"}
# The headers of each kind of answer.
ACCOUNT_HEADERS = {
    "gateway": set(),
    "catalog": {CHARGE, *REACHED, "etag"},
    "deleted": {CHARGE, *REACHED},
    "missing": {CHARGE, *REACHED},
    "listed": {CHARGE, *REACHED, COUNT},
    "ranges": {*REACHED, COUNT},
    "item": {*OF_READS, "etag"},
    "gone": OF_READS,
    "page": {*OF_READS, COUNT},
    "batch": {*OF_READS, COUNT},
    "undone": {*OF_READS, COUNT} - {PATH},
    "feed": {*OF_READS, COUNT, "etag"},
    "refused": OF_READS - {PATH},
    "invalid": {CHARGE, *REACHED},
    "uncharged": REACHED,
    "throttled": {CHARGE, "lsn", "x-ms-retry-after-ms"},
    "executed": OF_READS,
}
# No client reads them there, and ours does not send them.
LEFT_OUT = {
    "catalog",
    "deleted",
    "missing",
    "listed",
    "ranges",
    "invalid",
    "uncharged",
    "throttled",
}


def replay(**options):
    """Asks everything in order; returns the answers by their numbers."""
    answers = {}
    with Emulator(**options) as emulator:
        emulator.clock.freeze()
        for each in EXCHANGES:
            headers = {"x-ms-version": "2018-12-31", **each.headers}
            if each.takes is not None:
                header, of_answer, numbers = each.takes
                given = (answers[number].headers.get(of_answer, "") for number in numbers)
                headers[header] = next(filter(None, given), "")
            request = signed(emulator.key, each.method, each.path, each.body)
            request.headers.update(headers)
            if request.headers["authorization"] == "":
                del request.headers["authorization"]
            answers[each.number] = emulator.exchange(
                Request(request.method, request.path, request.headers, each.body)
            )
            emulator.clock.advance(each.seconds)
    return answers


@pytest.fixture(scope="module")
def account():
    return replay(enforce_throughput=True)


@pytest.fixture(scope="module")
def container():
    return replay(like="vnext")


def own(value):
    """A document without what the server adds."""
    if not isinstance(value, dict):
        return value
    return {name: each for name, each in value.items() if name not in SYSTEM}


def differences(known, answer):
    """What is otherwise than it was recorded."""
    body = json.loads(answer.body) if answer.body else {}
    found = {}

    def compare(name, wanted, got):
        if wanted != got:
            found[name] = (wanted, got)

    compare("status", known.status, answer.status)
    if known.substatus is not None:
        compare("sub-status", known.substatus, answer.substatus)
    if known.says and known.says not in json.dumps(body, ensure_ascii=False):
        found["message"] = (known.says, body)
    if known.charge is not None and answer.charge != pytest.approx(known.charge, rel=WITHIN):
        found["charge"] = (known.charge, answer.charge)
    if known.documents is not None:
        if isinstance(body, dict) and "Documents" in body:
            compare("documents", known.documents, [own(each) for each in body["Documents"]])
        else:
            compare("documents", known.documents, [own(body)])
    if known.count is not None:
        compare("count", known.count, len(body.get("Documents", [])))
    if known.more is not None:
        compare("continuation", known.more, "x-ms-continuation" in answer.headers)
    if known.operations is not None:
        compare("operations", known.operations, [each["statusCode"] for each in body])
    if known.plan:
        info = json.loads(body["additionalErrorInfo"]) if "additionalErrorInfo" in body else body
        shown = info.get("queryInfo", {})
        compare("plan", known.plan, {name: shown.get(name) for name in known.plan})
    for name, value in known.body.items():
        compare(name, value, body.get(name))
    for name, value in known.headers.items():
        got = answer.headers.get(name)
        if (got is None) != (value is None) or (value and value not in got):
            found[name] = (value, got)
    return found


def said(body):
    """The message of an answer, and whether it stands in a list of errors."""
    text = body.get("message", "").partition("\r\nActivityId: ")[0]
    if not text.startswith("Message: "):
        return text, False
    details = json.loads(text.removeprefix("Message: "))
    if "Errors" in details:
        return details["Errors"][0], True
    error = details["errors"][0]
    place = error.get("location", {})
    return Error(error["code"], error["message"], place.get("start"), place.get("end")), True


def unlike(seen, answer):
    """What is otherwise than in the recording itself."""
    body = json.loads(answer.body) if answer.body else {}
    found = {}
    headers = COMPARED & answer.headers.keys()
    wanted = ACCOUNT_HEADERS[seen.kind] - (REACHED if seen.kind in LEFT_OUT else set())
    if seen.kind in ("catalog", "listed", "ranges", "invalid"):
        headers -= {RANGE, PATH}
    if headers != wanted:
        found["headers"] = headers ^ wanted
    if "etag" in headers and not answer.headers["etag"].startswith('"'):
        found["etag"] = answer.headers["etag"]
    if TOKEN in headers and answer.headers[TOKEN] != f"0:-1#{answer.headers['lsn']}":
        found["session token"] = answer.headers[TOKEN]
    if seen.charge is not None and answer.charge != pytest.approx(seen.charge, rel=WITHIN):
        found["charge"] = (seen.charge, answer.charge)
    if seen.charges:
        ours = [each["requestCharge"] for each in body]
        if ours != pytest.approx(list(seen.charges), rel=WITHIN):
            found["charges"] = (seen.charges, ours)
    if seen.says is not None:
        text, framed = said(body)
        if isinstance(seen.says, Error) and seen.says.start is None and isinstance(text, Error):
            text = Error(text.code, text.text)
        if text != seen.says:
            found["message"] = (seen.says, text)
        if seen.framed not in (None, framed):
            found["framed"] = framed
    if seen.plan:
        info = json.loads(body["additionalErrorInfo"]) if "additionalErrorInfo" in body else body
        if list(info["queryInfo"].items()) != list(seen.plan.items()):
            found["plan"] = (seen.plan, info["queryInfo"])
    if seen.order:
        first = body["Documents"][0] if "Documents" in body else body
        names = tuple(name for name in first if name in seen.order)
        if names != seen.order:
            found["order"] = (seen.order, names)
    return found


def checked(each, known, answer, gaps, seen=None):
    if known.status == 0 and seen is None:
        pytest.skip("nothing is known of this answer")
    found = differences(known, answer) if known.status else {}
    if seen is not None:
        found |= unlike(seen, answer)
    if each.number in gaps:
        assert found, "it is alike: take it off the list"
    else:
        assert not found


@pytest.mark.parametrize("each", EXCHANGES, ids=lambda each: each.name)
def test_the_account_answered_so(account, each):
    seen = of_the_account.SEEN.get(each.number)
    checked(each, each.account, account[each.number], ACCOUNT_GAPS, seen)


@pytest.mark.parametrize("each", EXCHANGES, ids=lambda each: each.name)
def test_the_container_answered_so(container, each):
    checked(each, each.container, container[each.number], CONTAINER_GAPS)
