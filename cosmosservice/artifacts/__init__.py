"""Artifacts: versions of files, and the payloads that they name."""
