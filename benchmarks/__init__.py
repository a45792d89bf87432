"""Measures the session service beside its peers: `python -m benchmarks --help`."""
