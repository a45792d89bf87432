"""How well memories are found, beside other memory services."""
