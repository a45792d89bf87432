"""The page as files that a browser shows without a server: for a bug report, or for others to click
through. Everything is read first, so that it can be said what is in it before it is written."""

from __future__ import annotations

import hashlib
import html
import re
from collections import deque
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import parse_qsl, urlsplit

import aiohttp

from cosmosservice.errors import CosmosServiceError
from cosmosservice.explore.rendering import Static, url
from cosmosservice.explore.server import Explorer

if TYPE_CHECKING:
    from cosmosservice.cosmos_session_service import CosmosSessionService
    from cosmosservice.explore.catalogue import Row
    from cosmosservice.explore.dependants import Dependants
    from cosmosservice.explore.meter import Meter

MOST_BYTES: Final = 200_000_000
_LINK: Final = re.compile(r' (href|src)="(/[^"]*)"')
_FOLDER: Final = Path(__file__).parent / "static"
_HARMLESS: Final = frozenset(
    (".png", ".jpg", ".jpeg", ".gif", ".webp", ".txt", ".md", ".csv", ".json", ".pdf")
)
# The pages that are exported, and the parameters that tell one from another.
_KEY: Final = ("app", "user", "session")
_PAGES: Final = {
    "/": ("continue",),
    "/session": (*_KEY, "before", "after"),
    "/raw": (*_KEY, "revision"),
    "/user": _KEY[:2],
    "/artifact": (*_KEY, "name", "version"),
    "/artifact/content": (*_KEY, "name", "version"),
    "/compare": (*_KEY, "other", "other_user"),
    "/activity": (),
    "/usage": ("app",),
}


@dataclass
class StaticSite:
    """What an export has: files by their names, and what they are about."""

    sessions: list[Row] = field(default_factory=list)
    files: dict[str, bytes] = field(default_factory=dict)
    artifacts: int = 0
    artifact_bytes: int = 0
    events: int = 0
    users: int = 0  # whose state, memories and artifacts are in it

    @property
    def size(self) -> int:
        return sum(map(len, self.files.values()))

    def write(self, folder: Path) -> None:
        for name, data in self.files.items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)


async def static_site(
    service: CosmosSessionService, meter: Meter, dependants: Dependants, wanted: Static
) -> StaticSite:
    """Reads everything that the export will have. Raises CosmosServiceError if it is too much."""
    explorer = Explorer(service, meter, dependants, static=wanted)
    jar = aiohttp.CookieJar(unsafe=True)
    async with explorer.served() as address, aiohttp.ClientSession(cookie_jar=jar) as http:
        async with http.get(address):
            pass
        site = _Crawl(http, address.partition("/open")[0], wanted)
        await site.run()
    made = site.made
    made.sessions = wanted.rows
    made.events = sum(row.records for row in made.sessions)
    return made


class _Crawl:
    """Follows the links of the pages, and gives each page a file."""

    def __init__(self, http: aiohttp.ClientSession, origin: str, wanted: Static) -> None:
        self._http = http
        self._origin = origin
        self._wanted = wanted
        self._names: dict[str, str] = {}
        self._due: deque[str] = deque()
        self._sessions = {
            (row.key.app_name, row.key.user_id, row.key.session_id) for row in wanted.rows
        }
        self.made = StaticSite()

    async def run(self) -> None:
        self._name("/")
        while self._due:
            await self._fetch(self._due.popleft())
            if self.made.size > MOST_BYTES:
                raise CosmosServiceError(
                    f"The export has more than {MOST_BYTES // 1_000_000} MB. Choose fewer sessions."
                    " Nothing was written."
                )
        for path in _FOLDER.iterdir():
            self.made.files[f"static/{path.name}"] = path.read_bytes()

    async def _fetch(self, address: str) -> None:
        name = self._names[address]
        async with self._http.get(self._origin + address) as response:
            data = await response.read()
            is_page = response.content_type == "text/html"
        path = urlsplit(address).path
        if path == "/artifact/content":
            self.made.artifacts += 1
            self.made.artifact_bytes += len(data)
        if path == "/user":
            self.made.users += 1
        if is_page:
            data = _LINK.sub(self._linked, data.decode()).encode()
        self.made.files[name] = data

    def _linked(self, found: re.Match[str]) -> str:
        """A link to the file of a page. A link to a page that is left out becomes text."""
        address, hash_mark, anchor = html.unescape(found[2]).partition("#")
        if address.startswith("/static/"):
            return f' {found[1]}="{address.removeprefix("/")}"'
        name = self._name(address)
        if name is None:
            return "" if found[1] == "href" else f' {found[1]}="data:,"'
        return f' {found[1]}="{html.escape(name + hash_mark + anchor)}"'

    def _name(self, address: str) -> str | None:
        """The file of a page, which is fetched if it was not yet."""
        parts = urlsplit(address)
        given = dict(parse_qsl(parts.query, keep_blank_values=True))
        if parts.path not in _PAGES or not self._is_wanted(parts.path, given):
            return None
        same = {key: given[key] for key in _PAGES[parts.path] if key in given}
        wanted = url(parts.path, **same)
        if wanted not in self._names:
            self._names[wanted] = _file_name(parts.path, wanted, same)
            self._due.append(wanted)
        return self._names[wanted]

    def _is_wanted(self, path: str, given: dict[str, str]) -> bool:
        if path == "/":
            return True
        if path in ("/activity", "/usage"):
            return self._wanted.with_all
        if path == "/user" or not given.get("session"):
            return self._wanted.with_users
        keys = [tuple(given.get(name, "") for name in _KEY)]
        if path == "/compare":
            keys.append((keys[0][0], given.get("other_user", ""), given.get("other", "")))
        return self._sessions.issuperset(keys)


def _file_name(path: str, address: str, given: dict[str, str]) -> str:
    """Says what a file is, and nothing of whom it is about."""
    if path == "/" and not given:
        return "index.html"
    if not given:
        return f"{path.strip('/')}.html"
    digest = hashlib.sha256(address.encode()).hexdigest()[:12]
    if path != "/artifact/content":
        return f"{path.strip('/') or 'sessions'}-{digest}.html"
    # A browser must not run what it opens.
    ending = Path(given.get("name", "")).suffix.lower()
    return f"files/{digest}{ending if ending in _HARMLESS else '.bin'}"
