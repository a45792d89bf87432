"""Every message can be found by a search in docs/troubleshooting.md."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.docs.messages import CLASSES, messages

PAGE = (Path(__file__).parents[2] / "docs" / "troubleshooting.md").read_text(encoding="utf-8")
TEXT = " ".join(re.sub(r"[`\\*]", "", PAGE).split())
MESSAGES = sorted(set(messages()))


@pytest.mark.parametrize("name", sorted(CLASSES))
def test_every_class_has_a_heading_of_its_own(name):
    assert re.search(rf"^#+ {name}$", PAGE, re.MULTILINE)


def test_every_message_is_found():
    assert len(MESSAGES) > 80
    lost = [
        f"{each.where} {each.kind}: {words}"
        for each in MESSAGES
        for words in each.words
        if re.sub(r"[`*]", "", words) not in TEXT
    ]
    assert not lost, "\n".join(lost)
