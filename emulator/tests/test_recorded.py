"""The recorded exchanges, asked of this emulator: strict as the account, and like the container."""

import json
from pathlib import Path

import pytest

from cosmos_emulator import Emulator
from cosmos_emulator.messages import Request

from .raw import signed
from .recorded import EXCHANGES, SYSTEM
from .recorded import account as of_the_account
from .recorded import container as of_the_container
from .recorded.forms import Error

# What this emulator answers differently, and why.
ACCOUNT_GAPS = {
    63: "an integer beyond 2^63 keeps its digits in a projection",
    **dict.fromkeys((158, 160), "no JavaScript here: functions and procedures are not run"),
    115: "the rewritten query leaves out the order of groups, which no range can keep",
    **dict.fromkeys((140, 141), "a property that a patch adds stands before the service's own"),
}
CONTAINER_GAPS = {
    38: "the ranges have an etag only for those who ask for changes",
    **dict.fromkeys(
        (114, 116), "the rewritten query: what the container answers to it was not recorded"
    ),
    149: "a broken unique key has the text of an existing id",
    164: "offers have headers",
}
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


CONTAINER_HEADERS = {
    "bare": set(),
    "catalog": {CHARGE, TOKEN, RANGE},
    "listed": {CHARGE, TOKEN, RANGE, COUNT},
    "ranges": {CHARGE, TOKEN, RANGE, "etag"},
    "script": {CHARGE, TOKEN, "etag"},
    "empty": {CHARGE, TOKEN, COUNT},
    "item": {CHARGE, *REACHED, RANGE, "etag"},
    "gone": {CHARGE, *REACHED, RANGE},
    "refused": {CHARGE, *REACHED, RANGE},
    "invalid": {CHARGE, *REACHED, RANGE} - {"lsn"},  # left out
    "page": {CHARGE, TOKEN, RANGE, COUNT},
    "feed": {CHARGE, TOKEN, RANGE, COUNT, "etag"},
    "batch": {CHARGE, *REACHED, RANGE},
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
    if "errors" in body or "Errors" in body:
        body = {"message": "Message: " + json.dumps(body)}
    if "error" in body:
        return body["error"], False
    text = body.get("message", "").partition("\r\nActivityId: ")[0]
    if not text.startswith("Message: "):
        return text, False
    details = json.loads(text.removeprefix("Message: "))
    if "Errors" in details:
        return details["Errors"][0], True
    error = details["errors"][0]
    place = error.get("location", {})
    if "code" not in error:
        return error["message"], True
    return Error(error["code"], error["message"], place.get("start"), place.get("end")), True


def of_account(seen, answer):
    headers = COMPARED & answer.headers.keys()
    wanted = ACCOUNT_HEADERS[seen.kind] - (REACHED if seen.kind in LEFT_OUT else set())
    if seen.kind in ("catalog", "listed", "ranges", "invalid"):
        headers -= {RANGE, PATH}
    found = {"headers": headers ^ wanted} if headers != wanted else {}
    if "etag" in headers and not answer.headers["etag"].startswith('"'):
        found["etag"] = answer.headers["etag"]
    if TOKEN in headers and answer.headers[TOKEN] != f"0:-1#{answer.headers['lsn']}":
        found["session token"] = answer.headers[TOKEN]
    return found


def of_container(seen, answer):
    headers = COMPARED & answer.headers.keys()
    wanted = CONTAINER_HEADERS[seen.kind]
    found = {"headers": headers ^ wanted} if headers != wanted else {}
    quoted = answer.headers.get("etag", "").startswith('"')
    if quoted != (seen.kind == "script"):
        found["etag"] = answer.headers["etag"]
    reached = answer.headers.get("lsn", "0")
    if TOKEN in headers and answer.headers[TOKEN] != f"0:0#{reached}":
        found["session token"] = answer.headers[TOKEN]
    return found


def unlike(seen, answer, alike_headers):
    """What is otherwise than in the recording itself."""
    body = json.loads(answer.body) if answer.body else {}
    found = {}
    found |= alike_headers(seen, answer)
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
        same = info["queryInfo"] == seen.plan
        if alike_headers is of_account:
            same = same and list(info["queryInfo"]) == list(seen.plan)
        if not same:
            found["plan"] = (seen.plan, info["queryInfo"])
    if seen.documents:
        documents = [own(each) for each in body["Documents"]]
        if documents != list(seen.documents):
            found["documents"] = (seen.documents, documents)
    if seen.order:
        first = body["Documents"][0] if "Documents" in body else body
        names = tuple(name for name in first if name in seen.order)
        if names != seen.order:
            found["order"] = (seen.order, names)
    return found


def checked(each, known, answer, gaps, seen, alike_headers):
    if known.status == 0 and seen is None:
        pytest.skip("nothing is known of this answer")
    found = differences(known, answer) if known.status else {}
    if seen is not None:
        found |= unlike(seen, answer, alike_headers)
    if each.number in gaps:
        assert found, "it is alike: take it off the list"
    else:
        assert not found


def figures(answer_of, seen, gaps):
    compared = [each.number for each in EXCHANGES if answer_of(each).status or each.number in seen]
    return f"{len(compared)} | {len(seen)} | {len(compared) - len(gaps)}"


def test_the_readme_says_how_many_are_compared_and_alike():
    text = (Path(__file__).parents[1] / "README.md").read_text("utf-8")
    sides = {
        "an account": (lambda each: each.account, of_the_account.SEEN, ACCOUNT_GAPS),
        "the container": (lambda each: each.container, of_the_container.SEEN, CONTAINER_GAPS),
    }
    for name, side in sides.items():
        assert f"| {name} | {len(EXCHANGES)} | {figures(*side)} |" in text


def test_a_continuation_is_an_object_and_from_the_second_page_on_a_list_of_them(account):
    first, second = (json.loads(account[n].headers["x-ms-continuation"]) for n in (96, 97))
    for part in (first, *second):
        assert list(part) == ["token", "range"]
        assert part["range"] == {"min": "", "max": "FF"}
    assert len(second) == 1


@pytest.mark.parametrize("each", EXCHANGES, ids=lambda each: each.name)
def test_the_account_answered_so(account, each):
    seen = of_the_account.SEEN.get(each.number)
    checked(each, each.account, account[each.number], ACCOUNT_GAPS, seen, of_account)


@pytest.mark.parametrize("each", EXCHANGES, ids=lambda each: each.name)
def test_the_container_answered_so(container, each):
    seen = of_the_container.SEEN.get(each.number)
    checked(each, each.container, container[each.number], CONTAINER_GAPS, seen, of_container)
