"""The sources of the documentation site. `make site` builds it."""

from __future__ import annotations

import inspect
import re
import tomllib

import cosmosservice
from docs import reference, site


def leaves(navigation):
    for entry in navigation:
        for value in entry.values():
            if isinstance(value, str):
                yield value
            else:
                assert value
                yield from leaves(value)


def test_every_page_is_in_the_navigation_once():
    shown = sorted(leaves(site.navigation()))
    pages = [str(page.relative_to(site.ROOT)) for page in site.pages()]
    assert shown == sorted([*pages, site.REFERENCE])


def test_the_configuration_has_the_navigation_and_loads_no_fonts():
    project = tomllib.loads(site.configuration())["project"]
    assert project["nav"] == site.navigation()
    assert project["theme"]["font"] is False


def test_pages_keep_their_paths_and_bring_what_they_show(tmp_path):
    site.lay_out(tmp_path)
    for name in ("README.md", "docs/quickstart.md", "docs/images/timeline.svg", "docs/site.css"):
        assert tmp_path.joinpath(name).is_file(), name
    assert site.SAMPLE in tmp_path.joinpath("docs/explore.md").read_text("utf-8")
    assert "```bash run" not in tmp_path.joinpath("docs/quickstart.md").read_text("utf-8")


def test_every_public_name_and_method_is_in_the_reference_with_a_description():
    page = reference.page()
    headings = set(re.findall(r"^#+ `?([\w.]+)`?$", page, re.MULTILINE))
    for name in cosmosservice.__all__:
        value = getattr(cosmosservice, name)
        if name.startswith("_"):
            continue
        assert name in headings
        if not isinstance(value, type) or issubclass(value, Exception):
            continue
        for method, member in reference.members(value):
            call = member.fget if isinstance(member, property) else getattr(value, method)
            assert method in headings, f"{name}.{method}"
            assert inspect.getdoc(call), f"{name}.{method} has no docstring"
