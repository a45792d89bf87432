"""The README and the project URLs of a distribution name the repository that it was built from.

In the repository the README's links are relative, so that they lead to the same branch, fork and
host. On a package index they would lead nowhere. A build takes the address from the remote
`origin`, or from the source distribution that it starts from. Without either, links stay as they
are and there are no project URLs.
"""

from __future__ import annotations

import email
import re
import subprocess
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from hatchling.metadata.plugin.interface import MetadataHookInterface

_LINK = re.compile(r"(!?)\[([^\]]*)\]\((?!\w+:|#)([^)\s]+)\)")
_SSH = re.compile(r"(?:ssh://)?[\w.-]+@([\w.-]+)(?::\d+)?[:/](.+)")


class RepositoryLinks(MetadataHookInterface):
    def update(self, metadata: dict[str, Any]) -> None:
        root = Path(self.root)
        text = root.joinpath("README.md").read_text(encoding="utf-8")
        repository = repository_of(root)
        if repository is not None:
            text = with_absolute_links(text, repository)
            metadata["urls"] = project_urls(repository)
        metadata["readme"] = {"content-type": "text/markdown", "text": text}


def repository_of(root: Path) -> str | None:
    """Its address for a browser."""
    information = root / "PKG-INFO"
    if information.exists():
        headers = email.message_from_string(information.read_text(encoding="utf-8"))
        named = dict(each.split(", ", 1) for each in headers.get_all("Project-URL", []))
        return named.get("Repository")
    if not root.joinpath(".git").exists():
        return None  # a folder inside somebody else's repository
    command = ["git", "-C", str(root), "remote", "get-url", "origin"]
    try:
        done = subprocess.run(command, capture_output=True, text=True)
    except FileNotFoundError:
        return None
    return web_address(done.stdout.strip()) if done.returncode == 0 else None


def web_address(remote: str) -> str | None:
    """https://host/owner/name for a remote, without credentials; None for a path."""
    parts = urlsplit(remote)
    if parts.scheme in ("http", "https") and parts.hostname:
        host, path = parts.hostname, parts.path
    elif found := _SSH.fullmatch(remote):
        host, path = found[1], found[2]
    else:
        return None
    return f"https://{host}/{path.strip('/').removesuffix('.git')}"


def with_absolute_links(text: str, repository: str) -> str:
    def absolute(found: re.Match[str]) -> str:
        image, words, target = found.groups()
        return f"{image}[{words}]({repository}/{'raw' if image else 'blob'}/HEAD/{target})"

    return _LINK.sub(absolute, text)


def project_urls(repository: str) -> dict[str, str]:
    pages = f"{repository}/blob/HEAD"
    return {
        "Repository": repository,
        "Documentation": f"{pages}/docs/README.md",
        "Changelog": f"{pages}/CHANGELOG.md",
        "Issues": f"{repository}/issues",
    }
