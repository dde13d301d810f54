"""`--bare`: a broken file keeps nobody out, and takes no wall away."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tui.core.errors import ConfigError, UsageError
from tui.core.paths import Folders, folders
from tui.core.toml_files import parse_toml
from tui.settings import bare
from tui.settings.layers import LoadedSettings, project_file


@pytest.fixture
def home(tmp_path: Path) -> Folders:
    home = folders({"HOLDFAST_HOME": str(tmp_path / "home")})
    home.config.mkdir(parents=True)
    return home


@pytest.fixture
def work(tmp_path: Path) -> Path:
    (tmp_path / "work" / ".holdfast").mkdir(parents=True)
    return tmp_path / "work"


def load(home: Folders, work: Path, text: str | None = None, **more: Any) -> LoadedSettings:
    if text is not None:
        home.config_file.write_text(text)
    given: dict[str, Any] = {"env": {}, "overrides": {}, "asks_server": True, "elevated": False}
    return bare.load(folders=home, workspace=work, **(given | more))


def reasons(loaded: LoadedSettings) -> str:
    return "\n".join(f"{one.file.name} {one.key}: {one.reason}" for one in loaded.ignored)


SOUND = """
model = "claude-opus-5-5"
base_url = "http://127.0.0.1:1"
output_style = "terse"
[permissions]
allow = ["run_command(make*)"]
deny = ["read_file(*.pem)"]
[status]
command = "date"
[mcp.files]
command = ["files"]
"""


def test_a_sound_file_counts_without_its_programs(home: Folders, work: Path) -> None:
    loaded = load(home, work, SOUND)
    config = loaded.config
    assert (config.model, config.base_url) == ("claude-opus-5-5", "http://127.0.0.1:1")
    assert config.permissions.allow == ("run_command(make*)",)
    assert config.permissions.deny == ("read_file(*.pem)",)
    assert (config.mcp, config.status.command, config.output_style) == ({}, "", "")
    assert config.diagnostics.mode == "off"
    assert not loaded.ignored


def test_a_folder_may_only_tighten_even_untrusted_and_broken(home: Folders, work: Path) -> None:
    project_file(work).write_text(
        'redact = "record"\nmodel = "theirs"\n'
        '[permissions]\nallow = ["run_command"]\nask = ["write_file"]\n'
        "[mcp.theirs]\ncommand = oops\n"
    )
    config = load(home, work).config
    assert config.permissions.ask == ("write_file",)
    assert (config.permissions.allow, config.redact, config.mcp) == ((), "record", {})
    assert config.model != "theirs"


def test_a_broken_server_takes_no_other_setting_along(home: Folders, work: Path) -> None:
    loaded = load(home, work, SOUND.replace('["files"]', "[files"))
    assert loaded.config.base_url == "http://127.0.0.1:1"
    assert loaded.config.permissions.deny == ("read_file(*.pem)",)
    assert loaded.config.permissions.ask == ()
    assert "config.toml unreadable lines: it is not valid TOML" in reasons(loaded)


def test_what_stood_within_quotes_makes_nothing_looser(home: Folders, work: Path) -> None:
    text = 'theme = """\n[permissions]\nallow = ["run_command"]\n"""\n[sandbox]\nengine = "off"\n['
    config = load(home, work, text).config
    assert config.permissions.allow == ()
    assert config.sandbox.engine == "auto"


@pytest.mark.parametrize(
    "broken",
    [
        'deny = ["read_file(*.pem)"',
        'deny = ["read_file(*.pem)", 3]',
        'dney = ["read_file(*.pem)"]',
        'deny = "read_file(*.pem)"',
    ],
)
def test_lost_rules_make_every_call_ask(home: Folders, work: Path, broken: str) -> None:
    text = SOUND.replace('deny = ["read_file(*.pem)"]', broken)
    loaded = load(home, work, text)
    assert "*" in loaded.config.permissions.ask
    assert "so every call asks" in reasons(loaded)
    assert loaded.rules_lost
    with pytest.raises(UsageError, match="deny rules"):
        load(home, work, text, elevated=True)


def test_a_wrong_rule_leaves_the_others_in_force(home: Folders, work: Path) -> None:
    loaded = load(home, work, '[permissions]\ndeny = ["read_file(*.pem)", "("]')
    assert loaded.config.permissions.deny == ("read_file(*.pem)",)


def test_no_other_server_is_asked_than_the_one_that_was_set(home: Folders, work: Path) -> None:
    text = 'base_url = "https://gateway.example\nmodel = "m"'
    with pytest.raises(ConfigError, match="may name the server") as caught:
        load(home, work, text)
    assert "ANTHROPIC_BASE_URL" in caught.value.hint
    named = load(home, work, text, env={"ANTHROPIC_BASE_URL": "https://gateway.example"})
    assert (named.config.base_url, named.config.model) == ("https://gateway.example", "m")
    assert load(home, work, text, asks_server=False).config.model == "m"


def test_lost_redaction_redacts(home: Folders, work: Path) -> None:
    assert load(home, work, 'redact = "recor').config.redact == "record"


def test_a_file_that_cannot_be_read_at_all(home: Folders, work: Path) -> None:
    home.config_file.mkdir()
    with pytest.raises(ConfigError, match="may name the server"):
        load(home, work)
    with pytest.raises(ConfigError, match="may name the server"):
        load(home, work, overrides={"profile": "default"})
    loaded = load(home, work, asks_server=False)
    assert loaded.config.permissions.ask == ("*",)
    assert loaded.config.redact == "record"


def test_values_of_several_lines_are_read_beside_broken_ones(home: Folders, work: Path) -> None:
    text = 'vim = maybe\nfallback_models = [\n  "one", # first\n  "two",\n]\n'
    assert load(home, work, text).config.fallback_models == ("one", "two")


def test_settings_that_only_clash_together_are_left_out(home: Folders, work: Path) -> None:
    text = "vim = true\n[retry]\ninitial_delay_ms = 9000\nmax_delay_ms = 10\n"
    loaded = load(home, work, text)
    assert (loaded.config.vim, loaded.config.retry.max_delay_ms) == (True, 30_000)
    assert "retry" in reasons(loaded)


def test_the_command_line_counts_and_is_checked(home: Folders, work: Path) -> None:
    assert load(home, work, "model = ", overrides={"model": "x"}).config.model == "x"
    with pytest.raises(ConfigError):
        load(home, work, "", overrides={"theme": 3})


_LINES = st.sampled_from(
    [*SOUND.splitlines(), '"""', "[", "]", "'''", "x = {", "[[mcp]]", "[permissions", "\x00", "=="]
)


@given(st.lists(_LINES, max_size=14))
def test_no_text_keeps_anybody_out_or_loosens(
    tmp_path_factory: pytest.TempPathFactory, lines: list[str]
) -> None:
    top = tmp_path_factory.mktemp("bare")
    home = folders({"HOLDFAST_HOME": str(top / "home")})
    home.config.mkdir(parents=True)
    text = "\n".join(lines)
    permissions = load(home, top, text, asks_server=False).config.permissions
    try:
        parse_toml(text)
    except ValueError:
        assert permissions.allow == ()
        if lines[:2] == ["[permissions]", 'deny = ["read_file(*.pem)"]']:
            assert {*permissions.deny, *permissions.ask} & {"read_file(*.pem)", "*"}


TWO_SERVERS = """
base_url = "https://home.example"
[profile.work]
vim = true
base_url = "https://work.example"
"""


def test_a_profile_whose_server_is_lost_asks_no_other_one(home: Folders, work: Path) -> None:
    text = TWO_SERVERS.replace('"https://work.example"', '"https://work.example')
    given: dict[str, Any] = {"overrides": {"profile": "work"}}
    with pytest.raises(ConfigError, match="may name the server"):
        load(home, work, text, **given)
    address = {"ANTHROPIC_BASE_URL": "https://work.example"}
    assert load(home, work, text, env=address, **given).config.base_url == "https://work.example"
    assert load(home, work, text).config.base_url == "https://home.example"


def test_a_broken_header_gives_no_profiles_server_to_the_others(home: Folders, work: Path) -> None:
    text = TWO_SERVERS.replace("[profile.work]", "profile.work]")
    assert load(home, work, text).config.base_url == "https://home.example"
    with pytest.raises(ConfigError, match="may name the server"):
        load(home, work, text.replace('base_url = "https://home.example"', ""))
    with pytest.raises(ConfigError, match="there is no profile work"):
        load(home, work, text, session_profile="work")


@pytest.mark.parametrize(
    "broken",
    [
        '[provider]\nkind = "bedrock',
        '[provider]\nkind = "bedrok"\nregion = "eu-west-1"',
        '[provider\nkind = "bedrock"',
        '[provider]\nkind = "bedrock"\nregion = "eu-west-1',
        'provider = "bedrock"',
        '[profile.work.provider]\nkind = "bedrock',
    ],
)
def test_where_a_cloud_is_lost_nobody_else_is_asked(home: Folders, work: Path, broken: str) -> None:
    text = f"{broken}\n[profile.work]\nvim = true\n"
    profile = {"profile": "work"} if "profile" in broken else {}
    with pytest.raises(ConfigError, match="may name a cloud") as caught:
        load(home, work, text, overrides=profile)
    assert "Mend it" in caught.value.hint
    assert load(home, work, text, overrides=profile, asks_server=False).profile.shown


@pytest.mark.parametrize(
    "broken", ['key_from = "non', 'sign_in = "work', "key_from = 3", 'key_from = "no"']
)
def test_whose_key_a_profile_uses_is_not_guessed(home: Folders, work: Path, broken: str) -> None:
    text = f"[profile.work]\n{broken}\nvim = true\n"
    with pytest.raises(ConfigError, match="may name the key"):
        load(home, work, text, overrides={"profile": "work"})
    assert load(home, work, text).config.base_url == ""


def test_spans_go_to_no_other_collector(home: Folders, work: Path) -> None:
    text = '[otel]\nenabled = true\nendpoint = "https://mine.example'
    assert not load(home, work, text).config.otel.enabled
    assert load(home, work, text + '"').config.otel.enabled
