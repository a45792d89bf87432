"""Memories: what was said is kept per user, and found again by words and by meaning."""
