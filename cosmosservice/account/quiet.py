"""The SDK's log of every HTTP request: off unless the application wants it."""

from __future__ import annotations

import logging

# The SDK logs the headers of every request and answer at INFO: hundreds of lines per message, with
# partition keys, which are user ids.
_HTTP_LOGGERS = (
    "azure.cosmos._cosmos_http_logging_policy",
    "azure.core.pipeline.policies.http_logging_policy",
)


def quiet_http_log() -> None:
    """Raises the level of the SDK's HTTP loggers to WARNING, except for those that the application
    has configured: `logging.getLogger("azure").setLevel(logging.INFO)` brings the log back."""
    for name in _HTTP_LOGGERS:
        if not _is_configured(name):
            logging.getLogger(name).setLevel(logging.WARNING)


def _is_configured(name: str) -> bool:
    """Whether a level is set on the logger or on a parent other than the root."""
    while name:
        if logging.getLogger(name).level != logging.NOTSET:
            return True
        name = name.rpartition(".")[0]
    return False
