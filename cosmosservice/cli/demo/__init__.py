"""`cosmosservice demo`: a conversation that grows, and what happens to it."""
