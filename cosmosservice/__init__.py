"""Durable sessions for Google ADK agents on Azure Cosmos DB."""
