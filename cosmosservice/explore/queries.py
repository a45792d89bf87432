"""The texts of the queries that only this page needs."""

from __future__ import annotations

from typing import Final

from cosmosservice.artifacts.documents import DESCRIBES_VERSION
from cosmosservice.sessions.store.documents import EVENT

# Newest first, of all apps or one, of all users or, within its partition, one. The index serves the
# order and the range of times.
# A comparison is true for one type only: the SDK, which merges partitions, accepts no others.
_FOUND: Final = (
    "SELECT TOP @limit c._rid, c.app_name, c.user_id, c.session_id, c.title, c.last_update_time,"
    " c.revision, c.first_seq FROM c"
    " WHERE c.status = @status AND (NOT IS_DEFINED(c.expires_at) OR c.expires_at > @now)"
    " AND c.last_update_time >= @after AND c.last_update_time <= @time"
    " AND c.user_id >= '' AND c.session_id >= ''"
    " AND (c.last_update_time < @time OR c.user_id < @user"
    " OR (c.user_id = @user AND c.session_id <= @session))"
)
_ORDER: Final = "ORDER BY c.last_update_time DESC, c.user_id DESC, c.session_id DESC"
_OF_APP: Final = "AND c.app_name = @app"
_WITH_ID: Final = "AND (c.session_id = @text OR c.user_id = @text)"
# By whether an app is given: an optional condition would keep the index from being used.
FOUND: Final = {False: f"{_FOUND} {_ORDER}", True: f"{_FOUND} {_OF_APP} {_ORDER}"}
NAMED: Final = {
    False: f"{_FOUND} {_WITH_ID} {_ORDER}",
    True: f"{_FOUND} {_OF_APP} {_WITH_ID} {_ORDER}",
}

# `_ts` is always indexed. The token usage of a turn is in its event documents. There is no query
# for one app: for a quiet app among busy ones it would read all their events.
ACTIVITY: Final = (
    "SELECT TOP @limit c._ts, c.app_name, c.timestamp, c.author, c.usage_metadata FROM c"
    f" WHERE c._ts >= @since AND c.document_type = '{EVENT}' ORDER BY c._ts DESC"
)

# Artifacts, with all their versions.
_FILES: Final = (
    "SELECT TOP @limit c.filename, c.session_id, c.version, c.mime_type, c.bytes, c._ts FROM c"
    f" WHERE {DESCRIBES_VERSION}"
)
FILES_OF_SCOPE: Final = _FILES
FILES_OF_USER: Final = f"{_FILES} AND c.app_name = @app AND c.user_id = @user"
