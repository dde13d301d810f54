"""Plugins as folders: what Claude Code was seen to take from one, and trust in what is in it."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from tests.settings.claude_code.seen import lay_out, lines_of, prompt_of, seen
from tui.app.commands.own import turn_variables, user_commands
from tui.core.errors import ConfigError, UsageError
from tui.core.paths import folders
from tui.settings import agent_definitions, plugins
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
    done = subprocess.run(["sh", "-c", hook.command], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == f"hook of {plugin.root} {plugin.root}"
    said = lines_of(seen()["plugin-command"])
    assert "UserPromptSubmit hook success: hook of <WORK>/plug <WORK>/plug" in said
    assert plugin.servers == {
        "plugin_plug_srv": {
            "command": f"{plugin.root}/missing",
            "env": {"CLAUDE_PLUGIN_ROOT": str(plugin.root)},
        }
    }
    assert any(line.startswith("plugin:plug:srv ") for line in said)


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
    assert no.value.hint.endswith("plugins/a.")
    assert plugins.add(folders(), tmp_path / "plugins/a").name == "a"


def test_a_folder_without_anything_known_is_refused(tmp_path: Path) -> None:
    (tmp_path / "x.txt").write_text("x")
    with pytest.raises(UsageError, match="has nothing in it"):
        plugins.add(folders(), tmp_path)
    with pytest.raises(UsageError, match="has nothing in it"):
        plugins.add(folders(), tmp_path / "missing")
