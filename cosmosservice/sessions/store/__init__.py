"""The protocol: a log of events, and documents that follow it. Independent of ADK's Session."""
