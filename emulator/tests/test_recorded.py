"""The recorded exchanges, asked of this emulator: strict as the account, and like the container."""

import json

import pytest

from cosmos_emulator import Emulator
from cosmos_emulator.messages import Request

from .raw import signed
from .recorded import EXCHANGES, SYSTEM

# What this emulator answers differently, and why.
ACCOUNT_GAPS = {
    63: "an integer beyond 2^63 keeps its digits in a projection",
    **dict.fromkeys((158, 160), "no JavaScript here: functions and procedures are not run"),
}
CONTAINER_GAPS: dict[int, str] = {}
WITHIN = 0.1  # of a recorded charge


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


def checked(each, known, answer, gaps):
    if known.status == 0:
        pytest.skip("nothing is known of this answer")
    found = differences(known, answer)
    if each.number in gaps:
        assert found, "it is alike: take it off the list"
    else:
        assert not found


@pytest.mark.parametrize("each", EXCHANGES, ids=lambda each: each.name)
def test_the_account_answered_so(account, each):
    checked(each, each.account, account[each.number], ACCOUNT_GAPS)


@pytest.mark.parametrize("each", EXCHANGES, ids=lambda each: each.name)
def test_the_container_answered_so(container, each):
    checked(each, each.container, container[each.number], CONTAINER_GAPS)
