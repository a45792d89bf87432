"""The arithmetic of docs/scale.md, on charges that the emulator measures."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from benchmarks.charges import of_a_turn
from benchmarks.simulation import TURNS

PAGE = (Path(__file__).parents[2] / "docs" / "scale.md").read_text(encoding="utf-8")


def number(pattern: str) -> float:
    found = re.search(pattern, PAGE)
    assert found, pattern
    return float(found[1].replace(",", ""))


async def test_the_page_computes_with_the_charges_of_a_turn():
    charges = await of_a_turn()
    assert number(r"conditional point reads.*\| (\S+) \|\n") == pytest.approx(
        3 * charges.read, abs=0.05
    )
    assert number(r"finds nothing new \| (\S+) \|") == pytest.approx(charges.query, abs=0.05)
    assert number(r"4 creates of .*\| (\S+) \|\n") == pytest.approx(4 * charges.create, abs=0.05)
    assert number(r"a replace of 1 KB.*\| (\S+) \|\n") == pytest.approx(charges.replace, abs=0.05)
    assert number(r"\*\*sum\*\*.*\*\*(\d+)\*\*") == round(charges.turn)
    assert number(r"events container \((\d+) RU of") == round(charges.events)
    assert number(r"sessions container \((\d+) RU of") == round(charges.sessions)
    assert number(r"(\d+) RU of each turn fall there") == round(charges.sessions)


async def test_the_rates_follow_from_the_load():
    charges = await of_a_turn()
    assert number(r"× 3 for the busiest hour: (\d+) \|") == TURNS
    assert number(r"\| peak \| .* = ([\d,]+) \|") == pytest.approx(TURNS * charges.turn, rel=0.01)
    assert number(r"events container \(.*\| ([\d,]+) \|") == pytest.approx(
        TURNS * charges.events, rel=0.01
    )
    assert number(r"sessions container \(.*\| ([\d,]+) \|") == pytest.approx(
        TURNS * charges.sessions, rel=0.02
    )
