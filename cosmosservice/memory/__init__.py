"""Memories: stores what was said, per user, and finds it again by words and by meaning."""
