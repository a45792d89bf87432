"""Any text as a part of a document id."""

from __future__ import annotations

import re

_SAFE = re.compile(r"[A-Za-z0-9_-]*")
_UNSAFE = re.compile(rb"[^A-Za-z0-9_-]")


def escape(text: str) -> str:
    """Escapes to characters that are safe in ids and URLs, without a dot. It is injective."""
    if _SAFE.fullmatch(text):  # nearly always
        return text
    return _UNSAFE.sub(lambda m: b"~%02X" % m[0][0], text.encode()).decode("ascii")
