"""Names, users and sessions with any text never collide."""

from __future__ import annotations

import itertools

import pytest
from google.adk.errors.input_validation_error import InputValidationError
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cosmosservice import InvalidIdError
from cosmosservice.artifacts.keys import ArtifactKey
from tests.artifacts.kinds import text

NAMES = [
    "a", "A", " a", "a ", "a.", "a..b", "..", "../a", "/", "a/b", "a\\b", "a//b", "", ".", "%2F",
    "a%2Fb", "a~2Fb", "v0", "a.0000000000", "\u00e9", "e\u0301", "ß", "ss", "\x00", "\n", "\u202e",
    "😀", "?", "#", "'", '"', "user", "user:", "user:a", "user:user:a", "USER:a", "x" * 4096,
]  # fmt: skip


async def test_hostile_names_are_kept_apart_and_listed_as_they_are(open_artifacts, who):
    service = open_artifacts()
    for name in NAMES:
        assert await service.save_artifact(**who, filename=name, artifact=text(name)) == 0
    for name in NAMES:
        assert (await service.load_artifact(**who, filename=name)).text == name
    assert await service.list_artifact_keys(**who) == sorted(NAMES)
    for name in NAMES[::2]:
        await service.delete_artifact(**who, filename=name)
    assert await service.list_artifact_keys(**who) == sorted(NAMES[1::2])


async def test_ids_that_read_alike_when_joined_are_kept_apart(open_artifacts):
    service = open_artifacts()
    words = ["a", "a/b", "b", 'a","b', "user", "\u00fc", "u\u0308"]
    scopes = list(itertools.product(words[:4], words[:4], words))
    for n, (app, user, session) in enumerate(scopes):
        await service.save_artifact(
            app_name=app, user_id=user, session_id=session, filename="f", artifact=text(str(n))
        )
    for n, (app, user, session) in enumerate(scopes):
        found = await service.load_artifact(
            app_name=app, user_id=user, session_id=session, filename="f"
        )
        assert found.text == str(n)


words = st.text(max_size=6)


@given(st.tuples(words, words, words, words), st.tuples(words, words, words, words))
@settings(max_examples=300, suppress_health_check=[HealthCheck.too_slow])
def test_two_artifacts_share_a_document_only_if_they_are_the_same(one, two):
    def identity(ids):
        try:
            key = ArtifactKey.named(*ids[:3], session_id=ids[3])
        except (InputValidationError, InvalidIdError):
            return None
        return key.partition, key.entry_id(0)

    def same(ids):
        return ids[:3] if ids[2].startswith("user:") else ids

    if identity(one) is not None and identity(two) is not None:
        assert (identity(one) == identity(two)) == (same(one) == same(two))


@pytest.mark.parametrize("field", ["app_name", "user_id", "session_id", "filename"])
@pytest.mark.parametrize("value", ["\ud800", "x" * 5000])
async def test_an_id_that_is_not_text_or_too_long_is_refused(open_artifacts, who, field, value):
    service = open_artifacts()
    artifact = who | {"filename": "f"} | {field: value}
    with pytest.raises(InvalidIdError, match="Nothing was stored"):
        await service.save_artifact(**artifact, artifact=text("x"))


async def test_no_error_and_no_repr_names_a_user_or_a_session(open_artifacts):
    service = open_artifacts()
    secret = {"app_name": "app", "user_id": "secret-user/../x", "session_id": "secret-session"}
    with pytest.raises(InputValidationError) as refused:
        await service.save_artifact(**secret, filename="f", artifact=text("x"))
    assert "secret" not in str(refused.value)
    assert "secret" not in repr(service)
