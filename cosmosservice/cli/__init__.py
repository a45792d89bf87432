"""The command `cosmosservice`."""
