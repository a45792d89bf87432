"""The contract of ADK's artifact services. ADK's own services run the parts that they claim."""

from __future__ import annotations

import asyncio
import itertools
import time

import pytest
from google.adk.artifacts.artifact_util import get_artifact_uri
from google.adk.errors.input_validation_error import InputValidationError
from google.genai import types

from tests.artifacts.kinds import DURABLE, EXACT, MODERN, REFERENCES, blob, refer, text

# Around the thresholds of the small store.
SIZES = [1, 15, 16, 17, 255, 256, 257, 383, 384, 385, 768, 769, 1000]


def another(who, **changed):
    return who | changed


async def save(service, who, filename="f", part=None, **options):
    artifact = part if part is not None else text("hello")
    return await service.save_artifact(**who, filename=filename, artifact=artifact, **options)


async def load(service, who, filename="f", **options):
    return await service.load_artifact(**who, filename=filename, **options)


async def test_versions_count_from_zero(service, who):
    assert [await save(service, who, part=text(str(n))) for n in range(3)] == [0, 1, 2]
    assert await service.list_versions(**who, filename="f") == [0, 1, 2]
    assert [(await load(service, who, version=n)).text for n in range(3)] == ["0", "1", "2"]
    assert (await load(service, who)).text == "2"


async def test_what_was_never_saved_is_not_there(service, who):
    assert await load(service, who) is None
    assert await load(service, who, version=0) is None
    assert await service.list_versions(**who, filename="f") == []
    assert await service.list_artifact_versions(**who, filename="f") == []
    assert await service.get_artifact_version(**who, filename="f") is None
    assert await service.list_artifact_keys(**who) == []
    await service.delete_artifact(**who, filename="f")


async def test_a_version_beyond_the_last_is_not_there(service, who):
    await save(service, who)
    assert await load(service, who, version=1) is None
    assert await service.get_artifact_version(**who, filename="f", version=1) is None


@pytest.mark.claims(EXACT, MODERN)
async def test_a_negative_version_is_not_there(service, who):
    await save(service, who)
    assert await load(service, who, version=-1) is None
    assert await service.get_artifact_version(**who, filename="f", version=-1) is None


