"""Where data is stored: read from the environment, a `.env` file or a URI.

    COSMOSDB_ENDPOINT                https://<account>.documents.azure.com:443/  or  embedded:<file>
    COSMOSDB_KEY                     absent: Entra ID
    COSMOSDB_DATABASE
    COSMOSDB_SESSION_CONTAINER       "sessions" unless set
    COSMOSDB_CONVERSATION_CONTAINER  "events" unless set
    COSMOSDB_MEMORY_CONTAINER        "memories" unless set
    COSMOSDB_TIMEOUT                 seconds for an operation: 30 unless set
    COSMOSDB_ARTIFACT_CONTAINER      "artifacts" unless set
    COSMOSDB_ARTIFACT_BLOBS          absent: large payloads are in Cosmos DB too
    COSMOSDB_SINCE_COMPACTION        true: load only what summaries do not cover

    cosmosdb://<account>.documents.azure.com/<database>?session_container=…&conversation_container=…
    cosmosdb://localhost:8081/<database>?protocol=http
    cosmosdb://embedded/<file>       (an absolute path has two slashes: cosmosdb://embedded//data/sessions.db)

No message and no repr of this module contains the key.
"""

from __future__ import annotations

import base64
import binascii
import os
from collections.abc import Callable, Mapping
from typing import Annotated, Any, Final
from urllib.parse import SplitResult, parse_qsl, unquote, urlsplit

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    SecretStr,
    ValidationError,
    model_validator,
)

from cosmosservice.errors import ConfigurationError

EMBEDDED = "embedded:"
EMBEDDED_DATABASE = "adk"
PREFIX = "COSMOSDB_"
REMEMBER: Final = "remember"  # an option of the URI of sessions
URI_SHAPE = "cosmosdb://<account>.documents.azure.com/<database> or cosmosdb://embedded/<file>"
ENDPOINT_SHAPE = "https://<account>.documents.azure.com:443/ or embedded:<file>"


def _endpoint(value: str) -> str:
    if value.startswith(EMBEDDED):
        if value == EMBEDDED:
            raise ValueError("names no file: use embedded:sessions.db or embedded::memory:")
        return value
    if "accountkey=" in value.lower():
        raise ValueError(
            "is a connection string: set COSMOSDB_ENDPOINT to its AccountEndpoint"
            " and COSMOSDB_KEY to its AccountKey"
        )
    parts = _split(value)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValueError(f"is not an endpoint: it looks like {ENDPOINT_SHAPE}")
    if "@" in parts.netloc or parts.query or parts.fragment or parts.path.strip("/"):
        raise ValueError(f"has more in it than a scheme, a host and a port: use {ENDPOINT_SHAPE}")
    return f"{parts.scheme}://{parts.netloc}/"


def _key(value: SecretStr) -> SecretStr:
    try:
        decoded = base64.b64decode(value.get_secret_value(), validate=True)
    except (binascii.Error, ValueError):
        decoded = b""
    if not decoded:
        raise ValueError("is not base64: copy the account's complete primary key again")
    return value


def _blobs(value: SecretStr) -> SecretStr:
    secret = value.get_secret_value()
    if "accountname=" in secret.lower() or "blobendpoint=" in secret.lower():
        return value
    parts = _split(secret)
    if parts.scheme not in ("http", "https") or not parts.hostname or not parts.path.strip("/"):
        raise ValueError(
            "is neither a container's URL (https://<account>.blob.core.windows.net/<container>)"
            " nor a connection string"
        )
    return value


def _resource_name(value: str) -> str:
    if not value or len(value) > 255 or value != value.strip() or set(value) & set("/\\#?"):
        raise ValueError(
            "is not a Cosmos DB name: 1 to 255 characters, none of / \\ # ?, no space at the ends"
        )
    return value


ResourceName = Annotated[str, AfterValidator(_resource_name)]


