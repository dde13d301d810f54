"""The key: found in order, kept per server, never shown. The keyring is a stand-in throughout."""

from __future__ import annotations

import json
import logging
import os
import stat
import sys
import threading
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import keyring
import pytest

from tui.core.errors import CredentialsError, StorageError
from tui.core.paths import Folders, folders
from tui.settings import credentials
from tui.settings.credentials import find_key, server_of, store_key

KEY = "sk-ant-test-0123456789abcdef0123456789abcdef"
OTHER = "sk-ant-test-ffffffffffffffffffffffffffffffff"
GATEWAY = "https://gateway.example/anthropic"


class Ring:
    """A keyring backend: priority 5 is a real one, 0 and -1 are the fail and null backends."""

    def __init__(self, priority: float = 5, name: str = "Test Keyring") -> None:
        self.priority = priority
        self.name = name
        self.kept: dict[tuple[str, str], str] = {}

    def get_password(self, service: str, username: str) -> str | None:
        return self.kept.get((service, username))

    def set_password(self, service: str, username: str, password: str) -> None:
        self.kept[service, username] = password

    def delete_password(self, service: str, username: str) -> None:
        del self.kept[service, username]


class Broken(Ring):
    def get_password(self, service: str, username: str) -> str | None:
        raise RuntimeError(f"locked; {KEY}")

    def set_password(self, service: str, username: str, password: str) -> None:
        raise RuntimeError(f"locked; {password}")


class Forgetful(Ring):
    def set_password(self, service: str, username: str, password: str) -> None:
        """Takes the key and loses it."""


class Chain(Ring):
    def __init__(self, *backends: Ring) -> None:
        super().__init__(10)
        self.backends = list(backends)

    def get_password(self, service: str, username: str) -> str | None:
        raise AssertionError("a chain is not asked, its members are")


@pytest.fixture
def home(tmp_path: Path) -> Folders:
    root = tmp_path / "home"
    return Folders(root / "data", root / "config", root / "cache", root / "log")


@pytest.fixture
def use(monkeypatch: pytest.MonkeyPatch) -> Callable[[Any], Any]:
    def install(ring: Any) -> Any:
        monkeypatch.setattr(keyring, "get_keyring", lambda: ring)
        return ring

    install(Ring(0))
    return install


@pytest.fixture
def ring(use: Callable[[Any], Any]) -> Ring:
    return use(Ring())


@pytest.fixture
def no_ring(use: Callable[[Any], Any]) -> Ring:
    return use(Ring(0))


# Finding


@pytest.mark.usefixtures("ring")
def test_nothing_anywhere_is_none(home: Folders) -> None:
    assert find_key({}, home) is None
    assert find_key({"ANTHROPIC_API_KEY": "  "}, home) is None
    assert not home.config.exists(), "looking creates nothing"


def test_the_environment_goes_first_then_the_keyring_then_the_file(
    home: Folders, use: Callable[[Any], Any]
) -> None:
    use(Ring(0))
    store_key("file-key", "", env={}, folders=home)
    assert find_key({}, home) == credentials.ApiKey("file-key", "file")
    use(Ring()).set_password("holdfast", server_of(""), "ring-key")
    assert find_key({}, home) == credentials.ApiKey("ring-key", "keyring")
    found = find_key({"ANTHROPIC_API_KEY": "env-key\n"}, home)
    assert found == credentials.ApiKey("env-key", "environment")


@pytest.mark.usefixtures("ring")
def test_a_key_is_only_found_for_its_own_server(home: Folders) -> None:
    store_key(KEY, GATEWAY, env={}, folders=home)
    assert find_key({}, home) is None
    assert find_key({}, home, "https://gateway.example/other") is None
    assert find_key({}, home, "http://gateway.example/anthropic") is None
    found = find_key({}, home, "https://GATEWAY.example:443/anthropic/")
    assert found
    assert found.key == KEY


@pytest.mark.usefixtures("no_ring")
def test_the_same_holds_for_the_file(home: Folders) -> None:
    store_key(KEY, GATEWAY, env={}, folders=home)
    store_key(OTHER, "", env={}, folders=home)
    assert [getattr(find_key({}, home, url), "key", None) for url in (GATEWAY, "", "http://x")] == [
        KEY,
        OTHER,
        None,
    ]


@pytest.mark.usefixtures("ring")
def test_30_a_folder_s_server_gets_only_what_was_stored_for_it(home: Folders) -> None:
    env = {"ANTHROPIC_API_KEY": OTHER}
    assert find_key(env, home, GATEWAY, foreign=True) is None
    store_key(KEY, GATEWAY, env={}, folders=home)
    found = find_key(env, home, GATEWAY, foreign=True)
    assert found
    assert (found.key, found.source) == (KEY, "keyring")


