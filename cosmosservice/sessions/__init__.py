"""Sessions: what the service's face is made of."""
