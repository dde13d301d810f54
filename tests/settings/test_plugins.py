"""Plugins as folders: what Claude Code was seen to take from one, and trust in what is in it."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.settings.claude_code.seen import lay_out, lines_of, prompt_of, seen
from tests.settings.claude_plugins.record import SEEN
from tests.support.clock import PATIENCE_S
from tui.agent.hook_process import HookProcess
from tui.app.commands.own import turn_variables, user_commands
from tui.core.errors import ConfigError, UsageError
from tui.core.paths import folders
from tui.settings import agent_definitions, plugins
from tui.settings.hook_files import Hook
from tui.settings.plugins import Plugin
from tui.settings.skills import InstalledSkills
from tui.settings.trust import Trust
from tui.settings.user_commands import UserCommands, find


def laid_out(name: str, tmp_path: Path) -> Path:
    lay_out(seen()[name], tmp_path, Path.home())
    return tmp_path / "plug"


def added(name: str, tmp_path: Path) -> Plugin:
    return plugins.add(folders(), laid_out(name, tmp_path))


def commands(tmp_path: Path) -> UserCommands:
    found = user_commands(folders(), tmp_path, lambda: Trust(everything=True), frozenset())
    found.load()
    return found


def sent(name: str, tmp_path: Path) -> str:
    row = seen()[name]
    typed, _, arguments = row["typed"].removeprefix("/").partition(" ")
    command = find(commands(tmp_path).commands, typed)
    assert command
    text = command.expanded(arguments, turn_variables(tmp_path, None)).text
    return text.replace(str(tmp_path), "<WORK>")


@pytest.mark.parametrize("name", ["plugin-command-deep", "plugin-command-names", "plugin-clash"])
def test_its_commands_have_its_name(name: str, tmp_path: Path) -> None:
    added(name, tmp_path)
    assert sent(name, tmp_path).strip() == prompt_of(seen()[name])


def test_its_folder_is_in_its_texts(tmp_path: Path) -> None:
    added("plugin-command", tmp_path)
    theirs = prompt_of(seen()["plugin-command"])
    assert theirs == "Plug one <WORK>/plug <WORK>/plug"
    assert sent("plugin-command", tmp_path).strip() == (
        "Plug one <WORK>/plug `echo <WORK>/plug` (its output is below)"
    )


def test_its_skills_and_sub_agents_have_its_name(tmp_path: Path) -> None:
    plugin = added("plugin-skill", tmp_path)
    skills = InstalledSkills(folders(), tmp_path / "elsewhere", lambda _name, _data: True)
    skills.load()
    text = skills.instructions("plug:sk", "one").replace(str(tmp_path), "<WORK>")
    theirs = (prompt_of(seen()["plugin-skill"]) or "").splitlines()[-1]
    assert text.splitlines()[-1] == theirs == "Skill one <WORK>/plug <WORK>/plug/skills/sk"
    assert plugin.root in skills.outside
    agents, _ = agent_definitions.of_plugin(plugin.agents, plugin.name, plugin.filled)
    listed = [line for line in lines_of(seen()["plugin-agent"]) if line.startswith("- plug:ag")]
    assert listed == ["- plug:ag: a (Tools: All tools)"]
    assert [(name, one.prompt) for name, one in agents.items()] == [
        ("plug:ag", f"You are ag in {plugin.root}.")
    ]


def test_its_hooks_and_servers(tmp_path: Path) -> None:
    plugin = added("plugin-command", tmp_path)
    (hook,) = plugin.hooks
    assert hook.event == "UserPromptSubmit"
    assert printed(hook, tmp_path) == f"hook of {plugin.root} {plugin.root}"
    said = lines_of(seen()["plugin-command"])
    assert "UserPromptSubmit hook success: hook of <WORK>/plug <WORK>/plug" in said
    assert plugin.servers == {
        "plugin_plug_srv": {
            "command": f"{plugin.root}/missing",
            "env": {"CLAUDE_PLUGIN_ROOT": str(plugin.root), "PYTHONDONTWRITEBYTECODE": "1"},
        }
    }
    assert any(line.startswith("plugin:plug:srv ") for line in said)


def test_a_hook_with_words_of_its_own_has_the_folder_too(tmp_path: Path) -> None:
    root = tmp_path / "a plug"
    (root / "hooks").mkdir(parents=True)
    words = ["-c", 'echo "$CLAUDE_PLUGIN_ROOT" "$0"', "${CLAUDE_PLUGIN_ROOT}/x"]
    entry = {"type": "command", "command": "/bin/sh", "args": words}
    hooks = {"hooks": {"Stop": [{"hooks": [entry]}]}}
    (root / "hooks/hooks.json").write_text(json.dumps(hooks))
    (hook,) = plugins.read(root, "plug").hooks
    assert printed(hook, tmp_path) == f"{root} {root}/x"


def printed(hook: Hook, workspace: Path) -> str:
    process = HookProcess(hook, workspace, 5)
    assert asyncio.run(process.run(b"{}"))[0] == "ok"
    return process.out.decode().strip()


def test_the_manifest_says_where_its_parts_lie(tmp_path: Path) -> None:
    plugin = added("plugin-own-folders", tmp_path)
    assert list(plugin.commands) == ["x"]
    assert [path.name for path in plugin.agents] == ["ag.md"]
    assert {path.name for path in plugin.skills} == {"s1", "s2"}
    said = lines_of(seen()["plugin-own-folders"])
    assert [line for line in said if line.startswith("- plug:")] == [
        "- plug:ag: a (Tools: All tools)",
        "- plug:s2: s2",
        "- plug:s1: s",
    ]


def test_without_a_manifest_the_folder_has_the_name(tmp_path: Path) -> None:
    assert added("plugin-without-manifest", tmp_path).name == "plug"
    assert sent("plugin-without-manifest", tmp_path) == "Plug"


def test_a_skill_may_be_all_of_it(tmp_path: Path) -> None:
    plugin = added("plugin-skill-at-root", tmp_path)
    assert plugin.skills == (plugin.root,)
    assert any(
        line.startswith("- plug:plug: d") for line in lines_of(seen()["plugin-skill-at-root"])
    )


@pytest.mark.parametrize("name", ["plugin-manifest-broken", "plugin-name-bad"])
def test_what_cannot_be_read_is_no_plugin(name: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError):
        added(name, tmp_path)
    assert (prompt_of(seen()[name]) or "").startswith("/")


def test_what_leads_out_of_it_is_named(tmp_path: Path) -> None:
    plugin = plugins.read(laid_out("plugin-leads-out", tmp_path))
    assert plugin.commands == {}
    assert plugin.problems == ("'../x.md' isn't in its folder.",)


def test_hooks_need_their_wrapper_as_there(tmp_path: Path) -> None:
    assert not any("hook success" in one for one in lines_of(seen()["plugin-hooks-unwrapped"]))
    with pytest.raises(ConfigError, match="does not have the form of hooks"):
        added("plugin-hooks-unwrapped", tmp_path)


def test_it_counts_as_it_was_added(tmp_path: Path) -> None:
    plugin = added("plugin-command", tmp_path)
    assert "plug:tt" in commands(tmp_path).commands
    (plugin.root / "notes.txt").write_text("new")
    found = commands(tmp_path)
    assert "plug:tt" not in found.commands
    (problem,) = found.problems
    assert problem.startswith(
        "The plugin plug was left out: its folder has changed since you added"
    )
    plugins.add(folders(), plugin.root)
    assert "plug:tt" in commands(tmp_path).commands
    path = plugin.root / "commands/tt.md"
    state, text = path.stat(), path.read_text()
    path.write_text(text.replace("Plug", "Plot"))
    os.utime(path, ns=(state.st_atime_ns, state.st_mtime_ns))
    assert plugins.installed(folders()).all == ()
    path.write_text(text)
    assert [one.name for one in plugins.installed(folders()).all] == ["plug"]
    assert plugins.remove(folders(), "plug").path == plugin.root
    assert plugins.installed(folders()) == plugins.Plugins()
    with pytest.raises(UsageError, match="There is no plugin plug"):
        plugins.remove(folders(), "plug")


def test_a_marketplace_is_a_list_of_folders(tmp_path: Path) -> None:
    (tmp_path / "plugins/a/commands").mkdir(parents=True)
    (tmp_path / "plugins/a/commands/x.md").write_text("X")
    (tmp_path / ".claude-plugin").mkdir()
    listed = [
        {"name": "a", "source": "./plugins/a"},
        {"name": "b", "source": {"source": "github", "repo": "x/b"}},
    ]
    (tmp_path / plugins.MARKETPLACE).write_text(json.dumps({"name": "m", "plugins": listed}))
    with pytest.raises(UsageError, match="a marketplace, a list of plugins") as no:
        plugins.add(folders(), tmp_path)
    assert no.value.message.endswith("can't be fetched: b.")
    assert no.value.hint.endswith(": a.")
    assert plugins.offered(tmp_path, "a") == tmp_path / "plugins/a"
    assert plugins.add(folders(), tmp_path / "plugins/a").name == "a"


def test_plugins_that_are_the_marketplaces_own_folder(tmp_path: Path) -> None:
    own = json.loads(SEEN.read_text())["own"]
    for name in ("a", "b", "c"):
        (tmp_path / "skills" / name).mkdir(parents=True)
        (tmp_path / "skills" / name / "SKILL.md").write_text("---\ndescription: d\n---\nDo it.")
    (tmp_path / "commands").mkdir()
    (tmp_path / "commands/cc.md").write_text("Do it.")
    (tmp_path / ".claude-plugin").mkdir()
    (tmp_path / plugins.MARKETPLACE).write_text(json.dumps(own["marketplace"]))
    with pytest.raises(UsageError, match="is a marketplace"):
        plugins.add(folders(), tmp_path)
    for name in ("docs", "other", "all", "docs"):
        assert plugins.add(folders(), tmp_path, name).name == name
    found = plugins.installed(folders()).all
    brought = {p.name: [*(one.name for one in p.skills), *p.commands] for p in found}
    assert brought == own["skills_and_commands"]
    plugins.remove(folders(), "other")
    assert [one.name for one in plugins.installed(folders()).all] == ["all", "docs"]


def test_a_folder_without_anything_known_is_refused(tmp_path: Path) -> None:
    (tmp_path / "x.txt").write_text("x")
    with pytest.raises(UsageError, match="has nothing in it"):
        plugins.add(folders(), tmp_path)
    with pytest.raises(UsageError, match="has nothing in it"):
        plugins.add(folders(), tmp_path / "missing")


def plugin_with(tmp_path: Path, hook: Mapping[str, object]) -> Plugin:
    root = tmp_path / "guarded"
    (root / "hooks").mkdir(parents=True)
    (root / "commands").mkdir()
    (root / "commands/go.md").write_text("---\nallowed-tools: Bash(rm:*)\n---\nGo")
    (root / "guard.sh").write_text("echo guarded $CLAUDE_PLUGIN_ROOT $1")
    hooks = {"PreToolUse": [{"hooks": [{"type": "command", **hook}]}]}
    (root / "hooks/hooks.json").write_text(json.dumps({"hooks": hooks}))
    return plugins.add(folders(), root)


def test_a_hook_whose_plugin_changes_meanwhile_does_not_run(tmp_path: Path) -> None:
    """A command of the model's may write there, if the plugin is in the workspace."""
    root = plugin_with(tmp_path, {"command": "sh ${CLAUDE_PLUGIN_ROOT}/guard.sh"}).root
    (plugin,) = plugins.installed(folders()).all
    assert plugin.hooks[0].holds_in(tmp_path)
    (root / "guard.sh").write_text("touch canary")
    assert not plugin.hooks[0].holds_in(tmp_path)