@pytest.mark.parametrize("size", SIZES)
async def test_bytes_come_back_as_they_were(service, who, size):
    data = bytes(range(256)) * (size // 256 + 1)
    await save(service, who, part=blob(data[:size]))
    found = await load(service, who)
    assert (found.inline_data.data, found.inline_data.mime_type) == (data[:size], "image/png")


@pytest.mark.claims(EXACT)
async def test_text_comes_back_as_text(service, who):
    for size in (1, 16, 17, 256, 257, 2000):
        await save(service, who, part=text("é" * size))
        assert await load(service, who) == text("é" * size)


@pytest.mark.claims(EXACT, MODERN)
async def test_an_empty_text_is_a_text(service, who):
    await save(service, who, part=text(""))
    assert await load(service, who) == text("")


@pytest.mark.claims(MODERN)
async def test_an_empty_file_is_a_file(service, who):
    await save(service, who, part=blob(b""))
    found = await load(service, who)
    assert found is not None
    assert found.inline_data.mime_type == "image/png"


@pytest.mark.claims(MODERN)
async def test_what_a_rewind_saves_loads_as_nothing(service, who):
    await save(service, who, part=blob(b"1"))
    await save(service, who, part=blob(b"", "application/octet-stream"))
    assert await load(service, who) is None
    assert (await load(service, who, version=0)).inline_data.data == b"1"
    assert await service.list_versions(**who, filename="f") == [0, 1]


@pytest.mark.claims(EXACT)
async def test_every_field_of_a_part_is_kept(service, who):
    part = types.Part(
        inline_data=types.Blob(data=b"\x00\xff", mime_type="video/mp4", display_name="Film é"),
        thought_signature=b"\x01",
        video_metadata=types.VideoMetadata(fps=2.5),
    )
    await save(service, who, part=part)
    assert await load(service, who) == part


async def test_a_dictionary_is_a_part(service, who):
    await save(service, who, part={"inlineData": {"data": "AQI=", "mimeType": "image/png"}})
    assert (await load(service, who)).inline_data.data == b"\x01\x02"


@pytest.mark.claims(EXACT, MODERN)
async def test_a_part_with_nothing_in_it_is_refused(service, who):
    with pytest.raises(InputValidationError):
        await save(service, who, part=types.Part())
    assert await service.list_artifact_keys(**who) == []


@pytest.mark.claims(EXACT)
async def test_a_name_without_a_session_is_refused(service, who):
    for work in (save, load):
        with pytest.raises(InputValidationError):
            await work(service, another(who, session_id=None))


async def test_a_users_artifact_is_seen_in_every_session(service, who):
    await save(service, who, "user:card.txt")
    other = another(who, session_id="other")
    nowhere = another(who, session_id=None)
    assert (await load(service, other, "user:card.txt")).text == "hello"
    assert (await load(service, nowhere, "user:card.txt")).text == "hello"
    for each in (who, other, nowhere):
        assert await service.list_artifact_keys(**each) == ["user:card.txt"]
    await service.delete_artifact(**other, filename="user:card.txt")
    assert await load(service, who, "user:card.txt") is None


async def test_names_are_listed_sorted_and_complete(service, who):
    for name in ("z", "folder/b.txt", "a", "user:u", "folder/b.txt"):
        await save(service, who, name)
    await save(service, another(who, session_id="other"), "elsewhere")
    assert await service.list_artifact_keys(**who) == ["a", "folder/b.txt", "user:u", "z"]


async def test_a_name_and_one_below_it_are_two(service, who):
    await save(service, who, "doc")
    await save(service, who, "doc/nested")
    await service.delete_artifact(**who, filename="doc")
    assert await service.list_artifact_keys(**who) == ["doc/nested"]
    assert (await load(service, who, "doc/nested")).text == "hello"


@pytest.mark.claims(MODERN)
async def test_tenants_do_not_meet(service, who):
    scopes = [
        who,
        another(who, app_name=who["app_name"] + "2"),
        another(who, user_id="bob"),
        another(who, session_id="t"),
    ]
    for n, scope in enumerate(scopes):
        await save(service, scope, part=text(str(n)))
        await save(service, scope, "user:f", part=text(str(n)))
    assert [(await load(service, scope)).text for scope in scopes] == ["0", "1", "2", "3"]
    found = [(await load(service, scope, "user:f")).text for scope in scopes]
    assert found == ["3", "1", "2", "3"]  # the last scope has the same user as the first


async def test_deleting_removes_all_versions(service, who):
    for _ in range(3):
        await save(service, who, part=blob(b"x" * 1000))
    await service.delete_artifact(**who, filename="f")
    assert await load(service, who) is None
    assert await load(service, who, version=1) is None
    assert await service.list_versions(**who, filename="f") == []
    assert await service.list_artifact_keys(**who) == []


async def test_a_name_begins_at_zero_again_after_a_delete(service, who):
    for life in range(3):
        versions = [await save(service, who, part=text(f"{life}-{n}")) for n in range(2)]
        assert versions == [0, 1]
        assert (await load(service, who, version=0)).text == f"{life}-0"
        assert await service.list_versions(**who, filename="f") == [0, 1]
        await service.delete_artifact(**who, filename="f")


@pytest.mark.claims(MODERN)
async def test_metadata_is_kept_with_each_version(service, who):
    before = time.time()
    await save(service, who, part=blob(b"1", "image/gif"), custom_metadata={"a": [1, {"b": "é"}]})
    await save(service, who, part=text("2"))
    after = time.time()
    first, second = await service.list_artifact_versions(**who, filename="f")
    assert (first.version, second.version) == (0, 1)
    assert first.custom_metadata == {"a": [1, {"b": "é"}]}
    assert second.custom_metadata == {}
    assert first.mime_type == "image/gif"
    assert first.canonical_uri != second.canonical_uri
    assert before - 1 <= first.create_time <= second.create_time <= after + 1
    assert await service.get_artifact_version(**who, filename="f", version=0) == first
    assert await service.get_artifact_version(**who, filename="f") == second


@pytest.mark.claims(MODERN, EXACT)
async def test_changing_what_was_saved_or_loaded_changes_nothing_stored(service, who):
    metadata, part = {"a": [1]}, blob(b"1")
    await save(service, who, part=part, custom_metadata=metadata)
    metadata["a"].append(2)
    part.inline_data.data = b"2"
    (await load(service, who)).inline_data.data = b"3"
    (await service.get_artifact_version(**who, filename="f")).custom_metadata["b"] = 1
    assert (await load(service, who)).inline_data.data == b"1"
    found = await service.get_artifact_version(**who, filename="f")
    assert found.custom_metadata == {"a": [1]}


@pytest.mark.claims(REFERENCES)
async def test_a_uri_comes_back_as_it_was(service, who):
    part = types.Part(
        file_data=types.FileData(file_uri="https://example.com/a.pdf", mime_type="application/pdf")
    )
    await save(service, who, part=part)
    assert await load(service, who) == part
    found = await service.get_artifact_version(**who, filename="f")
    assert found.mime_type == "application/pdf"


def uri_of(who, filename, version, session=True):
    return get_artifact_uri(
        who["app_name"],
        who["user_id"],
        filename,
        version,
        session_id=who["session_id"] if session else None,
    )


@pytest.mark.claims(REFERENCES)
async def test_a_reference_loads_what_it_refers_to(service, who):
    await save(service, who, "a", part=blob(b"x" * 500))
    await save(service, who, "a", part=blob(b"y"))
    await save(service, who, "user:b", part=text("shared"))
    await save(service, who, "r", part=refer(uri_of(who, "a", 0)))
    await save(service, who, "s", part=refer(uri_of(who, "user:b", 0, session=False)))
    assert (await load(service, who, "r")).inline_data.data == b"x" * 500
    assert (await load(service, who, "s")).text == "shared"
    assert (await service.get_artifact_version(**who, filename="r")).mime_type is None


@pytest.mark.claims(REFERENCES)
async def test_a_reference_to_nothing_loads_as_nothing(service, who):
    await save(service, who, "r", part=refer(uri_of(who, "gone", 0)))
    assert await load(service, who, "r") is None


@pytest.mark.claims(REFERENCES, MODERN)
async def test_a_reference_out_of_its_scope_is_refused(service, who):
    for changed in ("app_name", "user_id", "session_id"):
        elsewhere = uri_of(another(who, **{changed: "x"}), "a", 0)
        with pytest.raises(InputValidationError):
            await save(service, who, "r", part=refer(elsewhere))
    with pytest.raises(InputValidationError):
        await save(service, who, "r", part=refer("artifact://nonsense"))
    assert await service.list_artifact_keys(**who) == []


@pytest.mark.claims(REFERENCES, MODERN)
async def test_references_are_followed_five_deep(service, who):
    await save(service, who, "0", part=text("end"))
    for depth in range(1, 7):
        await save(service, who, str(depth), part=refer(uri_of(who, str(depth - 1), 0)))
    assert (await load(service, who, "5")).text == "end"
    with pytest.raises(InputValidationError, match="depth"):
        await load(service, who, "6")


@pytest.mark.claims(REFERENCES, MODERN)
async def test_a_reference_to_itself_ends(service, who):
    await save(service, who, "r", part=refer(uri_of(who, "r", 0)))
    with pytest.raises(InputValidationError, match="depth"):
        await load(service, who, "r")


@pytest.mark.claims(MODERN)
async def test_ids_that_would_be_other_paths_are_refused(service, who):
    names = ("..", "a/../b", "", " ", "/a", "C:a", "a\x00b", "x/users/y")
    for name, field in itertools.product(names, ("app_name", "user_id", "session_id")):
        with pytest.raises(InputValidationError):
            await save(service, another(who, **{field: name}))


@pytest.mark.claims(DURABLE)
async def test_another_process_sees_everything(service, artifact_store, who):
    await save(service, who, part=blob(b"x" * 1000), custom_metadata={"k": 1})
    other = artifact_store.open()
    assert await save(other, who, part=text("2")) == 1
    assert await save(service, who, part=text("3")) == 2
    assert (await load(other, who, version=0)).inline_data.data == b"x" * 1000
    assert (await load(other, who)).text == "3"
    assert await other.list_artifact_keys(**who) == ["f"]


@pytest.mark.claims(DURABLE)
async def test_savers_at_once_get_different_versions(service, artifact_store, who):
    savers = [service, artifact_store.open(), artifact_store.open()]
    sizes = [10, 1000]
    versions = await asyncio.gather(
        *(
            save(savers[n % 3], who, part=blob(bytes([n]) * sizes[n % 2], f"image/{n}"))
            for n in range(12)
        )
    )
    assert sorted(versions) == list(range(12))
    for n, version in enumerate(versions):
        found = await load(savers[(n + 1) % 3], who, version=version)
        assert found == blob(bytes([n]) * sizes[n % 2], f"image/{n}")


@pytest.mark.claims(DURABLE)
async def test_uris_have_a_scheme_that_no_model_is_handed(service, who):
    await save(service, who, "a b/ü.txt")
    found = await service.get_artifact_version(**who, filename="a b/ü.txt")
    assert found.canonical_uri == (
        f"cosmosdb://apps/{who['app_name']}/users/ann/sessions/s"
        "/artifacts/a%20b/%C3%BC.txt/versions/0"
    )
