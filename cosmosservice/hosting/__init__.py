"""On which event loop things live."""
