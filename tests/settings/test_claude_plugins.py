"""The plugins of Claude Code's own list, as it was seen to keep them."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.settings.claude_plugins.record import SEEN
from tui.core.paths import folders
from tui.settings import claude_plugins, plugins
from tui.settings.takeover import Takeover, take_over

PLACES = {
    "on@shop": "shop/plugins/on",
    "fetched@far": "home/.claude/plugins/cache/far/fetched/1.0.0",
}
"""Where those that count are read: a marketplace that is a folder is read where it lies."""


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Its files as it left them, with a command in each plugin but one, whose folder is gone."""
    seen: dict[str, Any] = json.loads(SEEN.read_text())
    home = tmp_path / "home/.claude"
    for name, text in seen["files"].items():
        (home / name).parent.mkdir(parents=True, exist_ok=True)
        (home / name).write_text(re.sub(r"\{(home|shop|work)\}", rf"{tmp_path}/\1", text))
    entries = [{"name": one, "source": f"./plugins/{one}"} for one in ("on", "off", "here")]
    (tmp_path / "shop/.claude-plugin").mkdir(parents=True)
    (tmp_path / "shop/.claude-plugin/marketplace.json").write_text(json.dumps({"plugins": entries}))
    for place in (*PLACES.values(), "shop/plugins/off", "shop/plugins/here"):
        (tmp_path / place / "commands").mkdir(parents=True)
        (tmp_path / place / "commands/tt.md").write_text("Do it.")
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(home))
    return home


def whys(found: Takeover) -> dict[str, str]:
    return {one.what: one.why for one in found.left}


def test_what_counts_there_is_taken_and_the_rest_named(home: Path, tmp_path: Path) -> None:
    seen: dict[str, Any] = json.loads(SEEN.read_text())
    count = {one["id"] for one in seen["listed"] if one["enabled"] and one["scope"] == "user"}
    found = claude_plugins.plan(folders())
    assert count == {*PLACES, "lost@far"}
    assert {one.what: one.where for one in found.taken} == {
        name: tmp_path / place for name, place in PLACES.items()
    }
    left = whys(found)
    assert left.keys() == {"off@shop", "here@shop", "lost@far"}
    assert "switched off there" in left["off@shop"]
    assert "work alone" in left["here@shop"]
    assert "isn't there" in left["lost@far"]
    take_over(found, folders())
    assert [one.name for one in plugins.installed(folders()).all] == ["on", "fetched"]
    assert not claude_plugins.plan(folders())


def test_a_newer_version_there_replaces_the_older_here(home: Path, tmp_path: Path) -> None:
    take_over(claude_plugins.plan(folders()), folders())
    old = tmp_path / PLACES["fetched@far"]
    shutil.copytree(old, old.with_name("2.0.0"))
    shutil.rmtree(old)
    listed = home / "plugins/installed_plugins.json"
    listed.write_text(listed.read_text().replace("fetched/1.0.0", "fetched/2.0.0"))
    found = claude_plugins.plan(folders())
    assert list(found.plugins) == [old.with_name("2.0.0")]
    take_over(found, folders())
    assert [one.root.name for one in plugins.installed(folders()).all] == ["on", "2.0.0"]


def test_one_of_that_name_that_is_here_already_stays(home: Path, tmp_path: Path) -> None:
    mine = tmp_path / "mine/on"
    (mine / "commands").mkdir(parents=True)
    (mine / "commands/own.md").write_text("Mine.")
    plugins.add(folders(), mine)
    found = claude_plugins.plan(folders())
    assert "already have a plugin named on" in whys(found)["on@shop"]
    assert list(found.plugins.values()) == ["fetched"]


def test_one_below_its_skills_counts_if_it_brings_more(home: Path) -> None:
    for name in ("bare", "more"):
        root = home / "skills" / name
        (root / ".claude-plugin").mkdir(parents=True)
        (root / plugins.MANIFEST).write_text(json.dumps({"name": name}))
        (root / "SKILL.md").write_text("---\ndescription: d\n---\nDo it.")
    (home / "skills/more/commands").mkdir()
    (home / "skills/more/commands/tt.md").write_text("Do it.")
    assert "more" in claude_plugins.plan(folders()).plugins.values()
    assert "bare" not in claude_plugins.plan(folders()).plugins.values()
    settings = json.loads((home / "settings.json").read_text())
    settings["enabledPlugins"]["more@skills-dir"] = False
    (home / "settings.json").write_text(json.dumps(settings))
    found = claude_plugins.plan(folders())
    assert "more" not in found.plugins.values()
    assert "switched off" in whys(found)["more@skills-dir"]


def test_odd_files_cost_nothing(home: Path) -> None:
    for name in ("installed_plugins.json", "known_marketplaces.json"):
        (home / "plugins" / name).write_text('{"plugins": [1], "far": 2}')
    found = claude_plugins.plan(folders())
    assert not found
    assert set(whys(found).values()) == {"not installed there"}
