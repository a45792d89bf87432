# Registers the scheme cosmosdb:// for --session_service_uri, --memory_service_uri and
# --artifact_service_uri.
import cosmosservice.adk  # noqa: F401
