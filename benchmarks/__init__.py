"""Compares the session service with its peers: `python -m benchmarks --help`."""
