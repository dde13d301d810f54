"""Rules: found in their folders, safe with links, matched by their globs."""

from __future__ import annotations

from pathlib import Path

import pytest

from tui.core.paths import Folders
from tui.settings import rule_files, trust
from tui.settings.rule_files import RuleFile


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Folders:
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path / "claude"))
    return Folders(*(tmp_path / name for name in ("config", "data", "cache", "log")))


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


@pytest.mark.parametrize(
    ("paths", "file", "holds"),
    [
        ("src/**/*.ts", "src/a.ts", True),
        ("src/**/*.ts", "src/b/c/a.ts", True),
        ("src/**/*.ts", "lib/a.ts", False),
        ("**/*.{ts,tsx}", "a.tsx", True),
        ("**/*.{ts,tsx}", "x/a.js", False),
        ("*.md", "README.md", True),
        ("*.md", "docs/README.md", False),
        ("docs/**", "docs/a/b", True),
        ("a?.py, lib/*.py", "lib/x.py", True),
        ("[a].py", "a.py", False),
        ("**/x/**/*.py", "a/x/b/c/d.py", True),
        ("**/x/**/*.py", "a/y/b/c/d.py", False),
        ("./src/{a*,b}/**", "src/abc/d/e", True),
        ("src/{a*,b}/**", "src/c/d", False),
        ("a**b", "a/c/b", True),
        ("**/" * 160 + "x.py", "a/" * 500 + "y.py", False),
        ("*a" * 240 + "b", "a" * 250, False),
        ("{*a*a*a*a*a*a*a*a*a,*a*a*a*a*a*a*a}c", "a" * 250, False),
    ],
)
def test_a_rule_holds_for_what_its_globs_name(
    home: Folders, tmp_path: Path, paths: str, file: str, holds: bool
) -> None:
    root = tmp_path / "work"
    write(root / ".holdfast/rules/one.md", f'---\npaths: "{paths}"\n---\nBe brief.')
    (rule,), problems = rule_files.load(root, home, lambda _name, _data: True)
    assert not problems
    assert rule.text == "Be brief."
    assert rule.holds_for([root / file], root) is holds
    assert not rule.holds_for([tmp_path / file], root)


def test_they_are_found_in_every_folder_and_not_behind_links_out(
    home: Folders, tmp_path: Path
) -> None:
    root = tmp_path / "work"
    inside = write(root / ".claude/rules/deep/one.md", "One.")
    write(root / ".holdfast/rules/two.md", '---\npaths:\n  - "*.py"\n  - docs/**\n---\nTwo.')
    write(home.config / "rules/own.md", "Own.")
    write(tmp_path / "claude/rules/theirs.md", "Theirs.")
    outside = write(tmp_path / "secret.md", "Secret.")
    (root / ".claude/rules/out.md").symlink_to(outside)
    (root / ".claude/rules/again.md").symlink_to(inside)
    (root / ".claude/rules/loop").symlink_to(root / ".claude", target_is_directory=True)
    found, problems = rule_files.load(root, home, lambda _name, _data: True)
    assert [one.text for one in found] == ["Own.", "Theirs.", "One.", "Two."]
    assert [one.own for one in found] == [True, True, False, False]
    assert found[-1].paths == ("*.py", "docs/**")
    assert not problems
    refused, problems = rule_files.load(root, home, lambda _name, _data: False)
    assert [one.text for one in refused] == ["Own.", "Theirs."]
    assert all("you haven't trusted" in one for one in problems)
    assert len(problems) == 2


def test_those_of_a_workspace_are_asked_about(home: Folders, tmp_path: Path) -> None:
    root = tmp_path / "work"
    write(root / ".claude/rules/api.md", "---\npaths: src/**\n---\nValidate input.")
    (item,) = trust.items(root)
    assert item.name == ".claude/rules/api.md"
    assert item.does.startswith("Adds instructions: .claude/rules/api.md, 4 lines")
    assert item.does.endswith(", for src/**")
    trust.decide(home, root, (item,), [item.name])
    given = trust.trust_of(home, root)
    assert isinstance(rule_files.load(root, home, given.allows)[0][0], RuleFile)
    write(root / ".claude/rules/api.md", "---\npaths: src/**\n---\nValidate nothing.")
    assert not rule_files.load(root, home, given.allows)[0]
    (changed,) = trust.undecided(home, root)
    assert changed.change == ("-Validate input.", "+Validate nothing.")
