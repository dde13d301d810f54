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
        "Notification": [{"hooks": [{"type": "command", "command": "say done"}]}],
    },
}


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
        "  left   allow WebSearch: no rule here says that",
    ):
        assert line in shown.out
    assert "/claude: 1 command" in shown.out
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
    assert "Took over 5 rules, 1 hook and 0 MCP servers." in capsys.readouterr().err
    assert config()["permissions"] == {
        "deny": ["run_command(curl *)", "read_file(**/.env)", "read_file(**/.env/*)"],
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
    assert len(config()["permissions"]["deny"]) == 3


@pytest.mark.parametrize("text", ["{", "[]", '{"permissions": 3, "hooks": []}', ""])
def test_odd_settings_are_named_and_cost_nothing(
    claude: Path, capsys: pytest.CaptureFixture[str], text: str
) -> None:
    (claude / "settings.json").write_text(text)
    assert main(["import-settings", "--yes"]) == 0
    shown = capsys.readouterr()
    assert "Nothing more to take over." in shown.err
    if text in {"{", ""}:
        assert "It is not valid JSON." in shown.out


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
        "  kept   docs: another MCP server has this name here",
        "  kept   mine: another MCP server has this name here",
        "  left   mcp.odd: it is not valid",
        "  mcp    time: uvx time",
    ):
        assert line in shown
    assert "secret" not in shown
    assert "far" not in shown
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
    assert "  left   door: alwaysLoad means nothing here" in shown
    assert "  left   door: oauth.xaa means nothing here" in shown
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
    assert ("It is not valid JSON." in shown.out) is (text == "{")


@pytest.mark.parametrize("text", ["Other", "mcp__x__y(z)", 5, {"tool": "Bash"}])
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
    assert f"  lost   deny {name}: no rule here says that" in shown.out
    assert f"permissions.deny: holds what no rule here can say: deny {name}." in shown.err
    assert "Nothing was written." in shown.err
    assert not folders().config_file.exists()


def test_a_single_rule_that_is_in_no_list_counts(
    claude: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (claude / "settings.json").write_text(json.dumps({"permissions": {"deny": "Bash"}}))
    assert main(["import-settings", "--dry-run"]) == 0
    assert "  deny   run_command" in capsys.readouterr().out
