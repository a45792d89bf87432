"""The generated parts of the pages are up to date. If not, run `make docs`."""

from __future__ import annotations

import json
import re

import pytest

from docs.generate import bills, charges
from docs.generate.pages import FOLDER, pages, part, part_names
from docs.generate.parts import PARTS

TEXTS = {page.name: page.read_text(encoding="utf-8") for page in pages()}
SHOWN = [(page, name) for page, text in TEXTS.items() for name in part_names(text)]
DOCUMENTS = {name: page for page, name in SHOWN if name.startswith("document-")}
# The parts of an event that differ between the supported versions of ADK.
OF_ADKS_VERSION = {"node_info", "bytes", "sha256"}


def test_every_part_is_shown_once():
    assert sorted(name for _, name in SHOWN) == sorted(PARTS)


REFERENCE = [
    name for name in PARTS if name.endswith(("settings", "options", "container", "figures"))
]


@pytest.mark.parametrize("name", REFERENCE)
def test_the_reference_is_up_to_date(name):
    (page,) = (page for page, shown in SHOWN if shown == name)
    assert PARTS[name]().strip() in part(TEXTS[page], name)


def test_documents_are_stored_as_they_are_shown():
    shown = {name: _document(part(TEXTS[page], name)) for name, page in DOCUMENTS.items()}
    assert shown == {name: _document(PARTS[name]()) for name in DOCUMENTS}


def _document(markdown):
    def without(value):
        if isinstance(value, dict):
            return {k: without(v) for k, v in value.items() if k not in OF_ADKS_VERSION}
        return value

    return without(json.loads(re.search(r"```json\n(.*?)```", markdown, re.DOTALL)[1]))


def test_operations_cost_what_the_table_says():
    """Except for the few bytes by which ids, times and versions of ADK differ."""
    (page,) = (page for page, shown in SHOWN if shown == "charges")
    rows = re.findall(r"^\| (.+?) \| ([\d,]+) \| ([\d.,]+) \|$", part(TEXTS[page], "charges"), re.M)
    shown = [(what, _number(requests), _number(units)) for what, requests, units in rows]
    measured = charges.measured()
    assert [(cost.operation, cost.requests) for cost in measured] == [
        (what, requests) for what, requests, _ in shown
    ]
    assert [cost.request_units for cost in measured] == pytest.approx(
        [units for _, _, units in shown], rel=0.04, abs=0.15
    )


def test_bills_are_those_of_the_table():
    (page,) = (page for page, shown in SHOWN if shown == "bills")

    def figures(markdown):
        return [_number(text) for text in re.findall(r"[\d.,]*\d", markdown)]

    assert figures(PARTS["bills"]()) == pytest.approx(figures(part(TEXTS[page], "bills")), rel=0.06)


def test_other_pages_quote_the_bills():
    (page,) = (page for page, shown in SHOWN if shown == "bills")
    small, medium, large = re.findall(r"\*\*(\$[\d.,]+)\*\*", part(TEXTS[page], "bills"))
    readme = " ".join((FOLDER.parent / "README.md").read_text(encoding="utf-8").split())
    assert f"{small} a month for 100 daily users, {large} for a million" in readme
    quoted = f"{small} a month for 100 daily users, {medium} for 10,000, {large} for a million"
    assert quoted in TEXTS["faq.md"]


def test_autoscale_bills_at_least_a_tenth_of_the_least_maximum():
    month = bills.bill(1)
    assert month.autoscale == pytest.approx(0.012 * 730)
    assert month.serverless < 0.01
    assert month.together == month.serverless + month.storage


def _number(text):
    return float(text.replace(",", ""))
