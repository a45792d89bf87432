"""Sessions: the parts behind the public session service."""
