"""Microsoft's Python tests, from the source distribution of the azure-cosmos that is installed."""

from __future__ import annotations

import sys
from pathlib import Path

import pytests
from outcomes import Outcome
from server import WORK, serving
from sources import distribution, version_of

# Microsoft runs these marks against its emulator …
EMULATOR_MARK = "cosmosEmulator"
# … these against accounts with vectors and full text …
SEARCH_MARK = "cosmosSearchQuery"
# … and these against accounts; the files below are what a store of documents needs most.
ACCOUNT_MARK = "cosmosLong or cosmosQuery"
CORE = [
    "test_crud", "test_crud_async", "test_crud_container", "test_crud_container_async",
    "test_crud_database", "test_crud_database_async", "test_crud_subpartition",
    "test_crud_subpartition_async", "test_query", "test_query_async", "test_query_cross_partition",
    "test_query_cross_partition_async", "test_query_feed_range", "test_query_feed_range_async",
    "test_orderby", "test_multi_orderby", "test_aggregate", "test_change_feed",
    "test_change_feed_async", "test_container_properties_cache",
    "test_container_properties_cache_async",
]  # fmt: skip

DEVTOOLS = {
    "__init__.py": "",
    "azure_recorded_testcase.py": "def get_credential(**_):\n    return None\n",
    "helpers.py": "def is_live():\n    return True\n\n\nis_live_and_not_recording = is_live\n",
}


def run(mark: str, only: list[str], expression: str) -> Outcome:
    tests = distribution("azure-cosmos") / "tests"
    files = [file for file in sorted(tests.glob("test_*.py")) if _mark_of(file) == mark]
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    with serving() as account:
        return pytests.run(
            [file for file in files if not only or file.stem in only],
            *("-m", mark, "-k", expression),
            environment=account,
            paths=[_devtools()],
            using=f"azure-cosmos {version_of('azure-cosmos')}, Python {version}",
            jobs=2,
        )


def _mark_of(file: Path) -> str | None:
    """The tests of a file that are run; None: none of them."""
    if file.stem in CORE:
        return ACCOUNT_MARK
    text = file.read_text()
    return next((mark for mark in (EMULATOR_MARK, SEARCH_MARK) if mark in text), None)


def _devtools() -> Path:
    """A folder with what the tests import of Microsoft's tools, which are on no index."""
    stubs = WORK / "stubs"
    (stubs / "devtools_testutils").mkdir(parents=True, exist_ok=True)
    for name, text in DEVTOOLS.items():
        (stubs / "devtools_testutils" / name).write_text(text)
    return stubs
