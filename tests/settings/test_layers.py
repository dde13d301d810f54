"""Layers of configuration: what wins, what is refused, what an untrusted project may do."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import tomlkit
from hypothesis import given
from hypothesis import strategies as st

from tui.core.config import Config, OtelSettings, Permissions
from tui.core.errors import ConfigError
from tui.core.paths import Folders, folders
from tui.settings.layers import LoadedSettings, brought_settings, load, parse, project_file
from tui.settings.trust import Trust


@pytest.fixture
def home(tmp_path: Path) -> Folders:
    return folders({"HOLDFAST_HOME": str(tmp_path / "home")})


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    (tmp_path / "work" / ".holdfast").mkdir(parents=True)
    return tmp_path / "work"


def write(path: Path, text: str | bytes) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def load_all(
    home: Folders,
    workspace: Path,
    *,
    trusted: bool = True,
    env: dict[str, str] | None = None,
    overrides: dict[str, Any] | None = None,
    session: str = "",
) -> LoadedSettings:
    return load(
        folders=home,
        workspace=workspace,
        allows=Trust(everything=trusted).allows,
        env=env or {},
        overrides=overrides or {},
        session_profile=session,
    )


def fault(home: Folders, workspace: Path, text: str | bytes) -> ConfigError:
    write(home.config_file, text)
    with pytest.raises(ConfigError) as caught:
        load_all(home, workspace)
    return caught.value


def test_nothing_at_all_gives_the_defaults(home: Folders, workspace: Path) -> None:
    loaded = load_all(home, workspace)
    assert loaded.config.theme == "midnight"
    assert loaded.sources == {}
    assert loaded.ignored == ()
    assert not home.config.exists(), "reading creates nothing"


def test_each_layer_wins_over_those_below(home: Folders, workspace: Path) -> None:
    write(home.config_file, 'model = "u"\nbase_url = "http://u"\ntheme = "u"\nsmall_model = "u"')
    write(project_file(workspace), 'model = "p"\nbase_url = "http://p"\ntheme = "p"')
    env = {"ANTHROPIC_BASE_URL": "http://e"}
    loaded = load_all(home, workspace, env=env, overrides={"model": "c"})
    config = loaded.config
    assert (config.small_model, config.theme) == ("u", "p")
    assert (config.base_url, config.model) == ("http://e", "c")
    assert loaded.sources["model"] == "command line"
    assert loaded.sources["base_url"].startswith("ANTHROPIC_BASE_URL")
    assert loaded.sources["theme"].endswith("work/.holdfast/config.toml")
    assert "retry.max_attempts" not in loaded.sources


def test_tables_merge_key_by_key_and_lists_replace(home: Folders, workspace: Path) -> None:
    write(
        home.config_file,
        'fallback_models = ["a", "b"]\n[retry]\nmax_attempts = 7\nstall_timeout_s = 9\n'
        "[guard.bytes]\ngrep_search = 1\nread_file = 2",
    )
    write(
        project_file(workspace),
        'fallback_models = ["c"]\n[retry]\nmax_attempts = 1\n[guard.bytes]\nread_file = 3',
    )
    config = load_all(home, workspace).config
    assert (config.retry.max_attempts, config.retry.stall_timeout_s) == (1, 9)
    assert config.fallback_models == ("c",)
    assert config.guard.bytes == {"grep_search": 1, "read_file": 3}


def test_permission_rules_add_up_over_all_layers(home: Folders, workspace: Path) -> None:
    write(home.config_file, '[permissions]\nallow = ["a"]\ndeny = ["b"]\nauto_grant = ["x"]')
    write(project_file(workspace), '[permissions]\ndeny = ["b", "c"]\nauto_grant = ["y"]')
    overrides = {"permissions": {"allow": ["d"], "deny": ["e"]}}
    loaded = load_all(home, workspace, overrides=overrides)
    rules = loaded.config.permissions
    assert rules.allow == ("a", "d")
    assert rules.deny == ("b", "c", "e")
    assert rules.auto_grant == ("y",)
    assert loaded.sources["permissions.deny"].count(",") == 2


def test_an_mcp_server_of_the_same_name_is_replaced_whole(home: Folders, workspace: Path) -> None:
    write(home.config_file, '[mcp.time]\ncommand = ["a"]\n[mcp.git]\ncommand = ["g"]')
    write(project_file(workspace), '[mcp.time]\nurl = "http://localhost:1"')
    servers = load_all(home, workspace).config.mcp
    assert servers["time"].url == "http://localhost:1"
    assert servers["time"].command == ()
    assert servers["git"].command == ("g",)


def test_an_empty_environment_variable_sets_nothing(home: Folders, workspace: Path) -> None:
    write(home.config_file, 'base_url = "http://u"')
    assert load_all(home, workspace, env={"ANTHROPIC_BASE_URL": " "}).config.base_url == "http://u"


def test_a_byte_order_mark_is_no_error(home: Folders, workspace: Path) -> None:
    write(home.config_file, b'\xef\xbb\xbfmodel = "m"')
    assert load_all(home, workspace).config.model == "m"


# An untrusted project


def test_an_untrusted_project_may_only_tighten(home: Folders, workspace: Path) -> None:
    write(home.config_file, '[permissions]\nallow = ["read_file"]')
    write(
        project_file(workspace),
        'model = "evil"\nbase_url = "http://evil"\nredact = "record"\nunheard_of = 1\n'
        '[permissions]\nallow = ["run_command"]\ndeny = ["write_file"]\nask = ["edit_file"]\n'
        'ceiling = "/"\nauto_grant = ["**"]\n[mcp.x]\ncommand = ["sh"]\n[retry]\nmax_attempts = 99',
    )
    loaded = load_all(home, workspace, trusted=False)
    rules = loaded.config.permissions
    assert (rules.allow, rules.deny, rules.ask) == (("read_file",), ("write_file",), ("edit_file",))
    assert (rules.ceiling, rules.auto_grant) == ("~", ())
    assert loaded.config.redact == "record"
    assert (loaded.config.base_url, loaded.config.mcp, loaded.config.retry.max_attempts) == (
        "",
        {},
        3,
    )
    assert {i.key for i in loaded.ignored} == {
        "model",
        "base_url",
        "unheard_of",
        "permissions.allow",
        "permissions.ceiling",
        "permissions.auto_grant",
        "mcp.x",
        "retry.max_attempts",
    }
    assert all(i.reason and i.file == project_file(workspace) for i in loaded.ignored)


def test_of_a_project_counts_what_was_trusted_and_no_other_content(
    home: Folders, workspace: Path
) -> None:
    write(
        project_file(workspace),
        'model = "a"\nbase_url = "http://x.test"\n'
        '[permissions]\nallow = ["run_command(make)", "run_command(ls)"]\n'
        '[prune]\nwhen = "turns"\n',
    )

    def allows(name: str, value: object) -> bool:
        return (name, value) in {
            ("permissions.allow: run_command(ls)", "run_command(ls)"),
            ("model", "b"),
            ("prune.when", "turns"),
        }

    found = load(folders=home, workspace=workspace, allows=allows, env={}, overrides={})
    assert found.config.permissions.allow == ("run_command(ls)",)
    assert (found.config.model, found.config.base_url) == (Config().model, "")
    assert found.config.prune.when == "turns"
    assert [one.key for one in found.ignored] == ["model", "base_url", "permissions.allow"]
    assert not found.foreign_server


def test_the_one_who_names_the_server_is_known(home: Folders, workspace: Path) -> None:
    write(project_file(workspace), 'base_url = "http://x.test"\n')
    assert load_all(home, workspace, trusted=True).foreign_server
    assert not load_all(home, workspace, trusted=False).foreign_server
    mine = {"ANTHROPIC_BASE_URL": "http://y.test"}
    assert not load_all(home, workspace, trusted=True, env=mine).foreign_server


def test_an_untrusted_project_cannot_switch_redaction_off(home: Folders, workspace: Path) -> None:
    write(home.config_file, 'redact = "record"')
    write(project_file(workspace), 'redact = "off"')
    loaded = load_all(home, workspace, trusted=False)
    assert loaded.config.redact == "record"
    assert [i.key for i in loaded.ignored] == ["redact"]
    assert load_all(home, workspace, trusted=True).config.redact == "off"


@pytest.mark.parametrize("trusted", [True, False])
def test_no_folder_sends_data_elsewhere_even_if_it_is_trusted(
    home: Folders, workspace: Path, trusted: bool
) -> None:
    text = '[otel]\nenabled = true\nendpoint = "https://evil.test"\n[batch]\nattempts = 2\n'
    write(project_file(workspace), text)
    loaded = load_all(home, workspace, trusted=trusted)
    assert loaded.config.otel == OtelSettings()
    reasons = {one.key: one.reason for one in loaded.ignored}
    assert reasons.pop("otel") == "only your own file can send data elsewhere"
    assert (reasons == {}) is trusted
    brought = brought_settings(parse(text.encode(), project_file(workspace)))
    assert [one.name for one in brought] == ["batch.attempts"]  # nobody is asked about it
    write(home.config_file, "[otel]\nenabled = true\n")
    own = load_all(home, workspace, trusted=trusted).config.otel
    assert own == OtelSettings(enabled=True)


def test_a_broken_rule_of_an_untrusted_project_is_still_named(
    home: Folders, workspace: Path
) -> None:
    write(project_file(workspace), '[permissions]\ndeny = ["run_command("]')
    with pytest.raises(ConfigError, match=r"\.holdfast/config\.toml: permissions\.deny"):
        load_all(home, workspace, trusted=False)


_TEXTS = st.text('ab*( )"\\\n\x1bé漢', max_size=5)
_VALUES = st.integers(-9, 9) | _TEXTS | st.lists(_TEXTS, max_size=2) | st.booleans()
_TABLES = st.dictionaries(st.sampled_from(["allow", "deny", "ask", "ceiling", "a.b", ""]), _VALUES)


@given(
    st.dictionaries(
        st.sampled_from(["model", "base_url", "permissions", "mcp", "redact", "retry", "x y", ""]),
        _VALUES | _TABLES,
    )
)
def test_whatever_an_untrusted_project_says_only_rules_and_redaction_change(
    tmp_path_factory: pytest.TempPathFactory, data: dict[str, Any]
) -> None:
    root = tmp_path_factory.mktemp("untrusted")
    write(project_file(root), tomlkit.dumps(data))
    try:
        loaded = load_all(folders({"HOLDFAST_HOME": str(root / "home")}), root, trusted=False)
    except ConfigError as error:
        assert error.key in {"permissions.deny", "permissions.ask"}  # noqa: PT017 - else it loads
        return
    rules = Permissions(ask=loaded.config.permissions.ask, deny=loaded.config.permissions.deny)
    assert loaded.config == Config(permissions=rules, redact=loaded.config.redact)
    kept = {key for key in loaded.sources if key != "redact"}
    assert kept <= {"permissions.deny", "permissions.ask"}


# Bad input


@pytest.mark.parametrize(
    ("text", "key", "says"),
    [
        ("theme = 1\nmodel = x", "", "line 2, column 9"),
        ('[retry]\nmax_attempts = "3"', "retry.max_attempts", "a whole number of at least 0"),
        ("[retry]\nmax_attempts = 3.0", "retry.max_attempts", "whole number"),
        ("[retry]\nmax_attempts = true", "retry.max_attempts", "whole number"),
        ("[retry]\nmax_delay_ms = 300001", "retry.max_delay_ms", "at most 300000"),
        ("[retry]\nmax_delay_ms = 10", "retry.max_delay_ms", "retry.initial_delay_ms (1000)"),
        ("[retry]\ninitial_delay_ms = 40000", "retry.initial_delay_ms", "(30000)"),
        ("retry = 3", "retry", "a table"),
        ('[prune]\nwhen = "never"', "prune.when", '"auto" or "pays" or "turns"'),
        ("[compaction]\nthreshold = 1.5", "compaction.threshold", "above 0 and at most 1"),
        ("[compaction]\nthreshold = nan", "compaction.threshold", "NaN isn't allowed"),
        ("[compaction]\nmemory_flush = 1", "compaction.memory_flush", "true or false"),
        ('[prices."claude-x"]\ninput = inf', "prices.claude-x.input", "a number"),
        ('[prices."a.b"]\ninput = -1', 'prices."a.b".input', "at least 0"),
        ('[guard.bytes]\ngrep_search = "1"', "guard.bytes.grep_search", "above 0"),
        ('[permissions]\nallow = "read_file"', "permissions.allow", "a list"),
        ('[permissions]\nallow = ["ok", "x("]', "permissions.allow", "tool or tool(glob)"),
        ('[permissions]\nceiling = "src"', "permissions.ceiling", "absolute"),
        ('base_url = "ftp://x"', "base_url", "http"),
        ('model = ""', "model", "not empty"),
        ("model = 1979-05-27", "model", "text in quotes"),
        ("[mcp.x]", "mcp.x", "exactly one of command and url"),
        ('[mcp.x]\ncommand = ["a"]\nurl = "http://b"', "mcp.x", "exactly one"),
        ('redact = "all"', "redact", '"off" or "record"'),
        ("[retry]\nfirst_byte_timeout_s = 99999999999999999999", "retry.first_byte_timeout_s", ""),
        ("x = " + "[" * 5000, "", "nested too deeply"),
    ],
)
def test_what_is_wrong_is_named_with_file_key_and_what_is_allowed(
    home: Folders, workspace: Path, text: str, key: str, says: str
) -> None:
    error = fault(home, workspace, text)
    assert error.key == key
    assert error.file.endswith("config.toml")
    assert says in str(error)


@pytest.mark.parametrize(
    ("text", "key", "hint"),
    [
        ('modle = "x"', "modle", "model"),
        ("[retry]\nmax_attemps = 1", "retry.max_attemps", "retry.max_attempts"),
        ("max_attempts = 1", "max_attempts", "retry.max_attempts"),
        ("[mcp.x]\narg = []", "mcp.x.arg", "args"),
    ],
)
def test_an_unknown_key_comes_with_the_one_that_was_meant(
    home: Folders, workspace: Path, text: str, key: str, hint: str
) -> None:
    error = fault(home, workspace, text)
    assert error.key == key
    assert hint in error.hint


def test_R19_the_file_that_breaks_the_rule_over_two_keys_is_named(
    home: Folders, workspace: Path
) -> None:
    write(home.config_file, "[retry]\ninitial_delay_ms = 20000")
    write(project_file(workspace), "[retry]\nmax_delay_ms = 10000")
    with pytest.raises(ConfigError) as caught:
        load_all(home, workspace)
    assert caught.value.file.endswith(".holdfast/config.toml")
    assert "20000" in caught.value.message


def test_two_files_may_fulfil_the_rule_over_two_keys_together(
    home: Folders, workspace: Path
) -> None:
    write(home.config_file, "[retry]\nmax_delay_ms = 60000")
    write(project_file(workspace), "[retry]\ninitial_delay_ms = 50000")
    assert load_all(home, workspace).config.retry.initial_delay_ms == 50_000


def test_bytes_that_are_not_utf8_are_named_with_their_line(home: Folders, workspace: Path) -> None:
    assert "line 2" in str(fault(home, workspace, b'model = "a"\ntheme = "\xff"'))


def test_a_file_that_is_far_too_large_is_not_read(home: Folders, workspace: Path) -> None:
    assert "larger than" in str(fault(home, workspace, b"#" * 1_000_001))


def test_a_folder_in_the_files_place(home: Folders, workspace: Path) -> None:
    home.config_file.mkdir(parents=True)
    with pytest.raises(ConfigError, match="it is a folder, not a file"):
        load_all(home, workspace)


def test_a_pipe_in_the_files_place_is_not_waited_for(home: Folders, workspace: Path) -> None:
    os.mkfifo(project_file(workspace))
    with pytest.raises(ConfigError, match="not a regular file"):
        load_all(home, workspace, trusted=False)


def test_a_socket_in_the_files_place(
    home: Folders, workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(project_file(workspace).parent)  # the address of a socket must be short
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind("config.toml")
        with pytest.raises(ConfigError, match=r"config\.toml: can't be read"):
            load_all(home, workspace)


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads everything")
def test_a_file_without_permission(home: Folders, workspace: Path) -> None:
    write(home.config_file, "").chmod(0)
    with pytest.raises(ConfigError, match="Permission denied"):
        load_all(home, workspace)


def test_the_environment_and_the_command_line_are_named_too(home: Folders, workspace: Path) -> None:
    with pytest.raises(ConfigError, match=r"ANTHROPIC_BASE_URL.*base_url"):
        load_all(home, workspace, env={"ANTHROPIC_BASE_URL": "localhost:11434"})
    with pytest.raises(ConfigError, match=r"command line: permissions\.allow"):
        load_all(home, workspace, overrides={"permissions": {"allow": ["bad("]}})


def test_no_control_character_and_no_secret_reaches_the_message(
    home: Folders, workspace: Path
) -> None:
    secret = "sk-ant-" + "a" * 40
    error = fault(home, workspace, f'[mcp]\n"\\u001b[31m" = "\\u001b]0;{secret}"')
    assert "\x1b" not in str(error)
    assert secret not in str(error)


@given(st.binary(max_size=200))
def test_any_bytes_are_a_configuration_or_a_config_error(data: bytes) -> None:
    with suppress(ConfigError):
        assert isinstance(parse(data, Path("config.toml")), dict)


def test_reading_the_configuration_loads_nothing_heavy() -> None:
    code = (
        "import sys; from tui.settings import credentials, edit, layers, trust;"
        "print(sorted({'tomlkit', 'keyring', 'asyncio', 'http.client', 'tempfile', 'difflib',"
        " 'textual', 'anthropic'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


CLAUDE_RULES = {
    "permissions": {
        "allow": ["Bash(rm:*)"],
        "ask": ["WebFetch"],
        "deny": ["Read(./.env)", "mcp__x__*", "NoSuchTool(a)", 5],
        "defaultMode": "bypassPermissions",
    }
}


def test_rules_of_claude_code_in_a_folder_forbid_and_ask_and_allow_nothing(
    home: Folders, workspace: Path
) -> None:
    folder = workspace / ".claude"
    folder.mkdir()
    (folder / "settings.json").write_text(json.dumps(CLAUDE_RULES))
    (folder / "settings.local.json").write_text("{")
    found = load_all(home, workspace, trusted=False)
    rules = found.config.permissions
    assert rules.allow == Config().permissions.allow
    denied = {rule.partition("(")[0] for rule in rules.deny if rule.endswith(".env)")}
    assert {"read_file", "write_file", "edit_file"} <= denied
    assert "mcp__x__*" in rules.deny
    assert rules.ask == ("web_fetch",)
    assert ".claude/settings.json" in found.sources["permissions.deny"]
    ignored = {(one.file.name, one.key) for one in found.ignored}
    assert ("settings.json", "permissions.deny: NoSuchTool(a)") in ignored
    assert ("settings.json", "permissions.deny: 5") in ignored
    assert ("settings.local.json", "permissions") in ignored
