"""The process that will be killed: it uses sessions, and reports what it was told."""

from __future__ import annotations

import asyncio
import contextlib
import random
import time
from multiprocessing.connection import Connection

from google.adk.sessions import Session

from cosmosservice import CosmosSessionService
from cosmosservice.errors import AlreadyExistsError, SessionNotFoundError, StaleSessionError
from tests.reliability.guarantees import APP, Where
from tests.support.adk import event

SESSIONS: list[Where] = [("ann", "s"), ("ann", "t"), ("bob", "s")]


def work(pipe: Connection, endpoint: str, key: str, name: str, seed: int) -> None:
    """Uses sessions until it is killed or told to stop."""
    asyncio.run(_work(pipe, endpoint, key, name, random.Random(seed)))


async def _work(pipe: Connection, endpoint: str, key: str, name: str, dice: random.Random) -> None:
    mode = dice.choice(["raise", "rebase"])
    service = CosmosSessionService(
        endpoint=endpoint, credential=key, database="adk", ensure="never", on_conflict=mode
    )
    number = 0
    while not pipe.poll():
        where = dice.choice(SESSIONS)
        who = {"app_name": APP, "user_id": where[0], "session_id": where[1]}
        if dice.random() < 0.06:
            await service.delete_session(**who)
            continue
        session = await _open(pipe, service, who, f"born-{name}-{number}")
        number += 1
        for _ in range(dice.randint(1, 4)):
            number += 1
            if session is None or not await _append(
                pipe, service, session, f"{name}-{number}", dice
            ):
                break
    await service.close()


async def _open(
    pipe: Connection, service: CosmosSessionService, who: dict[str, str], born: str
) -> Session | None:
    session = await service.get_session(**who)
    if session is None:
        pipe.send(("born", born, None))
        with contextlib.suppress(AlreadyExistsError):
            return await service.create_session(**who, state={"born": born, "user:born": born})
    return session


async def _append(
    pipe: Connection,
    service: CosmosSessionService,
    session: Session,
    name: str,
    dice: random.Random,
) -> bool:
    keys = dice.sample(["k", "l", "user:k", "user:l", "app:k", "app:l"], dice.randint(0, 3))
    said = event(name, id=name, delta=dict.fromkeys(keys, name), timestamp=time.time())
    where = session.user_id, session.id
    pipe.send(("tried", name, where))
    try:
        await service.append_event(session, said)
    except (StaleSessionError, SessionNotFoundError):
        pipe.send(("refused", name, where))
        return False
    pipe.send(("stored", name, where))
    return True
