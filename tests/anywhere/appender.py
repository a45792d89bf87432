"""A process that appends events to one session until it is killed or has appended enough.

python -m tests.anywhere.appender APP NAME COUNT     the store: COSMOSDB_*

It prints the id of each event that was acknowledged.
"""

from __future__ import annotations

import asyncio
import sys

from cosmosservice import CosmosSessionService
from tests.support.adk import event


async def append(app: str, name: str, count: int) -> None:
    async with CosmosSessionService(on_conflict="rebase") as service:
        session = await service.get_session(app_name=app, user_id="ann", session_id="s")
        assert session is not None
        for number in range(count):
            said = f"{name}-{number}"
            await service.append_event(
                session, event(said, id=said, delta={f"user:{name}": number})
            )
            print(said, flush=True)


if __name__ == "__main__":
    asyncio.run(append(sys.argv[1], sys.argv[2], int(sys.argv[3])))
