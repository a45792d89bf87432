"""Exceptions of this package.

CosmosServiceError
└── ConfigurationError      a setting is missing or wrong
"""


class CosmosServiceError(Exception):
    """Everything that this package raises of its own."""


class ConfigurationError(CosmosServiceError):
    """A setting is missing or wrong: the message names it and says what to set."""
