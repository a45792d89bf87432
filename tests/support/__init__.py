"""What several suites share: stores and servers to run on, events to append, scripted models."""
