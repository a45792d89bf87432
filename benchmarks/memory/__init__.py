"""How well memories are found, compared with other memory services."""
