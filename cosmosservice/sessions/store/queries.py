"""The texts of all queries. Each is answered by the index of its container, or says why not."""

from __future__ import annotations

from typing import Final

from cosmosservice.sessions.store.documents import (
    ACTIVE,
    CLEARING,
    DELETED,
    FORKING,
    PURGED,
    PURGING,
    RESTORING,
)

# --- Events container: a range of ids is a range of the log.

_RANGE: Final = "FROM c WHERE c.id >= @first AND c.id < @last"

RECORDS: Final = f"SELECT * {_RANGE} ORDER BY c.id"
NEWEST_RECORDS: Final = f"SELECT TOP @count * {_RANGE} ORDER BY c.id DESC"

# Not answered by the index alone: for memories that do not know which incarnation they came from.
INCARNATIONS_WITH_EVENTS: Final = (
    f"SELECT c.event_id, c.incarnation {_RANGE} AND ARRAY_CONTAINS(@ids, c.event_id)"
)
# Not answered by the index alone. The range is a part of one session with a ttl.
RENEWED_RECORDS: Final = f"SELECT * {_RANGE} AND c.appended_at >= @since ORDER BY c.id"

# The owners of large values are not indexed: use this only within a user's partition.
VALUES_OF_SESSIONS: Final = f"SELECT c.id, c.owner, c._ts {_RANGE} AND STARTSWITH(c.owner, @owners)"
IDS_WITH_TIMES: Final = f"SELECT c.id, c._ts {_RANGE}"

# The fields that a stub keeps, and those that show whether a record is already one. No content.
ERASABLE: Final = (
    "SELECT c.id, c.session_id, c.user_id, c.app_name, c.incarnation, c.seq, c.schema_version,"
    f" c._etag, c.document_type, c.event_id, c.stamp, c.ttl {_RANGE} ORDER BY c.id"
)

# Not answered by the index alone. The range is one session.
NOT_RENEWED: Final = f"SELECT * {_RANGE} AND c._ts < @before"

# --- Sessions container: lists.

_ORDER: Final = "ORDER BY c.last_update_time, c.user_id, c.session_id"
_REVERSE: Final = "ORDER BY c.last_update_time DESC, c.user_id DESC, c.session_id DESC"
_LISTED: Final = (
    "c.app_name = @app AND c.status = @status"
    " AND (NOT IS_DEFINED(c.expires_at) OR c.expires_at > @now)"
)
# The SDK, which merges the partitions, accepts sort keys of one type only: a single document
# without its names or its time would end the list of an app. A comparison is true for one type
# only, and uses the index.
_SORTABLE: Final = (
    "c.last_update_time >= -1.7976931348623157e308 AND c.user_id >= '' AND c.session_id >= ''"
)
_AFTER: Final = (
    "c.last_update_time >= @time AND (c.last_update_time > @time OR c.user_id > @user"
    " OR (c.user_id = @user AND c.session_id > @session))"
)
_BEFORE: Final = (
    "c.last_update_time <= @time AND (c.last_update_time < @time OR c.user_id < @user"
    " OR (c.user_id = @user AND c.session_id < @session))"
)
# Titles are not indexed: a user's sessions are checked one by one until the page is full, which
# costs less than an index of the titles of all users.
_CHOSEN: Final = (
    "c.last_update_time >= @updated_after AND c.last_update_time < @updated_before"
    " AND (@title = '' OR CONTAINS(c.title, @title, true))"
)
ALL_OF_USER: Final = f"SELECT * FROM c WHERE {_LISTED} {_ORDER}"
FIRST_PAGE_OF_USER: Final = f"SELECT TOP @limit * FROM c WHERE {_LISTED} {_ORDER}"
NEXT_PAGE_OF_USER: Final = f"SELECT TOP @limit * FROM c WHERE {_LISTED} AND {_AFTER} {_ORDER}"
ALL_OF_APP: Final = f"SELECT * FROM c WHERE {_LISTED} AND {_SORTABLE} {_ORDER}"
FIRST_PAGE_OF_APP: Final = f"SELECT TOP @limit * FROM c WHERE {_LISTED} AND {_SORTABLE} {_ORDER}"
NEXT_PAGE_OF_APP: Final = (
    f"SELECT TOP @limit * FROM c WHERE {_LISTED} AND {_SORTABLE} AND {_AFTER} {_ORDER}"
)
# Of a user or of an app. One composite index serves an order and its reverse.
OLDEST_CHOSEN: Final = (
    "SELECT TOP @limit * FROM c"
    f" WHERE {_LISTED} AND {_SORTABLE} AND {_CHOSEN} AND {_AFTER} {_ORDER}"
)
NEWEST_CHOSEN: Final = (
    "SELECT TOP @limit * FROM c"
    f" WHERE {_LISTED} AND {_SORTABLE} AND {_CHOSEN} AND {_BEFORE} {_REVERSE}"
)
# By names, which use does not change: a session does not move while pages are read.
_NAMED: Final = "c.user_id >= '' AND c.session_id >= ''"
_FOLLOWING: Final = "c.user_id >= @user AND (c.user_id > @user OR c.session_id > @session)"
BY_NAME: Final = (
    f"SELECT TOP @limit * FROM c WHERE {_LISTED} AND {_NAMED} AND {_FOLLOWING}"
    " ORDER BY c.user_id, c.session_id"
)
CHOSEN_BY_NAME: Final = (
    f"SELECT TOP @limit * FROM c WHERE {_LISTED} AND {_NAMED} AND {_CHOSEN} AND {_FOLLOWING}"
    " ORDER BY c.user_id, c.session_id"
)
# Deleted sessions have used what they have used.
USED: Final = (
    "SELECT c._rid, c.app_name, c.user_id, c.session_id, c.status, c.title, c.last_update_time,"
    " c.incarnation, c.first_seq, c.revision, c.usage FROM c WHERE c.app_name = @app"
    f" AND c.status IN ('{ACTIVE}', '{DELETED}', '{RESTORING}')"
    " AND (NOT IS_DEFINED(c.expires_at) OR c.expires_at > @now) AND c.last_update_time >= @since"
)
COUNTED: Final = f"SELECT VALUE COUNT(1) FROM c WHERE {_LISTED}"
USER_STATES: Final = "SELECT * FROM c WHERE c.app_name = @app AND NOT IS_DEFINED(c.status)"

