"""`holdfast import-settings`: a person's Claude Code settings, shown, taken over, and once."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Any

import pytest

from tui.cli.main import main
from tui.core.paths import folders

SETTINGS: dict[str, Any] = {
    "model": "opus",
    "permissions": {
        "allow": ["Bash(npm run test:*)", "WebFetch(domain:docs.python.org)", "WebSearch"],
        "deny": ["Read(./.env)", "Bash(curl:*)"],
        "ask": ["Bash(git push:*)"],
    },
    "hooks": {
        "PostToolUse": [
            {
                "matcher": "Edit|Write",
                "hooks": [{"type": "command", "command": "./format.sh", "timeout": 5}],
            }
        ],
        "Setup": [{"hooks": [{"type": "command", "command": "say done"}]}],
    },
}


NOT_TO_BE_READ = [
    f"{tool}(**/.env{end})"
    for end in ("", "/*")
    for tool in ("read_file", "edit_file", "write_file", "apply_patch")
]
"""What is not to be read is not to be written."""


@pytest.fixture
def claude(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    home = tmp_path / "claude"
    (home / "commands").mkdir(parents=True)
    (home / "commands/review.md").write_text("Review it.")
    (home / "settings.json").write_text(json.dumps(SETTINGS))
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(home))
    for name in ("CONFIG", "DATA", "CACHE", "STATE"):
        monkeypatch.setenv(f"XDG_{name}_HOME", str(tmp_path / name.lower()))
    monkeypatch.chdir(tmp_path)
    return home


def config() -> dict[str, Any]:
    return tomllib.loads(folders().config_file.read_text())


def test_all_is_shown_and_nothing_written_without_a_yes(
    claude: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["import-settings", "--dry-run"]) == 0
    shown = capsys.readouterr()
    for line in (
        "  allow  run_command(npm run test *)",
        "  allow  web_fetch(https://docs.python.org/*)",
        "  ask    run_command(git push *)",
        "  deny   read_file(**/.env)",
        "  hook   PostToolUse Edit|Write: ./format.sh",
        "  deny   write_file(**/.env)",
        "  left   allow WebSearch: no rule here can express it",
        "  left   model: not a full model name; set model, or start with -m",
        "  left   hooks: settings.json: hooks for Setup don't run here.",
        "  1 command: review",
    ):
        assert line in shown.out
    assert shown.err == "Nothing was written.\n"
    assert main(["import-settings"]) == 0
    assert "Add --yes to write it." in capsys.readouterr().err
    assert not folders().config_file.exists()


def test_it_is_taken_over_once_beside_what_is_there(
    claude: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = folders().config_file
    file.parent.mkdir(parents=True)
    file.write_text('# mine\n[permissions]\ndeny = ["run_command(curl *)"] # never\n')
    own: dict[str, Any] = {
        "hooks": {"Stop": [{"hooks": [{"type": "command", "command": "mine"}]}]},
        "more": 1,
    }
    (file.parent / "hooks.json").write_text(json.dumps(own))
    assert main(["import-settings", "--yes"]) == 0
    assert "Took over 11 rules, 1 hook and 0 MCP servers." in capsys.readouterr().err
    assert config()["permissions"] == {
        "deny": ["run_command(curl *)", *NOT_TO_BE_READ],
        "allow": ["run_command(npm run test *)", "web_fetch(https://docs.python.org/*)"],
        "ask": ["run_command(git push *)"],
    }
    assert file.read_text().startswith("# mine\n")
    hooks = json.loads((file.parent / "hooks.json").read_text())
    assert hooks["more"] == 1
    assert hooks["hooks"]["Stop"] == own["hooks"]["Stop"]
    assert hooks["hooks"]["PostToolUse"] == SETTINGS["hooks"]["PostToolUse"]
    assert main(["import-settings", "--yes"]) == 0
    shown = capsys.readouterr()
    assert "Nothing more to take over." in shown.err
    assert len(config()["permissions"]["deny"]) == 9


@pytest.mark.parametrize("text", ["{", "[]", '{"permissions": 3, "hooks": []}', ""])
def test_odd_settings_are_named_and_cost_nothing(
    claude: Path, capsys: pytest.CaptureFixture[str], text: str
) -> None:
    (claude / "settings.json").write_text(text)
    assert main(["import-settings", "--yes"]) == 0
    shown = capsys.readouterr()
    assert "Nothing more to take over." in shown.err
    if text in {"{", ""}:
        assert "It isn't valid JSON." in shown.out


def test_hooks_of_ours_that_cannot_be_read_are_not_overwritten(
    claude: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = folders().config / "hooks.json"
    file.parent.mkdir(parents=True)
    file.write_text("{broken")
    assert main(["import-settings", "--yes"]) == 2
    assert "isn't valid JSON" in capsys.readouterr().err
    assert file.read_text() == "{broken"
    assert not folders().config_file.exists()


SERVERS: dict[str, Any] = {
    "files": {"command": "npx", "args": ["-y", "files"], "env": {"TOKEN": "sk-very-secret"}},
    "docs": {
        "type": "http",
        "url": "https://docs.example/mcp?key=secret",
        "headers": {"Authorization": "Bearer secret"},
    },
    "mine": {"command": "theirs"},
    "odd": {"command": 3},
    "off": {"command": "x", "disabled": True},
}


def test_mcp_servers_are_shown_without_their_secrets_and_taken_over_once(
    claude: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    project = {"mcpServers": {"docs": {"command": "nearer"}}}
    found = {
        "mcpServers": SERVERS,
        "projects": {str(tmp_path): project, "/other": {"mcpServers": {"far": {"command": "x"}}}},
    }
    (claude / ".claude.json").write_text(json.dumps(found))
    desktop = tmp_path / "config" / "Claude" / "claude_desktop_config.json"
    desktop.parent.mkdir(parents=True)
    desktop.write_text(json.dumps({"mcpServers": {"time": {"command": "uvx", "args": ["time"]}}}))
    file = folders().config_file
    file.parent.mkdir(parents=True)
    file.write_text('# mine\n[mcp.mine]\ncommand = "mine"\n')

    assert main(["import-settings", "--dry-run"]) == 0
    shown = capsys.readouterr().out
    for line in (
        "  mcp    docs: nearer; it starts in every folder",
        "  mcp    files: npx -y files with the variables TOKEN",
        "  left   docs, mine: you have an MCP server with this name already",
        "  left   off: switched off there",
        "  left   mcp.odd: it is not valid",
        "  mcp    time: uvx time",
    ):
        assert line in shown
    assert "secret" not in shown
    assert "mcp    far" not in shown
    assert "/other.mcpServers.far: for another folder: run import-settings there" in shown
    assert main(["import-settings", "--yes"]) == 0
    assert "1 hook and 3 MCP servers." in capsys.readouterr().err
    assert config()["mcp"] == {
        "mine": {"command": "mine"},
        "docs": {"command": "nearer"},
        "files": SERVERS["files"],
        "time": {"command": "uvx", "args": ["time"]},
    }
    assert file.read_text().startswith("# mine\n")
    assert main(["import-settings", "--yes"]) == 0
    assert "Nothing more to take over." in capsys.readouterr().err


def test_the_client_of_a_sign_in_comes_along_and_what_means_nothing_is_named(
    claude: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    oauth = {"clientId": "my-id", "callbackPort": 8123, "xaa": True}
    url = "https://mcp.test/mcp"
    door = {"type": "http", "url": url, "oauth": oauth, "alwaysLoad": True}
    (claude / ".claude.json").write_text(json.dumps({"mcpServers": {"door": door}}))
    assert main(["import-settings", "--yes"]) == 0
    shown = capsys.readouterr().out
    names = "mcp.door.alwaysLoad, mcp.door.oauth.xaa"
    assert f"  left   {names}: no setting here does that" in shown
    assert config()["mcp"]["door"] == {
        "type": "http", "url": url, "client_id": "my-id", "callback_port": 8123,
    }  # fmt: skip


def test_an_address_is_shown_without_its_query_and_the_values_of_its_headers(
    claude: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (claude / ".claude.json").write_text(json.dumps({"mcpServers": {"docs": SERVERS["docs"]}}))
    assert main(["import-settings", "--yes"]) == 0
    shown = capsys.readouterr().out
    assert "  mcp    docs: https://docs.example/mcp with the headers Authorization\n" in shown
    assert "secret" not in shown
    assert config()["mcp"]["docs"] == SERVERS["docs"]


@pytest.mark.parametrize("text", ["{", "[]", '{"mcpServers": 3, "projects": []}'])
def test_an_odd_file_of_servers_costs_nothing(
    claude: Path, capsys: pytest.CaptureFixture[str], text: str
) -> None:
    (claude / "settings.json").unlink()
    (claude / ".claude.json").write_text(text)
    assert main(["import-settings", "--yes"]) == 0
    shown = capsys.readouterr()
    assert "Nothing more to take over." in shown.err
    assert ("It isn't valid JSON." in shown.out) is (text == "{")


@pytest.mark.parametrize("text", ["Other", 5, {"tool": "Bash"}])
@pytest.mark.parametrize("arguments", [["--yes"], ["--dry-run"]])
def test_a_rule_that_forbids_and_cannot_be_taken_over_is_an_error(
    claude: Path, capsys: pytest.CaptureFixture[str], text: object, arguments: list[str]
) -> None:
    permissions = {"allow": ["Bash(git *)"], "deny": ["WebSearch", "mcp__x__*", text]}
    (claude / "settings.json").write_text(json.dumps({"permissions": permissions}))
    assert main(["import-settings", *arguments]) == 2
    shown = capsys.readouterr()
    name = text if isinstance(text, str) else json.dumps(text)
    assert "  deny   web_search" in shown.out
    assert "  deny   mcp__x__*" in shown.out
    assert f"  lost   deny {name}: no rule here can express it" in shown.out
    assert f"permissions.deny: no rule here can express deny {name}." in shown.err
    assert "Nothing was written." in shown.err
    assert not folders().config_file.exists()


def test_a_single_rule_that_is_in_no_list_counts(
    claude: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (claude / "settings.json").write_text(json.dumps({"permissions": {"deny": "Bash"}}))
    assert main(["import-settings", "--dry-run"]) == 0
    assert "  deny   run_command" in capsys.readouterr().out


def imported(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, Any]:
    assert main(["import-settings", "--dry-run", "--json", *arguments]) == 0
    return json.loads(capsys.readouterr().out)


def test_every_key_of_claude_codes_files_is_taken_or_left_with_a_reason(
    claude: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    settings: dict[str, Any] = SETTINGS | {
        "model": "claude-sonnet-5-5",
        "env": {"A": "1", "B": "2"},
        "statusLine": {"type": "command", "command": "x"},
        "outputStyle": "Explanatory",
        "somethingNew": True,
        "permissions": SETTINGS["permissions"]
        | {"defaultMode": "plan", "additionalDirectories": ["/more"], "disableX": 1},
    }
    (claude / "settings.json").write_text(json.dumps(settings))
    (claude / "output-styles").mkdir()
    (claude / "output-styles" / "brief.md").write_text("Be brief.")
    oauth = {"type": "http", "url": "https://a.example/mcp", "oauth": {"realm": "r"}}
    state = {
        "numStartups": 3,
        "mcpServers": {"a": oauth},
        "projects": {"/other": {"allowedTools": ["Bash(ls:*)"], "history": []}},
    }
    (claude / ".claude.json").write_text(json.dumps(state))
    own = tmp_path / ".claude/settings.json"
    own.parent.mkdir()
    own.write_text(json.dumps({"permissions": {"deny": ["Bash"]}, "hooks": {}}))
    found = imported(capsys)
    taken = {(one["kind"], one["what"]) for one in found["taken"]}
    assert {
        ("deny", "read_file(**/.env)"),
        ("hook", "PostToolUse Edit|Write: ./format.sh"),
        ("setting", "model = claude-sonnet-5-5"),
        ("mcp", "a"),
        ("command", "review"),
        ("output style", "brief"),
    } <= taken
    left = {one["what"]: one["why"] for one in found["left"]}
    assert {
        "allow WebSearch", "env.A", "env.B", "statusLine", "outputStyle", "somethingNew", "hooks",
        "permissions.defaultMode plan", "permissions.additionalDirectories /more",
        "permissions.disableX", "mcp.a.oauth.realm", "numStartups",
        "projects./other.allowedTools Bash(ls:*)", "projects./other.history",
        ".claude.json",
    } == set(left)  # fmt: skip
    assert all(left.values())
    assert main(["import-settings", "--yes"]) == 0
    assert config()["model"] == "claude-sonnet-5-5"


def test_an_output_style_of_ones_own_is_chosen_here_too(
    claude: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (claude / "settings.json").write_text(json.dumps({"outputStyle": "Loud"}))
    assert [one["what"] for one in imported(capsys)["left"]] == ["outputStyle"]
    (claude / "output-styles").mkdir()
    (claude / "output-styles/loud.md").write_text("---\nname: Loud\n---\nBe loud.")
    found = imported(capsys)
    assert ("setting", "output_style = Loud") in {(o["kind"], o["what"]) for o in found["taken"]}
    assert found["left"] == []
    assert main(["import-settings", "--yes"]) == 0
    assert config()["output_style"] == "Loud"
    capsys.readouterr()
    again = imported(capsys)
    assert "setting" not in {one["kind"] for one in again["taken"]}
    assert again["left"] == []


def test_what_a_plugin_brings_is_shown_before_it_is_taken(
    claude: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    root = tmp_path / "plug"
    (root / "hooks").mkdir(parents=True)
    hooks = {"hooks": {"Stop": [{"hooks": [{"type": "command", "command": "./stop.sh"}]}]}}
    (root / "hooks/hooks.json").write_text(json.dumps(hooks))
    (claude / "settings.json").write_text(json.dumps({"enabledPlugins": {"plug@shop": True}}))
    (claude / "plugins").mkdir()
    listed = {"plug@shop": [{"scope": "user", "installPath": str(root)}]}
    (claude / "plugins/installed_plugins.json").write_text(json.dumps({"plugins": listed}))
    assert main(["import-settings", "--yes"]) == 0
    shown = capsys.readouterr()
    assert "plugin plug@shop" in shown.out
    assert "a hook for Stop, outside the sandbox" in shown.out
    assert "./stop.sh" in shown.out
    assert "1 plugin" in shown.err
    assert main(["plugin", "list", "--json"]) == 0
    assert [one["name"] for one in json.loads(capsys.readouterr().out)["plugins"]] == ["plug"]


def test_a_rule_for_which_a_wider_one_stands_is_named(
    claude: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (claude / "settings.json").write_text('{"permissions": {"deny": ["mcp__x__y(z)"]}}')
    found = imported(capsys)
    assert ("deny", "mcp__x__y") in {(one["kind"], one["what"]) for one in found["taken"]}
    (left,) = (one for one in found["left"] if one["what"].startswith("deny"))
    assert left["what"] == "deny mcp__x__y(z)"
    assert left["why"] == "only stricter rules can be taken over: mcp__x__y"


def test_a_hook_keeps_its_condition_its_words_and_what_becomes_of_a_failure(claude: Path) -> None:
    one = {
        "type": "command",
        "command": "check",
        "args": ["a b"],
        "if": "Bash(git *)",
        "on_error": "block",
        "async": True,
    }
    hooks = {"PreToolUse": [{"hooks": [one]}]}
    (claude / "settings.json").write_text(json.dumps({"hooks": hooks}))
    assert main(["import-settings", "--yes"]) == 0
    assert json.loads((folders().config / "hooks.json").read_text()) == {"hooks": hooks}


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("CONFIG", "DATA", "CACHE", "STATE"):
        monkeypatch.setenv(f"XDG_{name}_HOME", str(tmp_path / "own" / name.lower()))
    monkeypatch.setenv("CODEX_HOME", str(tmp_path / "codex"))
    monkeypatch.setenv("OPENCODE_CONFIG_DIR", str(tmp_path / "opencode"))
    monkeypatch.setenv("PI_CODING_AGENT_DIR", str(tmp_path / "pi"))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def write(folder: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)


SKILL = "---\nname: tidy\ndescription: tidy up\n---\nTidy.\n"


def test_codex(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(
        home / "codex",
        {
            "config.toml": (
                'model = "gpt-5"\nnew_key = 1\napproval_policy = "never"\n'
                '[mcp_servers.l]\ncommand = "x"\nargs = ["a"]\nenv = {A = "secret"}\n'
                "startup_timeout_sec = 5\n"
                '[mcp_servers.r]\nurl = "https://r.example"\nbearer_token_env_var = "TOK"\n'
                '[mcp_servers.off]\ncommand = "y"\nenabled = false\n'
            ),
            "rules/default.rules": (
                'prefix_rule(pattern=["git", ["push", "fetch"]], decision="forbidden")\n'
                'prefix_rule(pattern=["ls"], decision="allow", match=["ls -l"])\n'
                'prefix_rule(pattern=["rm"], decision="prompt")\n'
            ),
            "prompts/hey.md": "Say $1 and $ARGUMENTS",
            "prompts/odd.md": "Say $FILE",
            "skills/tidy/SKILL.md": SKILL,
            "AGENTS.md": "x",
            "auth.json": "{}",
        },
    )
    found = imported(capsys, "--from", "codex")
    assert [(one["kind"], one["what"]) for one in found["taken"]] == [
        ("mcp", "l"),
        ("mcp", "r"),
        ("deny", "run_command(git push *)"),
        ("deny", "run_command(git fetch *)"),
        ("allow", "run_command(ls *)"),
        ("ask", "run_command(rm *)"),
        ("command", "hey"),
        ("skill", "tidy"),
    ]
    assert {one["what"] for one in found["left"]} == {
        "model", "new_key", "approval_policy", "mcp.l.startup_timeout_sec", "mcp_servers.off",
        "odd.md", "AGENTS.md", "auth.json",
    }  # fmt: skip
    assert main(["import-settings", "--from", "codex", "--yes"]) == 0
    assert "secret" not in capsys.readouterr().out
    servers = config()["mcp"]
    assert servers["r"]["headers"] == {"Authorization": "Bearer ${TOK}"}
    own = folders().config
    assert (own / "commands/hey.md").read_text() == "Say $1 and $ARGUMENTS"
    assert (own / "skills/tidy/SKILL.md").read_text() == SKILL
    again = imported(capsys, "--from", "codex")
    assert again["taken"] == []
    assert {"hey.md", "tidy"} <= {one["what"] for one in again["left"]}


@pytest.mark.parametrize(
    "text",
    [
        "prefix_rule(pattern=X, decision='forbidden')",
        "prefix_rule(decision='forbidden')",
        "deny_all()",
        "prefix_rule(pattern=[])",
        "if True",
    ],
)
def test_a_rule_of_codex_that_cannot_be_read_is_an_error(
    home: Path, capsys: pytest.CaptureFixture[str], text: str
) -> None:
    write(home / "codex", {"rules/x.rules": text})
    assert main(["import-settings", "--from", "codex", "--yes"]) == 2
    shown = capsys.readouterr()
    assert "  lost   " in shown.out
    assert "Nothing was written." in shown.err


def test_opencode(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = """{ // "mine"
      "$schema": "https://opencode.ai/config.json",
      "model": "anthropic/claude-sonnet-5-5", "new": "http://x", /* , */
      "permission": {"edit": "deny", "bash": {"git push*": "deny", "*": "ask"},
                     "read": {"*.env": "deny",}, "r_get_*": "deny", "external_directory": "deny"},
      "mcp": {"l": {"type": "local", "command": ["x", "y"], "environment": {"A": "1"}},
              "r": {"type": "remote", "url": "https://r.example", "headers": {"K": "v"}}},
      "agent": {"a": {}},
    }"""
    write(
        home / "opencode",
        {
            "opencode.jsonc": text,
            "command/hey.md": "Say $ARGUMENTS",
            "commands/run.md": "See !`ls`",
            "agent/a.md": "x",
            "plugin/p.ts": "",
        },
    )
    found = imported(capsys, "--from", "opencode")
    taken = {(one["kind"], one["what"]) for one in found["taken"]}
    assert {
        ("mcp", "l"), ("mcp", "r"), ("setting", "model = claude-sonnet-5-5"), ("command", "hey"),
        ("deny", "edit_file"), ("deny", "write_file"), ("deny", "apply_patch"),
        ("deny", "run_command(git push*)"), ("deny", "read_file(*.env)"), ("deny", "mcp__r__get_*"),
    } <= taken  # fmt: skip
    assert {one["what"] for one in found["left"]} == {
        "new", "agent", "plugin", "run.md", "permission.bash *: ask",
        "permission.external_directory *: deny",
    }  # fmt: skip
    assert main(["import-settings", "--from", "opencode", "--yes"]) == 0
    assert config()["mcp"]["l"]["command"] == ["x", "y"]


@pytest.mark.parametrize(
    ("text", "rules"),
    [
        # opencode 1.18.33 (`debug config`) makes permissions of them
        ('{"tools": {"bash": false, "patch": false, "grep": true}}', {"run_command", "edit_file"}),
        ('{"tools": {"list": null}}', {"list_dir"}),
    ],
)
def test_tools_of_opencode_that_are_off_are_denied(
    home: Path, capsys: pytest.CaptureFixture[str], text: str, rules: set[str]
) -> None:
    write(home / "opencode", {"opencode.json": text})
    found = imported(capsys, "--from", "opencode")
    denied = {one["what"] for one in found["taken"] if one["kind"] == "deny"}
    assert rules <= denied
    assert "grep_search" not in denied


def test_what_opencode_asks_about_last_is_asked_about(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = '{"permission": {"bash": {"git *": "allow", "*": "ask"}}}'
    write(home / "opencode", {"opencode.json": text})
    found = imported(capsys, "--from", "opencode")
    assert {"kind": "ask", "what": "run_command"}.items() <= found["taken"][-1].items()


@pytest.mark.parametrize(
    "text",
    [
        '{"permission": {"bash": "Deny"}}',
        '{"permission": {"bash": {"rm": {"x": "deny"}}}}',
        '{"permission": ["deny"]}',
        '{"agent": {"build": {"permission": {"bash": "deny"}}}}',
        '{"mode": {"build": {"tools": {"bash": false}}}}',
        '{"permission": {"bash": "deny"},,}',
    ],
)
def test_what_may_be_a_prohibition_of_opencode_is_an_error(
    home: Path, capsys: pytest.CaptureFixture[str], text: str
) -> None:
    write(home / "opencode", {"opencode.json": text})
    assert main(["import-settings", "--from", "opencode", "--yes"]) == 2
    assert "Nothing was written" in capsys.readouterr().err


def test_tools_of_a_server_that_codex_switched_off_stay_so(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """As `codex mcp get --json` of 0.171.0 has them."""
    some = '[mcp_servers.some]\ncommand = "x"\nenabled_tools = ["ls"]\n'
    text = f'{some}[mcp_servers.all]\ncommand = "y"\ndisabled_tools = ["rm"]\n'
    write(home / "codex", {"config.toml": text})
    found = imported(capsys, "--from", "codex")
    taken = [(one["kind"], one["what"]) for one in found["taken"]]
    assert taken == [("mcp", "all"), ("deny", "mcp__all__rm")]
    assert "mcp_servers.some" in {one["what"] for one in found["left"]}


def test_a_prohibition_of_opencode_that_no_rule_says_is_an_error(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(home / "opencode", {"opencode.json": '{"permission": {"lsp": "deny"}}'})
    assert main(["import-settings", "--from", "opencode", "--yes"]) == 2
    assert "  lost   permission.lsp *: deny: no rule here can express it" in capsys.readouterr().out


def test_pi(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    settings = {"defaultModel": "claude-sonnet-5-5", "theme": "dark", "new": 1}
    write(
        home / "pi",
        {
            "settings.json": json.dumps(settings),
            "prompts/hey.md": "Say $1",
            "prompts/odd.md": "Say $@",
            "skills/tidy/SKILL.md": SKILL,
            "extensions/x.ts": "",
            "SYSTEM.md": "x",
        },
    )
    found = imported(capsys, "--from", "pi")
    assert {(one["kind"], one["what"]) for one in found["taken"]} == {
        ("setting", "model = claude-sonnet-5-5"),
        ("command", "hey"),
        ("skill", "tidy"),
    }
    assert {one["what"] for one in found["left"]} == {
        "theme", "new", "odd.md", "extensions", "SYSTEM.md",
    }  # fmt: skip
    assert main(["import-settings", "--from", "pi", "--yes"]) == 0
    assert config()["model"] == "claude-sonnet-5-5"


@pytest.mark.parametrize("source", ["codex", "opencode", "pi"])
def test_nothing_is_there(home: Path, capsys: pytest.CaptureFixture[str], source: str) -> None:
    assert imported(capsys, "--from", source) == {"taken": [], "left": []}
