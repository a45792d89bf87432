"""What `cosmosservice selftest` proves on a user's own account."""