# --- Sessions container: for operators.

_NAMES: Final = "c._rid, c.app_name, c.user_id, c.session_id"

APPS: Final = "SELECT DISTINCT VALUE c.app_name FROM c WHERE IS_DEFINED(c.status)"
APPS_OF_USER: Final = (  # stubs of purged sessions have nothing of the user
    "SELECT DISTINCT VALUE c.app_name FROM c"
    f" WHERE IS_DEFINED(c.app_name) AND (NOT IS_DEFINED(c.status) OR c.status != '{PURGED}')"
)
NAMES: Final = f"SELECT {_NAMES} FROM c WHERE IS_DEFINED(c.status) AND c.status != '{PURGED}'"
OF_ID: Final = f"SELECT {_NAMES}, c.status FROM c WHERE c.session_id = @session"
# Sessions that differ only in their app have the same key in this order.
_LATEST: Final = (
    f"SELECT TOP @limit {_NAMES}, c.title, c.last_update_time, c.created_at, c.revision,"
    " c.first_seq, c.usage.events, c.forked_from FROM c"
    " WHERE c.status = @status AND (NOT IS_DEFINED(c.expires_at) OR c.expires_at > @now)"
    " AND c.last_update_time >= @updated_after AND c.user_id >= '' AND c.session_id >= ''"
    " AND c.last_update_time <= @time AND (c.last_update_time < @time"
    " OR c.user_id < @user OR (c.user_id = @user AND c.session_id <= @session))"
)


def latest(*, of_app: bool, with_id: bool) -> str:
    """The most recently used sessions, the newest first: of all apps or one, of all users or,
    within its partition, one; with any id, or those whose session id or user id is the given one.
    An optional condition within the query would keep the index from being used."""
    conditions = [_LATEST]
    if of_app:
        conditions.append("c.app_name = @app")
    if with_id:
        conditions.append("(c.session_id = @id OR c.user_id = @id)")
    return f"{' AND '.join(conditions)} {_REVERSE}"


OF_USER: Final = f"SELECT {_NAMES}, c.status, c.initial.stamp FROM c WHERE c.app_name = @app"
GONE: Final = (
    f"SELECT {_NAMES}, c.status, c.replaced.purged FROM c"
    f" WHERE c.status = '{PURGING}'"
    f" OR (c.status IN ('{DELETED}', '{CLEARING}') AND c.updated_at <= @before)"
    f" OR (c.status = '{PURGED}' AND c.updated_at <= @day_ago AND NOT IS_DEFINED(c.swept))"
    f" OR (c.status = '{FORKING}' AND c.updated_at <= @day_ago)"  # nobody may know its id
    " OR c.replaced.deleted_at <= @before OR c.expires_at <= @now"
)
