"""What several suites share: stores to run on, events to append, models that follow a script."""
