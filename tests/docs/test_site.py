"""The sources of the documentation site. `make site` builds it."""

from __future__ import annotations

import tomllib

from docs import site


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
    assert shown == sorted(str(page.relative_to(site.ROOT)) for page in site.pages())


def test_the_configuration_has_the_navigation_and_loads_no_fonts():
    project = tomllib.loads(site.configuration())["project"]
    assert project["nav"] == site.navigation()
    assert project["theme"]["font"] is False


def test_pages_keep_their_places_and_bring_what_they_show(tmp_path):
    site.lay_out(tmp_path)
    for name in ("README.md", "docs/quickstart.md", "docs/images/timeline.svg", "docs/site.css"):
        assert tmp_path.joinpath(name).is_file(), name
    assert "```bash run" not in tmp_path.joinpath("docs/quickstart.md").read_text("utf-8")
