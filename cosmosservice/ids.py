"""Names of any text as parts of a document id."""

from __future__ import annotations

import re

_UNSAFE = re.compile(rb"[^A-Za-z0-9_-]")


def escape(text: str) -> str:
    """Injective, into characters that are safe in an id and a URL; never yields a dot."""
    return _UNSAFE.sub(lambda m: b"~%02X" % m[0][0], text.encode()).decode("ascii")
