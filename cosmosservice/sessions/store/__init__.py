"""The protocol: a log of events, and documents that follow it. Knows nothing of ADK's Session."""
