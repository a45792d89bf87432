"""The texts of the queries that only this page needs."""

from __future__ import annotations

from typing import Final

from cosmosservice.sessions.store.documents import EVENT

# Newest first, of all apps or of one, of all users or, in its partition, of one. The order and the
# range of times are answered by the index; texts are compared until the page is full.
# A comparison holds for one type only: the SDK, which merges partitions, takes no others.
FOUND: Final = (
    "SELECT TOP @limit c._rid, c.app_name, c.user_id, c.session_id, c.title, c.last_update_time,"
    " c.revision, c.first_seq FROM c"
    " WHERE c.status = @status AND (NOT IS_DEFINED(c.expires_at) OR c.expires_at > @now)"
    " AND c.last_update_time >= @after AND c.last_update_time <= @time"
    " AND c.user_id >= '' AND c.session_id >= ''"
    " AND (c.last_update_time < @time OR c.user_id < @user"
    " OR (c.user_id = @user AND c.session_id <= @session))"
    " AND (@app = '' OR c.app_name = @app)"
    " AND (@text = '' OR CONTAINS(c.title, @text, true) OR CONTAINS(c.session_id, @text, true)"
    " OR CONTAINS(c.user_id, @text, true))"
    " ORDER BY c.last_update_time DESC, c.user_id DESC, c.session_id DESC"
)

# `_ts` is always indexed. What a turn used is in the document of its event.
ACTIVITY: Final = (
    "SELECT TOP @limit c._ts, c.timestamp, c.author, c.usage_metadata FROM c"
    " WHERE c._ts >= @since AND (@app = '' OR c.app_name = @app)"
    f" AND c.document_type = '{EVENT}' ORDER BY c._ts DESC"
)