def test_a_plugin_with_a_guard_that_is_left_out_is_missed(tmp_path: Path) -> None:
    root = plugin_with(tmp_path, {"command": "true"}).root
    (root / "new").touch()
    (plugin,) = plugins.installed(folders()).all
    (guard,) = plugin.hooks
    assert guard.problem == "the plugin guarded was left out: its folder has changed"
    assert (plugin.commands, guard.event, guard.command) == ({}, "PreToolUse", "")


async def test_a_hook_without_a_shell_finds_its_folder(tmp_path: Path) -> None:
    hook = {"command": "sh", "args": ["${CLAUDE_PLUGIN_ROOT}/guard.sh", "a b"]}
    plugin = plugin_with(tmp_path, hook)
    (one,) = plugin.hooks
    process = HookProcess(one, tmp_path, PATIENCE_S)
    assert await process.run(b"") == ("ok", "")
    assert bytes(process.out).decode() == f"guarded {plugin.root} a b\n"


def test_what_its_commands_allow_is_said(tmp_path: Path) -> None:
    plugin = plugin_with(tmp_path, {"command": "true"})
    assert (
        "in the turns of its commands it allows without asking: run_command(rm *)" in plugin.brings
    )


@pytest.mark.parametrize("target", ["../outside.sh", ".git/x.sh", "/etc/passwd"])
def test_no_link_leads_to_what_its_hash_is_not_of(tmp_path: Path, target: str) -> None:
    root = laid_out("plugin-command", tmp_path)
    (root / ".git").mkdir()
    (root / ".git/x.sh").touch()
    (root / "run.sh").symlink_to(target)
    with pytest.raises(ConfigError, match="a link to something outside of its folder"):
        plugins.add(folders(), root)


def test_nothing_is_used_that_lies_in_gits_folder(tmp_path: Path) -> None:
    root = laid_out("plugin-command", tmp_path)
    (root / ".git").mkdir()
    (root / ".git/x.md").write_text("X")
    (root / plugins.MANIFEST).write_text(json.dumps({"name": "plug", "commands": "./.git/x.md"}))
    assert plugins.read(root).commands == {}