class Settings(BaseModel):
    """Which account, database and containers, and how to authenticate."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", hide_input_in_errors=True, defer_build=True
    )

    endpoint: Annotated[str, AfterValidator(_endpoint)] = Field(
        description="The account's URI, or `embedded:<file>` for the embedded emulator"
        " (`embedded::memory:` keeps nothing)."
    )
    key: Annotated[SecretStr, AfterValidator(_key)] | None = Field(
        default=None,
        description="The account's key. Without one, Entra ID: managed identity, `az login`, …",
    )
    database: ResourceName = Field(
        description=f"The database. Embedded, it may be left out: `{EMBEDDED_DATABASE}`."
    )
    session_container: ResourceName = Field(
        default="sessions",
        description="The container of session, user state and app state documents.",
    )
    conversation_container: ResourceName = Field(
        default="events",
        description="The container of the event log.",
    )
    memory_container: ResourceName = Field(
        default="memories",
        description="The container of memories.",
    )

    timeout: float = Field(
        default=30.0,
        gt=0,
        allow_inf_nan=False,
        description="Seconds after which an operation ends, whether or not Cosmos DB answers.",
    )
    artifact_container: ResourceName = Field(
        default="artifacts",
        description="The container of artifacts and their versions.",
    )
    artifact_blobs: Annotated[SecretStr, AfterValidator(_blobs)] | None = Field(
        default=None,
        description="Where large payloads go: the URL of a blob container, or a connection string"
        " of the storage account. Without it they stay in Cosmos DB.",
    )

    since_compaction: bool = Field(
        default=False,
        description="`true`: a get loads only what ADK's summaries (`actions.compaction`) do not"
        " cover.",
    )

    @model_validator(mode="after")
    def _separate_containers(self) -> Settings:
        names: dict[str, str] = {}
        for setting in container_settings():
            other = names.setdefault(getattr(self, setting), setting)
            if other != setting:
                raise ValueError(
                    f"{variable(other)} and {variable(setting)} are the same: each needs a"
                    " container of its own, since their partition keys differ"
                )
        return self

    @property
    def embedded_path(self) -> str | None:
        """The embedded emulator's file (or `:memory:`); None for a real endpoint."""
        return self.endpoint.removeprefix(EMBEDDED) if self.endpoint.startswith(EMBEDDED) else None

    def with_containers(self, **names: str | None) -> Settings:
        """The same settings with these containers. None leaves a name unchanged."""
        secret = {"key": self.key, "artifact_blobs": self.artifact_blobs}
        values = self.model_dump(exclude=set(secret)) | secret
        return _build(values | {k: v for k, v in names.items() if v is not None}, str)

    @classmethod
    def given(
        cls, *, uri: str | None = None, endpoint: str | None = None, **overrides: Any
    ) -> Settings:
        """Settings from a URI or an endpoint, whichever is given, and from the environment."""
        if uri is None:
            return cls.from_env(endpoint=endpoint, **overrides)
        if endpoint is not None:
            raise ConfigurationError("Give a uri or an endpoint, not both.")
        return cls.from_uri(uri, **overrides)

    @classmethod
    def from_env(cls, *, env: Mapping[str, str] | None = None, **overrides: Any) -> Settings:
        """Settings from `env` (the environment and `.env`). Overrides win unless they are None."""
        values = _from_environment(read_environment() if env is None else env)
        given = {name: value for name, value in overrides.items() if value is not None}
        return _build(values | given, lambda name: name if name in given else variable(name))

    @classmethod
    def from_uri(cls, uri: str, env: Mapping[str, str] | None = None, **overrides: Any) -> Settings:
        """Settings from a `cosmosdb://` URI. The key, and what the URI does not say, come from
        `env`. Overrides win unless they are None."""
        values = _from_environment(read_environment() if env is None else env)
        given = _from_uri(uri) | {k: v for k, v in overrides.items() if v is not None}
        return _build(
            values | given, lambda name: f"the URI's {name}" if name in given else variable(name)
        )


def container_settings() -> list[str]:
    """The settings that name containers."""
    return [name for name in Settings.model_fields if name.endswith("_container")]


def variable(name: str) -> str:
    """The environment variable of a field."""
    return PREFIX + name.upper()


