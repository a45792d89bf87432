"""The texts of the queries that only this page needs."""

from __future__ import annotations

from typing import Final

from cosmosservice.artifacts.documents import DESCRIBES_VERSION
from cosmosservice.sessions.store.documents import EVENT

# The tools whose results an event has, without the results.
_ERROR: Final = "p.function_response.response.error"
_TOOLS: Final = (
    "ARRAY(SELECT p.function_response.name,"
    f" (IS_DEFINED({_ERROR}) AND NOT IS_NULL({_ERROR}) AND {_ERROR} != '') AS failed"
    " FROM p IN c.content.parts WHERE IS_DEFINED(p.function_response))"
)

# `_ts` is always indexed. The token usage of a turn is in its event documents. What a fork has
# copied counts in its source. There is no query for one app: for a quiet app among busy ones it
# would read all their events.
ACTIVITY: Final = (
    "SELECT TOP @limit c._ts, c.app_name, c.user_id, c.session_id, c.invocation_id, c.timestamp,"
    f" c.author, c.usage_metadata, c.error_code, {_TOOLS} AS tools FROM c"
    f" WHERE c._ts >= @since AND c.document_type = '{EVENT}' AND NOT IS_DEFINED(c.copied)"
    " ORDER BY c._ts DESC"
)

# Artifacts, with all their versions.
_FILES: Final = (
    "SELECT TOP @limit c.filename, c.session_id, c.version, c.mime_type, c.bytes, c.created_at,"
    f" c.saved_at, c._ts FROM c WHERE {DESCRIBES_VERSION}"
)
FILES_OF_SCOPE: Final = _FILES
FILES_OF_USER: Final = f"{_FILES} AND c.app_name = @app AND c.user_id = @user"
