"""A Cosmos DB emulator that lives in the Python process."""
