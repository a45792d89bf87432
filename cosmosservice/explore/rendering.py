"""Templates: every value is escaped, and hidden characters are made visible."""

from __future__ import annotations

import hashlib
import json
import time
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlencode

from aiohttp import web
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup, escape

from cosmosservice.explore import texts
from cosmosservice.explore.catalogue import Row
from cosmosservice.explore.markdown import markdown, marked
from cosmosservice.explore.meter import spent_by_page
from cosmosservice.sessions.store.keys import SessionKey

_FOLDER: Final = Path(__file__).parent / "pages"


def url(path: str, key: SessionKey | None = None, /, **parameters: Any) -> str:
    """The address of a page about a session, if one is given."""
    named = {} if key is None else session_parameters(key)
    given = {name: value for name, value in parameters.items() if value not in (None, "")}
    return f"{path}?{urlencode(named | given)}" if named or given else path


def session_parameters(key: SessionKey) -> dict[str, str]:
    return {"app": key.app_name, "user": key.user_id, "session": key.session_id}


def anchor(key: SessionKey) -> str:
    """Names a session within a page: the same on every page, and without its id."""
    names = json.dumps([key.app_name, key.user_id, key.session_id])
    return "s" + hashlib.sha256(names.encode()).hexdigest()[:12]


def _shown(value: Any) -> Any:
    return texts.visible(value) if type(value) is str else value


def exact(value: str) -> Markup:
    """For the value of a form field, which is sent back: escaped, but hidden characters stay."""
    return escape(value.encode("utf-8", "backslashreplace").decode())


@dataclass(frozen=True)
class Static:
    """What pages that need no server are about."""

    rows: list[Row]  # the sessions
    with_users: bool = True  # also the pages of their users
    with_all: bool = True  # also the pages about all sessions
    made_at: float = field(default_factory=time.time)


class Rendering:
    """Makes pages from templates."""

    def __init__(self, *, write: bool = False, static: Static | None = None, **shared: Any) -> None:
        self.write = write
        self.static = static
        self._templates = Environment(
            loader=FileSystemLoader(_FOLDER),
            autoescape=True,
            undefined=StrictUndefined,
            finalize=_shown,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        self._templates.filters |= {
            "instant": texts.instant,
            "moment": texts.moment,
            "duration": texts.duration,
            "number": "{:,}".format,
            "size": texts.size,
            "value": texts.value_text,
            "exact": exact,
            "markdown": markdown,
            "marked": marked,
        }
        self._templates.globals |= {
            "anchor": anchor,
            "url": url,
            "counted": texts.counted,
            "write": write,
            "static": static,
            **shared,
        }

    def page(self, template: str, status: int = 200, /, **values: Any) -> web.Response:
        ago = partial(texts.ago, now=time.time())
        spent = spent_by_page()
        text = self._templates.get_template(template).render(values, ago=ago, spent=spent)
        return web.Response(text=text, status=status, content_type="text/html")
