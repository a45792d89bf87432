"""On a package index, the links of the README lead to the repository that it was built from."""

from __future__ import annotations

import email
import re
import subprocess
import tarfile
from pathlib import Path

import pytest

from hatch_build import (
    RepositoryLinks,
    project_urls,
    repository_of,
    web_address,
    with_absolute_links,
)

ROOT = Path(__file__).parents[2]
README = ROOT.joinpath("README.md").read_text("utf-8")
ADDRESS = "https://git.example/team/project"


def git(folder, *arguments):
    subprocess.run(["git", "-C", folder, *arguments], check=True, capture_output=True)


def test_every_link_of_the_readme_becomes_absolute_and_leads_to_a_file():
    targets = re.findall(r"\]\(([^)\s]+)\)", with_absolute_links(README, ADDRESS))
    own = [target for target in targets if target.startswith(ADDRESS)]
    assert [target for target in targets if not target.startswith("https://")] == []
    assert len(own) > 20
    for target in own:
        path = re.sub(rf"{ADDRESS}/(blob|raw)/HEAD/", "", target).partition("#")[0]
        assert ROOT.joinpath(path).is_file(), target


@pytest.mark.parametrize(
    "remote",
    [
        "https://git.example/team/project.git",
        "https://somebody:secret@git.example/team/project",
        "git@git.example:team/project.git",
        "ssh://git@git.example:22/team/project.git",
    ],
)
def test_a_build_in_a_clone_names_its_origin(remote, tmp_path):
    git(tmp_path, "init", "-q")
    git(tmp_path, "remote", "add", "origin", remote)
    tmp_path.joinpath("README.md").write_text("[a](docs/a.md) ![b](b.png) [c](#c) [d](https://d)")
    metadata: dict = {}
    RepositoryLinks(str(tmp_path), {}).update(metadata)
    assert metadata["urls"] == project_urls(ADDRESS)
    assert metadata["readme"]["text"] == (
        f"[a]({ADDRESS}/blob/HEAD/docs/a.md) ![b]({ADDRESS}/raw/HEAD/b.png) [c](#c) [d](https://d)"
    )


def test_a_build_from_a_source_distribution_names_the_same(tmp_path):
    tmp_path.joinpath("PKG-INFO").write_text(
        f"Metadata-Version: 2.4\nProject-URL: Repository, {ADDRESS}\n\n# cosmosservice\n"
    )
    assert repository_of(tmp_path) == ADDRESS


@pytest.mark.parametrize("remote", ["/srv/git/project.git", "../project", "file:///srv/project"])
def test_a_path_is_not_an_address(remote):
    assert web_address(remote) is None


def test_without_a_remote_there_is_nothing_to_name(tmp_path):
    assert repository_of(tmp_path) is None
    git(tmp_path, "init", "-q")
    assert repository_of(tmp_path) is None


def test_the_distributions_carry_the_readme(dist):
    (sdist,) = dist.glob("cosmosservice-*.tar.gz")
    with tarfile.open(sdist) as archive:
        (name,) = (each for each in archive.getnames() if each.endswith("/PKG-INFO"))
        metadata = email.message_from_bytes(archive.extractfile(name).read())
        assert f"{name.removesuffix('PKG-INFO')}hatch_build.py" in archive.getnames()
    assert metadata["Description-Content-Type"] == "text/markdown"
    assert "# cosmosservice" in metadata.get_payload()
