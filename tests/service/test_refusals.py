"""Azure's refusals are told apart by the words of its answer, which the errors repeat."""

import json

import pytest
from azure.cosmos import PartitionKey

from cosmosservice import CosmosSessionService
from cosmosservice.account.failures import Failure
from cosmosservice.account.refusals import Refusal, quoted, refusal_of
from cosmosservice.errors import AuthenticationError, ContainerMismatchError
from tests.support.raw import raw_client

ANSWERS = {
    Refusal.CLOCK: (
        403,
        "The authorization token is not valid at the current time. Please create another token and"
        " retry (token start time: Tue, 10 Nov 2026 08:00:00 GMT).",
    ),
    Refusal.FIREWALL: (
        403,
        "Request originated from IP 203.0.113.7 through public internet. This is blocked by your"
        " Cosmos DB account firewall settings.",
    ),
    Refusal.KEYS_DISABLED: (
        401,
        "Local Authorization is disabled. Use an AAD token to authorize all requests.",
    ),
    Refusal.CONTROL_PLANE: (
        403,
        "Request blocked by Auth contoso : The given request [POST /dbs/adk/colls] cannot be"
        " authorized by AAD token in data plane.",
    ),
    Refusal.ROLE: (
        403,
        "Request blocked by Auth contoso : Request is blocked because principal [0a] does not have"
        " required RBAC permissions to perform action [Microsoft.DocumentDB/databaseAccounts/"
        "readMetadata] on resource [/].",
    ),
    Refusal.KEY: (
        401,
        "The input authorization token can't serve the request. The wrong key is being used or the"
        " expected payload is not built as per the protocol. Server used the following payload to"
        " sign: 'get\ndocs\ndbs/adk/colls/sessions/docs/ada@example.com'",
    ),
    Refusal.UNKNOWN: (403, "Something new."),
}


def error_of(status, text, sub_status=None):
    from azure.cosmos.exceptions import CosmosHttpResponseError

    error = CosmosHttpResponseError(status_code=status, message=text, sub_status=sub_status)
    return Failure(error).translated("read of sessions", maybe_stored=False)


@pytest.mark.parametrize("reason", ANSWERS)
def test_an_error_says_why_and_repeats_what_azure_said(reason):
    status, text = ANSWERS[reason]
    error = error_of(status, text)
    assert isinstance(error, AuthenticationError)
    assert f"was refused ({status}): {reason.reason}." in str(error)
    assert "Nothing was stored" in str(error)
    assert text.split(".")[0] in str(error)
    assert error.advice == reason.advice
    assert refusal_of(text) is reason


def test_an_error_names_no_document():
    assert "ada@example.com" not in str(error_of(*ANSWERS[Refusal.KEY]))
    named = "principal may not read resource [dbs/adk/colls/sessions/docs/ada@example.com] now"
    assert quoted(named) == "principal may not read resource [dbs/adk/colls/sessions/docs/…] now"


def test_the_text_is_found_among_errors():
    errors = json.dumps({"Errors": ["It is closed."]})
    body = json.dumps({"message": f"Message: {errors}\r\nActivityId: 1"})
    assert quoted(body) == quoted(f"(Forbidden) Message: {errors}\nCode: x") == "It is closed."


@pytest.mark.parametrize("written", [True, False])
async def test_a_container_of_partition_key_version_1_is_refused(emulator, written):
    """Cosmos DB writes the version of a partition key only from 2 on."""
    key = PartitionKey("/user_id", version=1)
    if not written:
        del key["version"]
    with raw_client(emulator) as client:
        client.create_database("adk").create_container("sessions", key)
    service = CosmosSessionService.embedded(emulator)
    with pytest.raises(ContainerMismatchError, match="/user_id of version 1"):
        await service.create_session(app_name="app", user_id="ada")
    await service.close()


def test_the_text_is_found_in_the_body_as_the_sdk_passes_it_on():
    body = json.dumps({"code": "Forbidden", "message": "It is closed.\r\nActivityId: 1"})
    assert quoted(f"Status code: 403\n{body}") == "It is closed."


def test_a_missing_container_is_told_in_azures_words():
    error = error_of(404, "Owner resource does not exist", sub_status=1003)
    assert isinstance(error, ContainerMismatchError)
    assert str(error).endswith("Azure's answer: Owner resource does not exist")
