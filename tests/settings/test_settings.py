"""What users see when COSMOSDB_* are set correctly, incorrectly or not at all."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from cosmosservice.account.settings import Settings, read_environment, variable
from cosmosservice.errors import ConfigurationError

KEY = "c2VjcmV0LWtleS1vZi10aGUtYWNjb3VudA=="
AZURE = {
    "COSMOSDB_ENDPOINT": "https://contoso.documents.azure.com:443/",
    "COSMOSDB_KEY": KEY,
    "COSMOSDB_DATABASE": "agents",
}
EXAMPLE = Path(__file__).parents[2] / ".env.example"


@pytest.fixture(autouse=True)
def elsewhere(tmp_path, monkeypatch):
    """An empty folder, and an environment without COSMOSDB_*."""
    monkeypatch.chdir(tmp_path)
    for name in [name for name in os.environ if name.startswith("COSMOSDB_")]:
        monkeypatch.delenv(name)
    return tmp_path


def refusal(**env):
    with pytest.raises(ConfigurationError) as caught:
        Settings.from_env(env=env)
    error = caught.value
    assert error.__cause__ is None
    assert error.__context__ is None
    return str(error)


def test_environment_is_read(monkeypatch):
    for name, value in AZURE.items():
        monkeypatch.setenv(name, value)
    settings = Settings.from_env()
    assert settings.endpoint == "https://contoso.documents.azure.com:443/"
    assert settings.key.get_secret_value() == KEY
    assert settings.database == "agents"
    assert settings.session_container == "sessions"
    assert settings.conversation_container == "events"
    assert settings.embedded_path is None


def test_dotenv_is_found_from_the_working_directory_upwards(elsewhere, monkeypatch):
    elsewhere.joinpath(".env").write_text("COSMOSDB_ENDPOINT=embedded:a.db\n")
    below = elsewhere / "agents" / "one"
    below.mkdir(parents=True)
    monkeypatch.chdir(below)
    assert Settings.from_env().embedded_path == "a.db"


def test_environment_wins_over_dotenv(elsewhere, monkeypatch):
    elsewhere.joinpath(".env").write_text(
        "COSMOSDB_ENDPOINT=embedded:from-file.db\nCOSMOSDB_DATABASE=from_file\n"
    )
    monkeypatch.setenv("COSMOSDB_ENDPOINT", "embedded:from-environment.db")
    settings = Settings.from_env()
    assert settings.embedded_path == "from-environment.db"
    assert settings.database == "from_file"


def test_empty_variable_switches_the_key_of_dotenv_off(elsewhere, monkeypatch):
    elsewhere.joinpath(".env").write_text("\n".join(f"{k}={v}" for k, v in AZURE.items()))
    assert Settings.from_env().key is not None
    monkeypatch.setenv("COSMOSDB_KEY", "")
    assert Settings.from_env().key is None


def test_environment_is_left_as_it_was(elsewhere):
    elsewhere.joinpath(".env").write_text("COSMOSDB_ENDPOINT=embedded:a.db\nOTHER=1\n")
    before = dict(os.environ)
    assert read_environment() == {"COSMOSDB_ENDPOINT": "embedded:a.db"}
    assert dict(os.environ) == before


def test_dotenv_that_is_not_utf8_is_named_and_not_quoted(elsewhere):
    elsewhere.joinpath(".env").write_bytes(b"COSMOSDB_KEY=hush\xff\n")
    with pytest.raises(ConfigurationError, match=r"\.env: it is not UTF-8") as caught:
        Settings.from_env()
    assert caught.value.__cause__ is None
    assert "hush" not in str(caught.value)


def test_dotenv_of_notepad_with_a_byte_order_mark_is_read(elsewhere):
    elsewhere.joinpath(".env").write_text("COSMOSDB_ENDPOINT=embedded:a.db\n", encoding="utf-8-sig")
    assert Settings.from_env().embedded_path == "a.db"


def test_overrides_win_and_none_is_no_override():
    settings = Settings.from_env(env=AZURE, database="other", session_container=None, key=KEY[4:])
    assert settings.database == "other"
    assert settings.session_container == "sessions"
    assert settings.key.get_secret_value() == KEY[4:]


def test_example_file_works_as_it_is(elsewhere):
    elsewhere.joinpath(".env").write_text(EXAMPLE.read_text())
    settings = Settings.from_env()
    assert settings.embedded_path == "sessions.db"
    assert settings.key is None


def test_example_file_has_every_variable():
    lines = EXAMPLE.read_text().splitlines()
    assert [line.split("=")[0] for line in lines if line and not line.startswith("#")] == [
        variable(name) for name in Settings.model_fields
    ]


@pytest.mark.parametrize("missing", ["COSMOSDB_ENDPOINT", "COSMOSDB_DATABASE"])
def test_missing_variable_is_named(missing):
    message = refusal(**{name: value for name, value in AZURE.items() if name != missing})
    assert message.startswith(f"{missing} is missing: set it in the environment or in a .env file")


def test_all_missing_variables_are_named_at_once():
    message = refusal()
    assert "COSMOSDB_ENDPOINT is missing" in message
    assert "COSMOSDB_DATABASE is missing" in message


def test_no_key_means_entra_id():
    env = {name: value for name, value in AZURE.items() if name != "COSMOSDB_KEY"}
    assert Settings.from_env(env=env).key is None


def test_embedded_needs_no_database():
    settings = Settings.from_env(env={"COSMOSDB_ENDPOINT": "embedded::memory:"})
    assert settings.embedded_path == ":memory:"
    assert settings.database == "adk"


@pytest.mark.parametrize(
    ("endpoint", "said"),
    [
        ("contoso", "is not an endpoint"),
        ("contoso.documents.azure.com", "is not an endpoint"),
        ("ftp://contoso.documents.azure.com", "is not an endpoint"),
        ("https://", "is not an endpoint"),
        ("https://contoso:port/", "is not an endpoint"),
        ("https://[::1/", "is not an endpoint"),
        ("https://contoso.documents.azure.com/agents", "has more in it"),
        (f"https://user:{KEY}@contoso.documents.azure.com/", "has more in it"),
        ("embedded:", "names no file"),
        (f"AccountEndpoint=https://contoso/;AccountKey={KEY};", "is a connection string"),
    ],
)
def test_wrong_endpoint_is_explained_without_quoting_it(endpoint, said):
    message = refusal(**AZURE | {"COSMOSDB_ENDPOINT": endpoint})
    assert message.startswith("COSMOSDB_ENDPOINT " + said)
    assert KEY not in message


@pytest.mark.parametrize("key", ["your-primary-key", KEY[:-1], "<key>"])
def test_wrong_key_is_explained_without_quoting_it(key):
    message = refusal(**AZURE | {"COSMOSDB_KEY": key})
    assert message.startswith("COSMOSDB_KEY is not base64")
    assert key not in message


@pytest.mark.parametrize("name", ["a/b", "a\\b", "a#b", "a?b", "x" * 256])
def test_wrong_names_are_explained(name):
    message = refusal(**AZURE | {"COSMOSDB_DATABASE": name})
    assert message.startswith("COSMOSDB_DATABASE is not a Cosmos DB name")


def test_one_container_for_both_is_refused():
    assert "are the same" in refusal(**AZURE | {"COSMOSDB_SESSION_CONTAINER": "events"})


def test_wrong_argument_is_called_by_its_own_name():
    with pytest.raises(ConfigurationError, match=r"^database is not a Cosmos DB name"):
        Settings.from_env(env=AZURE, database="a/b")


def test_key_is_in_no_representation():
    settings = Settings.from_env(env=AZURE)
    for text in (repr(settings), str(settings), settings.model_dump_json(), f"{settings!r}"):
        assert KEY not in text


def test_key_is_not_in_the_models_own_error():
    with pytest.raises(ValueError, match="endpoint") as caught:
        Settings(endpoint="x", key=KEY, database="d")
    assert KEY not in str(caught.value)


def test_import_pulls_neither_azure_nor_the_emulator():
    code = "import sys, cosmosservice.account.settings as _; print(*sys.modules)"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = set(run.stdout.split())
    assert not loaded & {"azure.cosmos", "cosmos_emulator"}
