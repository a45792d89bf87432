# Teaches ADK the scheme cosmosdb://, for --session_service_uri and --memory_service_uri.
import cosmosservice.adk  # noqa: F401
