"""The account: client, settings, containers, retries, telemetry. Knows nothing of ADK."""
