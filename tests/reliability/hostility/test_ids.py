"""Names from outside: whatever they contain, sessions never mix."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from cosmos_emulator import Emulator
from cosmosservice import CosmosSessionService
from cosmosservice.errors import InvalidIdError
from tests.support.adk import event, texts

# Characters that separate, quote, escape or end something, and names that look like our own ids.
PIECES = [
    *("a", "b", "c", ".", "..", "/", "\\", "?", "#", "%", "%2F", "%00", "\0", "\n", "\t", " "),
    *("'", '"', "`", "''", "~", "~2E", "-", "_", ":", "app:", "user:", "@", "&", ";", "--"),
    *("😀", "é", "e\u0301", "\u202e", "\ufeff", "ß", "İ", "null", "undefined", "{}", "[]", "$"),
    *("session", "user_state", "app_state", "x' OR '1'='1", "0000000001", "A"),
]
names = st.lists(st.sampled_from(PIECES), min_size=1, max_size=4).map("".join)
anything = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=12)
name = st.one_of(names, names, anything)


def identity(who):
    """What identifies a session: ADK strips session ids."""
    return who["app_name"], who["user_id"], who["session_id"].strip()


def triple(app, user, session):
    return {"app_name": app, "user_id": user, "session_id": session}


async def fill(service, who, word):
    session = await service.create_session(**who, state={"k": word})
    delta = {"last": word, "user:u": word, "app:a": word}
    return await service.append_event(session, event(word, delta=delta))


triples = st.builds(triple, name, name, name.filter(lambda text: text.strip()))


@settings(
    max_examples=20,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow],
)
@given(st.lists(triples, min_size=2, max_size=3, unique_by=identity))
@example([triple("a", "b.c", "s"), triple("a.b", "c", "s")])
@example([triple("a", "b", "c.d"), triple("a.b", "c", "d"), triple("a", "b.c", "d")])
@example([triple("x", "app:x", "s"), triple("x", "x", "s"), triple("app:x", "x", "s")])
@example([triple("a", "u", "~2E"), triple("a", "u", "."), triple("a", "u", "%2E")])
@example([triple("a\0b", "c", "s"), triple("a", "b\0c", "s"), triple("a", "b", "c\0s")])
@example([triple("a", "é", "é"), triple("a", "e\u0301", "e\u0301")])
@example([triple("A", "U", "S"), triple("a", "u", "s")])
async def test_look_alikes_never_meet(people):
    with Emulator() as emulator:
        async with CosmosSessionService.embedded(emulator) as writer:
            for number, who in enumerate(people):
                await fill(writer, who, str(number))
        async with CosmosSessionService.embedded(emulator) as reader:
            await check(reader, people)


async def check(service, people):
    newest = {who["app_name"]: str(number) for number, who in enumerate(people)}
    of_user = {(who["app_name"], who["user_id"]): str(n) for n, who in enumerate(people)}
    for number, who in enumerate(people):
        app, user, session_id = identity(who)
        found = await service.get_session(**who)
        assert identity(triple(found.app_name, found.user_id, found.id)) == (app, user, session_id)
        assert texts(found) == [str(number)]
        expected = {"k": str(number), "last": str(number)}
        expected |= {"user:u": of_user[app, user], "app:a": newest[app]}
        assert found.state == expected
        listed = (await service.list_sessions(app_name=app, user_id=user)).sessions
        mine = {identity(each)[2] for each in people if identity(each)[:2] == (app, user)}
        assert {each.id for each in listed} == mine
    first, *others = people
    await service.purge_session(**first)
    assert await service.get_session(**first) is None
    for number, who in enumerate(others, 1):
        assert texts(await service.get_session(**who)) == [str(number)]


# "session." + app + "." + session id must fit into the 1,023 bytes of a document's id.
ROOM = 1_023 - len("session.a.")


@pytest.mark.parametrize(
    "who",
    [
        triple("a", "u", "s" * ROOM),
        triple("a", "u", "é" * (ROOM // 6)),
        triple("a", "u", "😀" * (ROOM // 12)),
        triple("a" * (1_023 - len("app_state..")), "u", "s"[: 1_023 - len("app_state..")]),
        triple("a", "u" * 2_048, "s"),
        triple("a", "é" * 1_024, "s"),
        triple("a", "", "s"),
    ],
    ids=lambda who: "-".join(str(len(part.encode())) for part in who.values()),
)
async def test_the_longest_names_live_a_whole_life(open_service, who):
    service, other = open_service(), open_service()
    await fill(service, who, "one")
    assert texts(await other.get_session(**who)) == ["one"]
    await service.delete_session(**who)
    await other.restore_session(**who)
    assert [each.id for each in (await other.list_sessions(app_name=who["app_name"])).sessions] == [
        who["session_id"]
    ]
    assert (await service.purge_session(**who)).documents
    assert await other.get_session(**who) is None


OPERATIONS = [
    "create_session",
    "get_session",
    "delete_session",
    "restore_session",
    "purge_session",
    "repair_session",
]


@pytest.mark.parametrize("operation", OPERATIONS)
@pytest.mark.parametrize(
    "who",
    [
        triple("a", "u", "s" * (ROOM + 1)),
        triple("a", "u", "s" * 1_000_000),
        triple("a" * 1_024, "u", "s"),
        triple("a", "u" * 2_049, "s"),
        triple("a", "u", "half \ud83d"),
        triple("half \ud83d", "u", "s"),
        triple("a", 7, "s"),
        triple(7, "u", "s"),
        triple("a", "u", 7),
        triple("a", "u", b"s"),
        triple("a", None, "s"),
    ],
    ids=lambda who: "-".join(
        str(part)[:5].encode("ascii", "replace").decode() for part in who.values()
    ),
)
async def test_a_name_that_cannot_be_kept_is_refused_by_every_operation(
    open_service, emulator, operation, who
):
    service = open_service()
    with pytest.raises(InvalidIdError):
        await getattr(service, operation)(**who)
    assert not [each for each in emulator.requests if each.resource == "docs"]


@pytest.mark.parametrize("bad", ["half \ud83d", "a" * 1_024, 7])
async def test_lists_and_users_refuse_such_names_too(open_service, bad):
    service = open_service()
    with pytest.raises(InvalidIdError):
        await service.list_sessions(app_name=bad)
    with pytest.raises(InvalidIdError):
        await service.list_sessions_page(app_name=bad, user_id="u")
    user = "u" * 2_049 if bad == "a" * 1_024 else bad
    with pytest.raises(InvalidIdError):
        await service.list_sessions(app_name="a", user_id=user)
    with pytest.raises(InvalidIdError):
        await service.get_user_state(app_name="a", user_id=user)
    with pytest.raises(InvalidIdError):
        await service.purge_user(app_name="a", user_id=user)


async def test_state_keys_may_be_any_text(open_service):
    service = open_service()
    keys = [piece.join("xy") for piece in PIECES] + [
        "",
        "user:",
        "app:",
        "user:app:x",
        "_etag",
        "id",
    ]
    state = {key: number for number, key in enumerate(keys)}
    session = await service.create_session(app_name="a", user_id="u", state=dict(state))
    changed = {key: value + 1000 for key, value in state.items()}
    await service.append_event(session, event("x", delta=dict(changed)))
    await service.flush()
    found = await open_service().get_session(app_name="a", user_id="u", session_id=session.id)
    assert found.state == changed
