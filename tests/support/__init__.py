"""Shared by several suites: stores and servers to run on, events to append, scripted models."""
