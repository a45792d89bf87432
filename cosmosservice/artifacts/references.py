"""Artifacts that refer to artifacts: `artifact://apps/…/versions/3`."""

from __future__ import annotations

from typing import Final

from google.adk.artifacts.artifact_util import ParsedArtifactUri, parse_artifact_uri
from google.adk.errors.input_validation_error import InputValidationError

MAX_DEPTH: Final = 5


def target_of(
    uri: str, app_name: str, user_id: str, session_id: str | None, *, remaining: int = 1
) -> ParsedArtifactUri:
    """The target of a reference. Raises InputValidationError if it is outside the caller's scope,
    or if the chain of references is too long."""
    if remaining <= 0:
        raise InputValidationError(
            f"Exceeded maximum recursion depth resolving artifact reference: {uri}"
        )
    target = parse_artifact_uri(uri)
    if target is None:
        raise InputValidationError(f"Invalid artifact reference URI: {uri}")
    if (target.app_name, target.user_id) != (app_name, user_id):
        raise InputValidationError(
            "Artifact references must stay within the same app and user scope."
        )
    if target.session_id is not None and target.session_id != session_id:
        raise InputValidationError(
            "Session-scoped artifact references must stay within the same session scope."
        )
    return target
