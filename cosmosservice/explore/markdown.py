"""Markdown of models as HTML. Nothing of it runs, loads or hides anything: HTML is shown as text,
an image is a link, and only links to the web remain links."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, Final

from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML
from markdown_it.token import Token
from markdown_it.utils import OptionsDict
from markupsafe import Markup, escape

from cosmosservice.explore.texts import visible

_LINKS: Final = re.compile(r"(https?|mailto):", re.IGNORECASE)
_LANGUAGE: Final = re.compile(r"[\w+#.-]{1,30}")
_MOST_BRACKETS: Final = 500  # the time that they take grows with their square
_HEADINGS: Final = {"h1": "h4", "h2": "h5", "h3": "h6", "h4": "h6", "h5": "h6"}  # below an event's


Searched = str | re.Pattern[str] | None
"""A text that was searched for, or what matches it in lower case."""


def markdown(text: str, searched: Searched = None) -> Markup:
    """With what was searched for marked."""
    return _rendered(text, _pattern(searched))


def marked(text: str, searched: Searched) -> Markup:
    """Plain text, with what was searched for marked."""
    return Markup(_marked(text, _pattern(searched)))


def _pattern(searched: Searched) -> re.Pattern[str] | None:
    if isinstance(searched, str):
        return re.compile(re.escape(searched.casefold())) if searched else None
    return searched


def _marked(text: str, searched: re.Pattern[str] | None) -> str:
    """Escaped. An entity, such as `&#x202e;`, has become a character only now."""
    text = visible(text)
    # A few characters change their number when folded: then no offset would be right.
    if searched is None or len(folded := text.casefold()) != len(text):
        return str(escape(text))
    marked, at = [], 0
    for found in searched.finditer(folded):
        begin, end = found.span()
        marked.append(f"{escape(text[at:begin])}<mark>{escape(text[begin:end])}</mark>")
        at = end
    return "".join(marked) + str(escape(text[at:]))


class _Renderer(RendererHTML):
    """Its output needs no inline styles and no ids, and reads well in both directions."""

    def text(self, tokens: Sequence[Token], at: int, options: OptionsDict, env: Any) -> str:
        return _marked(tokens[at].content, env["searched"])

    def code_inline(self, tokens: Sequence[Token], at: int, options: OptionsDict, env: Any) -> str:
        return f"<code>{_marked(tokens[at].content, env['searched'])}</code>"

    def code_block(self, tokens: Sequence[Token], at: int, options: OptionsDict, env: Any) -> str:
        return self.fence(tokens, at, options, env)

    def fence(self, tokens: Sequence[Token], at: int, options: OptionsDict, env: Any) -> str:
        language = _LANGUAGE.match(tokens[at].info)
        return (
            f'<div class="code"><p class="bar"><span>{escape(language[0]) if language else "code"}'
            '</span> <button type="button" class="copy">copy</button></p>'
            f'<pre tabindex="0">{_marked(tokens[at].content, env["searched"])}</pre></div>'
        )

    def image(self, tokens: Sequence[Token], at: int, options: OptionsDict, env: Any) -> str:
        """A link: the page loads nothing from elsewhere."""
        source, name = str(tokens[at].attrGet("src") or ""), tokens[at].content or "image"
        return f"{_opened(source)}{_marked(name, env['searched'])}</a>"

    def link_open(self, tokens: Sequence[Token], at: int, options: OptionsDict, env: Any) -> str:
        return _opened(str(tokens[at].attrGet("href") or ""))

    def table_open(self, tokens: Sequence[Token], at: int, options: OptionsDict, env: Any) -> str:
        return '<div class="table" tabindex="0"><table dir="auto">'

    def table_close(self, tokens: Sequence[Token], at: int, options: OptionsDict, env: Any) -> str:
        return "</table></div>"

    def renderToken(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: Any) -> str:
        token = tokens[idx]
        token.tag = _HEADINGS.get(token.tag, token.tag)
        if token.nesting == 1 and token.block:
            align = str(token.attrs.pop("style", "")).removeprefix("text-align:")
            if align:
                token.attrSet("class", align)
            if token.tag not in ("thead", "tbody", "tr"):
                token.attrSet("dir", "auto")
        return super().renderToken(tokens, idx, options, env)


def _opened(address: str) -> str:
    """The title shows where a link leads, whatever its text says."""
    shown = escape(visible(address))
    return f'<a href="{shown}" title="{shown}" rel="noopener noreferrer nofollow" target="_blank">'


def _reader() -> MarkdownIt:
    made = MarkdownIt("commonmark", {"html": False, "breaks": True}, renderer_cls=_Renderer)
    setattr(made, "validateLink", lambda url: bool(_LINKS.match(url)))  # noqa: B010  as documented
    return made.enable(["table", "strikethrough"])


_READER: Final = _reader()


@lru_cache(maxsize=512)  # a page that is followed shows the same texts again and again
def _rendered(text: str, searched: re.Pattern[str] | None) -> Markup:
    if text.count("[") > _MOST_BRACKETS:
        return Markup('<p dir="auto">{}</p>').format(marked(text, searched))
    made = _READER.render(visible(text), {"searched": searched})
    return Markup(made)
