"""The settings."""

from pathlib import Path

import pytest
from pydantic import ValidationError

from app.errors.starting import StartError
from app.ids import UserId
from app.project import PROJECT_FOLDER
from app.settings import Settings


@pytest.fixture(autouse=True)
def _clean_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("CREDENTIALS_DIRECTORY", raising=False)
    for name in Settings.model_fields:
        monkeypatch.delenv(f"STRONGROOM_{name.upper()}", raising=False)


def test_the_default_root_is_the_project_whatever_the_callers_folder() -> None:
    """Without a choice the data stands in the project's folder."""
    assert Settings.load().root == PROJECT_FOLDER
    assert (PROJECT_FOLDER / "pyproject.toml").is_file()


def test_everything_stands_at_its_place_under_the_root(tmp_path: Path) -> None:
    """All run-time files are in database/, the instance key beside it."""
    settings = Settings.load(root=tmp_path)
    database = tmp_path / "database"
    assert settings.database == database
    assert settings.system_file == database / "system.db"
    assert settings.user_file(UserId("u1")) == database / "u1.db"
    assert settings.lock_file == database / ".lock"
    assert settings.workers_lock_file == database / ".workers.lock"
    assert settings.stores_lock_file == database / ".stores.lock"
    assert settings.setup_token_file == database / "setup.token"
    assert settings.control_socket == database / "control.sock"
    assert settings.instance_key == tmp_path / "instance.key"


def test_the_command_line_comes_before_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """A choice beats the variable, the variable beats the default, an empty one is none."""
    monkeypatch.setenv("STRONGROOM_PORT", "1001")
    monkeypatch.setenv("STRONGROOM_WORKERS", "2")
    monkeypatch.setenv("STRONGROOM_HOST", "")
    settings = Settings.load(port=1002, workers=None)
    assert (settings.port, settings.workers, settings.host) == (1002, 2, "127.0.0.1")


def test_a_choice_hides_even_a_bad_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    """A variable that nobody needs cannot stop the service."""
    monkeypatch.setenv("STRONGROOM_PORT", "no number")
    assert Settings.load(port=1).port == 1


def test_relative_paths_are_of_the_callers_folder(tmp_path: Path) -> None:
    """A relative root or key file means the folder the caller stands in, once and for all."""
    settings = Settings.load(root="data", instance_key_file="keys/one")
    assert settings.root == tmp_path / "data"
    assert settings.instance_key == tmp_path / "keys" / "one"


def test_a_systemd_credential_is_the_instance_key(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The credential counts when it is there and nothing else was chosen."""
    monkeypatch.setenv("CREDENTIALS_DIRECTORY", str(tmp_path))
    assert Settings.load(root=tmp_path / "r").instance_key == tmp_path / "r" / "instance.key"
    (tmp_path / "instance.key").touch()
    assert Settings.load(root=tmp_path / "r").instance_key == tmp_path / "instance.key"
    assert Settings.load(instance_key_file="/k").instance_key == Path("/k")


def test_a_worker_gets_what_its_parent_has(monkeypatch: pytest.MonkeyPatch) -> None:
    """The JSON form reads back as equal settings, whatever the environment says by then."""
    settings = Settings.load(public_url="https://a.example", trusted_proxies="::1,10.0.0.0/8")
    monkeypatch.setenv("STRONGROOM_PORT", "1")
    monkeypatch.setenv("STRONGROOM_INSTANCE_KEY_FILE", "/other")
    assert Settings.model_validate_json(settings.model_dump_json()) == settings


def test_settings_are_frozen() -> None:
    """Nothing changes a setting once it is read."""
    with pytest.raises(ValidationError):
        Settings.load().port = 1  # type: ignore[misc] # the very thing that must fail


@pytest.mark.parametrize(
    ("text", "networks"),
    [
        pytest.param("10.0.0.0/8", ("10.0.0.0/8",), id="one"),
        pytest.param("10.0.0.1, ::1", ("10.0.0.1/32", "::1/128"), id="addresses"),
        pytest.param(" , ", (), id="none"),
    ],
)
def test_proxies_are_networks(text: str, networks: tuple[str, ...]) -> None:
    """The list is split at commas and spaces, and an address is a network of one."""
    assert Settings.load(trusted_proxies=text).trusted_proxies == networks


@pytest.mark.parametrize(
    ("text", "origin"),
    [
        pytest.param("https://Notes.Example", "https://notes.example", id="case"),
        pytest.param("http://[::1]:8321/", "http://[::1]:8321", id="port and slash"),
        pytest.param("https://notes.example:443", "https://notes.example", id="own port"),
        pytest.param("http://notes.example:80/", "http://notes.example", id="own port, slash"),
        pytest.param("http://notes.example:443", "http://notes.example:443", id="other's port"),
    ],
)
def test_the_public_url_is_an_origin(text: str, origin: str) -> None:
    """An origin is kept in lower case and without a slash, as a browser sends it."""
    assert Settings.load(public_url=text).public_url == origin


@pytest.mark.parametrize(
    ("field", "value"),
    [
        pytest.param("port", "65536", id="port too high"),
        pytest.param("port", "http", id="port a word"),
        pytest.param("workers", "-7", id="no worker"),
        pytest.param("workers", "65", id="too many workers"),
        pytest.param("stop_s", "-7", id="no time to stop"),
        pytest.param("token_days_max", "7", id="less than the default life"),
        pytest.param("root", "/bad\udcff", id="root not UTF-8"),
        pytest.param("trusted_proxies", "10.0.0.1/8", id="network with host bits"),
        pytest.param("trusted_proxies", "everyone", id="network a word"),
        pytest.param("public_url", "notes.example", id="no scheme"),
        pytest.param("public_url", "ftp://notes.example", id="another scheme"),
        pytest.param("public_url", "https:///", id="no host"),
        pytest.param("public_url", "https://notes.example/app", id="path"),
        pytest.param("public_url", "https://notes.example?q", id="query"),
        pytest.param("public_url", "https://me:hush@notes.example", id="user"),
        pytest.param("public_url", "https://[::1", id="broken address"),
        pytest.param("public_url", "https://notes.example:hush", id="port a word in a URL"),
        pytest.param("stall_s", "inf", id="for ever"),
        pytest.param("exclusive_wait_s", "nan", id="no number"),
        pytest.param("delivery_retries_s", "1,inf", id="a pause for ever"),
        pytest.param("session_days", "36501", id="past every calendar"),
        pytest.param("stop_s", "99999999999", id="past the kernel's clock"),
    ],
)
def test_a_bad_value_is_refused_by_name(
    monkeypatch: pytest.MonkeyPatch, field: str, value: str
) -> None:
    """The refusal names the variable and never repeats the value."""
    variable = f"STRONGROOM_{field.upper()}"
    monkeypatch.setenv(variable, value)
    with pytest.raises(StartError) as caught:
        Settings.load()
    assert variable in caught.value.reason
    assert value not in caught.value.reason
    assert caught.value.__cause__ is None


def test_an_unknown_field_is_refused() -> None:
    """A choice that names no setting is a fault of the caller."""
    with pytest.raises(StartError, match="STRONGROOM_SPEED"):
        Settings.load(speed=1)
