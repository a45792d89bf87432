"""What `--session_service_uri=cosmosdb://…` means."""

import pytest

from cosmosservice.account.settings import Settings
from cosmosservice.errors import ConfigurationError

KEY = "c2VjcmV0LWtleS1vZi10aGUtYWNjb3VudA=="


def test_azure_account():
    settings = Settings.from_uri("cosmosdb://contoso.documents.azure.com/agents", {})
    assert settings.endpoint == "https://contoso.documents.azure.com/"
    assert settings.database == "agents"
    assert settings.key is None
    assert (settings.session_container, settings.conversation_container) == ("sessions", "events")


def test_port_and_containers():
    settings = Settings.from_uri(
        "cosmosdb://contoso.documents.azure.com:443/agents/"
        "?session_container=s%20s&conversation_container=e",
        {},
    )
    assert settings.endpoint == "https://contoso.documents.azure.com:443/"
    assert settings.database == "agents"
    assert (settings.session_container, settings.conversation_container) == ("s s", "e")


def test_key_comes_from_the_environment():
    settings = Settings.from_uri("cosmosdb://contoso.documents.azure.com/d", {"COSMOSDB_KEY": KEY})
    assert settings.key.get_secret_value() == KEY


def test_uri_wins_and_the_environment_fills_the_gaps():
    env = {
        "COSMOSDB_ENDPOINT": "embedded:other.db",
        "COSMOSDB_DATABASE": "from_environment",
        "COSMOSDB_SESSION_CONTAINER": "chats",
        "COSMOSDB_CONVERSATION_CONTAINER": "log",
    }
    settings = Settings.from_uri(
        "cosmosdb://contoso.documents.azure.com?conversation_container=turns", env
    )
    assert settings.endpoint == "https://contoso.documents.azure.com/"
    assert settings.database == "from_environment"
    assert (settings.session_container, settings.conversation_container) == ("chats", "turns")


def test_emulator_over_http():
    settings = Settings.from_uri("cosmosdb://localhost:8081/d?protocol=http", {})
    assert settings.endpoint == "http://localhost:8081/"


@pytest.mark.parametrize(
    ("uri", "path"),
    [
        ("cosmosdb://embedded/sessions.db", "sessions.db"),
        ("cosmosdb://embedded/data/my%20sessions.db", "data/my sessions.db"),
        ("cosmosdb://embedded//data/sessions.db", "/data/sessions.db"),
        ("cosmosdb://embedded/:memory:", ":memory:"),
    ],
)
def test_embedded(uri, path):
    settings = Settings.from_uri(uri, {})
    assert settings.embedded_path == path
    assert settings.database == "adk"


@pytest.mark.parametrize(
    ("uri", "said"),
    [
        (f"cosmosdb://:{KEY}@contoso.documents.azure.com/d", "contains user information"),
        (f"cosmosdb://user@contoso.documents.azure.com/{KEY}", "contains user information"),
        (f"cosmosdb://contoso.documents.azure.com/d?key={KEY}", "contains a key"),
        (f"cosmosdb://contoso.documents.azure.com/d?AccountKey={KEY}", "contains a key"),
        (f"cosmosdb://contoso.documents.azure.com/d?credential={KEY}", "contains a key"),
        ("cosmosdb://contoso.documents.azure.com/d?contaner=x", "do not exist: contaner"),
        ("cosmosdb://localhost:8081/d?protocol=ftp", "protocol is http or https"),
        ("cosmosdb://embedded/", "names no file"),
        ("cosmosdb:///d", "looks like cosmosdb://<account>"),
        ("https://contoso.documents.azure.com/d", "looks like cosmosdb://<account>"),
        ("cosmosdb://contoso:port/d", "looks like cosmosdb://<account>"),
        ("cosmosdb://contoso.documents.azure.com/a/b", "the URI's database is not a Cosmos DB"),
        ("cosmosdb://contoso.documents.azure.com/", "COSMOSDB_DATABASE is missing"),
        ("cosmosdb://contoso.documents.azure.com/d?session_container=", "session_container is not"),
    ],
)
def test_wrong_uri_is_explained_without_quoting_a_secret(uri, said):
    with pytest.raises(ConfigurationError, match="(?i)" + said.replace("?", ".")) as caught:
        Settings.from_uri(uri, {})
    assert KEY not in str(caught.value)
    assert caught.value.__cause__ is None