def read_environment() -> dict[str, str]:
    """`COSMOSDB_*` from the environment or, if missing there, from the nearest `.env` upwards."""
    from dotenv import dotenv_values, find_dotenv

    path = find_dotenv(usecwd=True)
    try:
        found = dotenv_values(path, encoding="utf-8-sig") if path else {}
    except (OSError, UnicodeDecodeError) as error:
        # From None: a decoding error carries the file's bytes, secrets included.
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise ConfigurationError(f"Cannot read {path}: {reason}.") from None
    both = {name: value for name, value in found.items() if value is not None} | dict(os.environ)
    return {name: value for name, value in both.items() if name.startswith(PREFIX)}


def _from_environment(env: Mapping[str, str]) -> dict[str, Any]:
    # An empty variable counts as absent, so that `COSMOSDB_KEY=` disables the key of a `.env`.
    values = {name: env.get(variable(name), "").strip() for name in Settings.model_fields}
    return {name: value for name, value in values.items() if value}


def remembers(uri: str) -> bool:
    """Whether the sessions of this URI become memories: `?remember=true`."""
    value = dict(parse_qsl(_split(uri).query, keep_blank_values=True)).get(REMEMBER, "false")
    if value.lower() not in ("true", "false"):
        raise ConfigurationError("The URI's remember is true or false.")
    return value.lower() == "true"


def _from_uri(uri: str) -> dict[str, str]:
    parts = _split(uri)
    if parts.scheme != "cosmosdb" or not parts.netloc:
        raise ConfigurationError(f"A cosmosdb:// URI looks like {URI_SHAPE}.")
    if "@" in parts.netloc:
        raise ConfigurationError(
            "The URI contains user information. Credentials come from the environment alone:"
            " remove it and set COSMOSDB_KEY, or leave that unset for Entra ID."
        )
    options = dict(parse_qsl(parts.query, keep_blank_values=True))
    protocol = options.pop("protocol", "https")
    options.pop(REMEMBER, None)
    known = [*container_settings(), "since_compaction", REMEMBER]
    unknown = options.keys() - set(known)
    if any("key" in name.lower() or "cred" in name.lower() for name in unknown):
        raise ConfigurationError(
            "The URI contains a key. Credentials come from the environment alone:"
            " remove it and set COSMOSDB_KEY, or leave that unset for Entra ID."
        )
    if unknown:
        raise ConfigurationError(
            f"The URI has options that do not exist: {', '.join(sorted(unknown))}."
            f" There are protocol, {', '.join(known)}."
        )
    if protocol not in ("http", "https"):
        raise ConfigurationError("The URI's protocol is http or https.")
    path = unquote(parts.path.removeprefix("/"))
    if parts.netloc == "embedded":
        if not path:
            raise ConfigurationError("The URI names no file: cosmosdb://embedded/sessions.db.")
        return options | {"endpoint": EMBEDDED + path}
    endpoint = {"endpoint": f"{protocol}://{parts.netloc}/"}
    database = path.removesuffix("/")
    return options | endpoint | ({"database": database} if database else {})


def _build(values: dict[str, Any], name_of: Callable[[str], str]) -> Settings:
    if str(values.get("endpoint", "")).startswith(EMBEDDED):
        values = {"database": EMBEDDED_DATABASE} | values
    try:
        return Settings(**values)
    except ValidationError as invalid:
        problems = [_problem(error, name_of) for error in invalid.errors(include_url=False)]
    # Outside the handler: the cause would carry the key.
    raise ConfigurationError(" ".join(problems))


def _problem(error: Any, name_of: Callable[[str], str]) -> str:
    name = str(error["loc"][0]) if error["loc"] else ""
    if error["type"] == "missing":
        example = ENDPOINT_SHAPE if name == "endpoint" else "the name of the database"
        return (
            f"{variable(name)} is missing: set it in the environment or in a .env file,"
            f" to {example}."
        )
    reason = error["msg"].removeprefix("Value error, ")
    return f"{name_of(name)} {reason}." if name else f"{reason}."


def _split(value: str) -> SplitResult:
    try:
        parts = urlsplit(value)
        _ = parts.port  # is checked only when asked for
    except ValueError:
        return SplitResult("", "", "", "", "")
    return parts
