"""The picture of the timeline is up to date with the command. If not, run `make pictures`."""

from __future__ import annotations

import html
import re

from rich.text import Text

from docs.generate import badges, pictures, recording

PICTURE = pictures.FOLDER.joinpath("timeline.svg").read_text(encoding="utf-8")


def test_the_picture_shows_what_the_command_prints():
    lines = re.findall(r"<text[^>]*terminal-r\d[^>]*>(.*?)</text>", PICTURE)
    shown = "".join(html.unescape("".join(lines)).split())
    printed = Text.from_ansi(pictures.timeline()).plain
    assert shown == "".join(printed.split())


def test_the_picture_loads_nothing_from_elsewhere():
    addresses = set(re.findall(r"https?://[^\s\"'<>)]+", PICTURE))
    assert addresses <= {"http://www.w3.org/2000/svg", "https://www.textualize.io"}


def test_the_badges_say_what_the_project_file_says():
    assert badges.FILE.read_text(encoding="utf-8") == badges.drawn()


def test_the_recording_shows_that_nothing_is_lost_and_moves_only_for_those_who_like_it():
    shown = recording.FILE.read_text(encoding="utf-8")
    assert len(re.findall(r"✓ (\d+) events acknowledged, \1 stored", shown)) == 2
    assert shown.index("prefers-reduced-motion") < shown.index("@keyframes")
    assert set(re.findall(r"https?://[^\s\"'<>)]+", shown)) == {"http://www.w3.org/2000/svg"}
