"""The page and the data that its script asks for. It reads, and changes nothing."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote

from aiohttp import web

from cosmos_emulator.documents import dumps
from cosmos_emulator.explorer.guard import PREFIX, Guard
from cosmos_emulator.messages import Request, Response
from cosmos_emulator.partition_keys import MAX_EPK

if TYPE_CHECKING:
    from cosmos_emulator.emulator import Emulator

PAGE_SIZE: Final = 50
_STATIC: Final = Path(__file__).parent / "static"
_KINDS: Final = {
    "index.html": "text/html",
    "explorer.css": "text/css",
    "explorer.js": "text/javascript",
}
_QUERY: Final = {
    "x-ms-documentdb-isquery": "true",
    "content-type": "application/query+json",
    "x-ms-documentdb-query-enablecrosspartition": "true",
}
_PLAN: Final = {
    "x-ms-cosmos-is-query-plan-request": "true",
    "x-ms-cosmos-supported-query-features": "Aggregate,CompositeAggregate,CountIf,Distinct,"
    "DCount,GroupBy,HybridSearch,MultipleAggregates,MultipleOrderBy,NonStreamingOrderBy,"
    "NonValueAggregate,OffsetAndLimit,OrderBy,Top,WeightedRankFusion",
}


class Explorer:
    """The data page of one emulator."""

    def __init__(self, emulator: Emulator) -> None:
        self._emulator = emulator
        self._guard = Guard()

    @property
    def path(self) -> str:
        return self._guard.path

    def serves(self, request: web.Request) -> bool:
        return request.path == PREFIX or request.path.startswith(f"{PREFIX}/")

    async def handle(self, request: web.Request) -> web.Response:
        return await self._guard.guarded(request, self._page)

    async def _page(self, request: web.Request) -> web.Response:
        name = request.path.removeprefix(PREFIX).strip("/") or "index.html"
        if request.method == "GET" and name in _KINDS:
            text = _STATIC.joinpath(name).read_text(encoding="utf-8")
            return web.Response(text=text, content_type=_KINDS[name], charset="utf-8")
        if request.method == "GET" and name == "catalog":
            return _json(await self._catalog())
        if request.method == "POST" and name == "query":
            return _json(await self._query(await request.json()))
        return web.Response(status=404, text="There is no such page.\n")

    async def _catalog(self) -> list[dict[str, Any]]:
        """All databases, with the definitions of their containers."""
        databases = (await self._ask("GET", "/dbs"))["Databases"]
        return [
            {
                "id": database["id"],
                "containers": (
                    await self._ask("GET", f"/dbs/{quote(database['id'], safe='')}/colls")
                )["DocumentCollections"],
            }
            for database in databases
        ]

    async def _query(self, asked: dict[str, Any]) -> dict[str, Any]:
        """One page of results with its charge, and how clients have to merge the query."""
        database, container = (
            quote(str(asked[name]), safe="") for name in ("database", "container")
        )
        path = f"/dbs/{database}/colls/{container}/docs"
        spec = {"query": str(asked["query"])}
        headers = {**_QUERY, "x-ms-max-item-count": str(PAGE_SIZE)}
        # As one range, whatever the partitions: sorted and added up here.
        headers |= {"x-ms-start-epk": "", "x-ms-end-epk": MAX_EPK}
        if asked.get("continuation"):
            headers["x-ms-continuation"] = str(asked["continuation"])
        answer = await self._send("POST", path, spec, headers)
        body = json.loads(answer.body)
        if answer.status != 200:
            return {"error": body.get("message", ""), "status": answer.status}
        plan = await self._send("POST", path, spec, {**_QUERY, **_PLAN})
        return {
            # As text: a script would write some numbers differently.
            "documents": [
                {"line": dumps(each), "text": json.dumps(each, indent=2, ensure_ascii=False)}
                for each in body["Documents"]
            ],
            "charge": answer.charge,
            "continuation": answer.headers.get("x-ms-continuation"),
            "plan": json.loads(plan.body) if plan.status == 200 else None,
        }

    async def _ask(self, method: str, path: str) -> dict[str, Any]:
        found: dict[str, Any] = json.loads((await self._send(method, path, None, {})).body)
        return found

    async def _send(
        self, method: str, path: str, body: dict[str, Any] | None, headers: dict[str, str]
    ) -> Response:
        data = b"" if body is None else dumps(body).encode()
        return await self._emulator.inspect(Request(method, path, headers, data))


def _json(value: Any) -> web.Response:
    return web.Response(text=dumps(value), content_type="application/json")