@pytest.mark.usefixtures("ring")
def test_the_environments_key_belongs_to_the_environments_server(home: Folders) -> None:
    store_key(KEY, GATEWAY, env={}, folders=home)
    env = {"ANTHROPIC_API_KEY": OTHER}
    for_gateway = find_key(env, home, GATEWAY)
    assert for_gateway
    assert for_gateway.key == KEY, "the stored key was made for this server"
    both = find_key({**env, "ANTHROPIC_BASE_URL": GATEWAY}, home, GATEWAY)
    assert both
    assert both.key == OTHER
    elsewhere = find_key(env, home, "http://127.0.0.1:4000")
    assert elsewhere
    assert elsewhere.source == "environment", "nothing better is known for that server"


@pytest.mark.parametrize(
    ("url", "name"),
    [
        ("", "https://api.anthropic.com"),
        ("https://api.anthropic.com/", "https://api.anthropic.com"),
        ("HTTPS://Api.Anthropic.COM:443", "https://api.anthropic.com"),
        ("http://user:pw@h:80/a/?q=1#f", "http://h/a"),
        ("http://127.0.0.1:11434", "http://127.0.0.1:11434"),
        ("http://[::1]:8080/", "http://[::1]:8080"),
        ("http://h:port/", "http://h:port/"),
        ("http://[", "http://["),
    ],
)
def test_servers_are_told_apart_by_scheme_host_port_and_path(url: str, name: str) -> None:
    assert server_of(url) == name


@pytest.mark.parametrize("bad", ["a b", "a\nb", "kéy", "x" * 5000, "\x1b[0m", "“quoted”"])
@pytest.mark.usefixtures("ring")
def test_a_key_that_cannot_be_one_is_refused_without_being_shown(home: Folders, bad: str) -> None:
    with pytest.raises(CredentialsError) as caught:
        find_key({"ANTHROPIC_API_KEY": bad}, home)
    assert bad not in str(caught.value)
    with pytest.raises(CredentialsError):
        store_key(bad, "", env={}, folders=home)
    with pytest.raises(CredentialsError):
        store_key("  ", "", env={}, folders=home)
    assert not home.config.exists()


# Keeping


def test_a_real_keyring_takes_the_key_and_no_file_is_made(home: Folders, ring: Ring) -> None:
    assert store_key(f" {KEY}\n", "", env={}, folders=home) == "keyring"
    assert list(ring.kept.values()) == [KEY]
    assert list(home.config.iterdir()) == []


def test_whoever_waits_for_a_key_is_told_of_one_without_asking_the_keyring(
    home: Folders, ring: Ring
) -> None:
    before = credentials.mark_of({}, home)
    store_key(KEY, "", env={}, folders=home)
    stored = credentials.mark_of({}, home)
    assert before != stored == credentials.mark_of({}, home)
    os.utime(home.config, (0, 0))
    forgotten = credentials.mark_of({}, home)
    credentials.forget_key("", env={}, folders=home)
    assert ring.kept == {}
    assert credentials.mark_of({}, home) != forgotten


def test_moving_to_the_keyring_removes_the_copy_in_the_file(
    home: Folders, use: Callable[[Any], Any]
) -> None:
    use(Ring(0))
    store_key(KEY, "", env={}, folders=home)
    use(Ring())
    store_key(OTHER, "", env={}, folders=home)
    assert KEY not in credentials.credentials_file(home).read_text()


@pytest.mark.parametrize(
    "backend",
    [
        Ring(0),
        Ring(-1),
        Ring(0.5, "PlaintextKeyring"),
        Broken(),
        Forgetful(),
        Chain(),
        Chain(Ring(0.5)),
    ],
    ids=["fail", "null", "plaintext", "broken", "forgetful", "empty chain", "plaintext chain"],
)
def test_without_a_keyring_that_keeps_secrets_a_private_file_does(
    home: Folders, use: Callable[[Any], Any], backend: Ring
) -> None:
    use(backend)
    assert store_key(KEY, "", env={}, folders=home) == "file"
    file = credentials.credentials_file(home)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700
    assert backend.kept == {}
    found = find_key({}, home)
    assert found == credentials.ApiKey(KEY, "file")


def test_a_chain_is_used_through_its_first_real_member(
    home: Folders, use: Callable[[Any], Any]
) -> None:
    real = Ring(5, "Real")
    use(Chain(Ring(0.5, "PlaintextKeyring"), real))
    assert store_key(KEY, "", env={}, folders=home) == "keyring"
    assert KEY in real.kept.values()


