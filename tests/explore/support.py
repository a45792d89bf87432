"""A visitor of the page, and the page as people read it."""

from __future__ import annotations

import html
import re


class Visitor:
    """A user whose browser has opened the page."""

    def __init__(self, http, address, explorer, service, dependants, meter):
        self.http, self.explorer, self.service = http, explorer, service
        self.address, self.dependants, self.meter = address, dependants, meter
        self.origin = address.partition("/open")[0]

    async def answer(self, path, **options):
        async with self.http.get(self.origin + path, **options) as response:
            return response.status, await response.text()

    async def get(self, path, **parameters):
        status, text = await self.answer(path, params=parameters)
        assert status == 200, text
        return text

    async def post(self, path, parameters, form, **options):
        given = {"token": self.explorer.guard.form_token} | form
        async with self.http.post(
            self.origin + path, params=parameters, data=given, **options
        ) as response:
            return response.status, await response.text()


def read(page):
    """The text of a page, without its tags."""
    main = re.search(r"<main.*</main>", page, re.DOTALL)
    text = re.sub(r"<[^>]*>", " ", main[0] if main else page)
    return " ".join(html.unescape(text).split())


def names(session):
    return {"app": session.app_name, "user": session.user_id, "session": session.id}
