"""The account: client, settings, containers, retries, telemetry. It knows nothing of ADK."""