def test_a_keyring_that_cannot_be_loaded_is_none(
    home: Folders, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail() -> None:
        raise SystemError("no bus")

    monkeypatch.setattr(keyring, "get_keyring", fail)
    assert find_key({}, home) is None


def test_without_the_extra_keys_are_in_the_file_and_it_can_be_told(
    home: Folders, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert not credentials.keyring_is_missing({})
    monkeypatch.setitem(sys.modules, "keyring", None)
    assert credentials.keyring_is_missing({})
    assert not credentials.keyring_is_missing({"HOLDFAST_HOME": "/x"})  # it wouldn't be asked
    assert store_key(KEY, "", env={}, folders=home) == "file"
    found = find_key({}, home)
    assert found
    assert (found.key, found.source) == (KEY, "file")


def test_a_keyring_that_waits_for_a_person_is_given_up(
    home: Folders, use: Callable[[Any], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    answer = threading.Event()

    class Waiting(Ring):
        def get_password(self, service: str, username: str) -> str | None:
            answer.wait()
            return KEY

    use(Waiting())
    monkeypatch.setattr(credentials, "_PATIENCE_S", 0.01)
    try:
        assert find_key({}, home) is None
    finally:
        answer.set()


def test_one_folder_for_everything_keeps_the_key_too(tmp_path: Path, ring: Ring) -> None:
    env = {"HOLDFAST_HOME": str(tmp_path / "h")}
    ring.set_password("holdfast", server_of(""), OTHER)
    assert find_key(env, folders(env)) is None
    assert store_key(KEY, "", env=env, folders=folders(env)) == "file"
    assert (tmp_path / "h" / "config" / "credentials.json").exists()


# The file


@pytest.fixture
def file(home: Folders, no_ring: Ring) -> Path:
    assert no_ring.priority == 0
    store_key(KEY, "", env={}, folders=home)
    return credentials.credentials_file(home)


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o660, 0o620, 0o777])
def test_a_file_that_others_can_reach_is_refused(home: Folders, file: Path, mode: int) -> None:
    file.chmod(mode)
    with pytest.raises(CredentialsError, match="other users can reach it") as caught:
        find_key({}, home)
    assert "chmod 600" in caught.value.hint
    assert KEY not in str(caught.value)


def test_a_link_is_refused(home: Folders, file: Path) -> None:
    file.rename(file.with_name("real.json"))
    file.symlink_to("real.json")
    with pytest.raises(CredentialsError, match="symbolic link"):
        find_key({}, home)
    with pytest.raises(CredentialsError, match="symbolic link"):
        store_key(OTHER, "", env={}, folders=home)


@pytest.mark.parametrize(
    "text", ["", "{", "[]", '{"keys": []}', '{"keys": 3}', "null", "[" * 100_000, "{}"]
)
def test_a_damaged_file_is_named_and_not_quoted(home: Folders, file: Path, text: str) -> None:
    file.write_text(text + f"// {KEY}" if text == "{" else text)
    with pytest.raises(CredentialsError, match="it is damaged") as caught:
        find_key({}, home)
    assert KEY not in "".join(traceback.format_exception(caught.value))


def test_a_folder_in_the_files_place(home: Folders, file: Path) -> None:
    file.unlink()
    file.mkdir()
    with pytest.raises(CredentialsError, match="a folder, not a file"):
        find_key({}, home)


def test_odd_entries_do_not_count(home: Folders, file: Path) -> None:
    file.write_text(json.dumps({"version": 1, "keys": {server_of(""): 3, GATEWAY: KEY}}))
    assert find_key({}, home) is None
    assert find_key({}, home, GATEWAY)


def test_a_file_that_cannot_be_written_is_said(home: Folders, no_ring: Ring) -> None:
    assert no_ring.priority == 0
    home.config.parent.mkdir(parents=True)
    home.config.write_text("a file in the folder's place")
    with pytest.raises(StorageError, match="Can't write") as caught:
        store_key(KEY, "", env={}, folders=home)
    assert KEY not in str(caught.value)


# Nothing is shown


def test_the_key_is_in_no_repr_and_no_log(
    home: Folders, use: Callable[[Any], Any], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    use(Broken())
    store_key(KEY, "", env={}, folders=home)
    found = find_key({}, home)
    assert found
    assert KEY not in repr(found)
    assert KEY not in str(found)
    assert "the keyring doesn't respond: RuntimeError" in caplog.text
    assert KEY not in caplog.text


@pytest.mark.parametrize("with_ring", [True, False])
def test_other_secrets_are_kept_where_keys_are(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, with_ring: bool
) -> None:
    ring = Ring(5 if with_ring else 0)
    monkeypatch.setattr(keyring, "get_keyring", lambda: ring)
    home = folders({"HOLDFAST_HOME": str(tmp_path)})
    store_key(KEY, GATEWAY, env={}, folders=home)
    secrets = credentials.SecretStore({"X": KEY}, home)
    assert secrets.get("mcp https://a.test") is None
    secrets.put("mcp https://a.test", "long " * 1000)
    assert secrets.get("mcp https://a.test") == "long " * 1000
    assert credentials.credentials_file(home).exists() is not with_ring
    secrets.remove("mcp https://a.test")
    assert secrets.get("mcp https://a.test") is None
    found = find_key({}, home, GATEWAY)
    assert found
    assert found.key == KEY
    assert KEY not in repr(secrets)
