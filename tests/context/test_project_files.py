"""Which files are found for the system prompt: A6, A10, and what a cloned folder may not do."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tui.context.project_files import ProjectFiles, find, nested, nested_again
from tui.core.errors import UsageError
from tui.core.paths import Folders
from tui.core.workspace import Workspace


@pytest.fixture
def house(tmp_path: Path) -> Path:
    (tmp_path / "repo" / ".git").mkdir(parents=True)
    (tmp_path / "repo" / "app" / "core").mkdir(parents=True)
    return tmp_path


def found(house: Path, at: str = "repo/app/core", boot: Path | None = None) -> ProjectFiles:
    home = house / "home"
    folders = Folders(home / "data", home / "config", home / "cache", home / "log")
    return find(Workspace.at(house / at, ceiling=house), folders, boot=boot)


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def listed(result: ProjectFiles) -> list[tuple[str, str, str]]:
    return [(source.origin, source.name, source.text) for source in result.sources]


def test_instructions_are_found_from_the_repository_down(house: Path):
    write(house / "AGENTS.md", "outside the repository")
    write(house / "repo/AGENTS.md", "root")
    write(house / "repo/CLAUDE.md", "not this one: the folder has AGENTS.md")
    write(house / "repo/app/CLAUDE.md", "app")
    write(house / "repo/app/core/AGENTS.md", "core")
    assert listed(found(house)) == [
        ("project", "../../AGENTS.md", "root"),
        ("project", "../CLAUDE.md", "app"),
        ("project", "AGENTS.md", "core"),
    ]


def test_without_a_repository_only_the_folder_counts(tmp_path: Path):
    write(tmp_path / "AGENTS.md", "above")
    write(tmp_path / "plain/AGENTS.md", "here")
    assert [text for _, _, text in listed(found(tmp_path, "plain"))] == ["here"]


def test_A6_the_first_boot_file_wins(house: Path):
    write(house / "repo/.agent-loop/boot.md", "second")
    assert listed(found(house, "repo")) == [("boot", ".agent-loop/boot.md", "second")]
    write(house / "repo/.holdfast/boot.md", "first")
    assert listed(found(house, "repo")) == [("boot", ".holdfast/boot.md", "first")]


def test_A6_a_named_boot_file_wins_over_the_usual_ones(house: Path):
    write(house / "repo/.holdfast/boot.md", "usual")
    write(house / "repo/docs/start.md", "named")
    boot = house / "repo/docs/start.md"
    assert listed(found(house, "repo", boot)) == [("boot", "docs/start.md", "named")]


def test_30_a_boot_file_that_is_not_trusted_as_it_is_stays_out(house: Path):
    write(house / "repo/.holdfast/boot.md", "first")
    write(house / "repo/.agent-loop/boot.md", "second")
    home = house / "home"
    folders = Folders(home / "data", home / "config", home / "cache", home / "log")
    at = Workspace.at(house / "repo", ceiling=house)
    trusted = {".holdfast/boot.md": b"first"}

    def allows(name: str, content: bytes) -> bool:
        return trusted.get(name) == content

    assert [source.text for source in find(at, folders, allows=allows).sources] == ["first"]
    write(house / "repo/.holdfast/boot.md", "changed")
    result = find(at, folders, allows=allows)
    assert result.sources == ()
    assert result.problems == (
        ".holdfast/boot.md was left out: you haven't trusted its current version. See /trust.",
    )


def test_A10_a_named_boot_file_that_is_missing_is_an_error(house: Path):
    with pytest.raises(UsageError, match=r"Can't read .*: No such file"):
        found(house, "repo", house / "repo/none.md")


def test_memories_and_own_instructions_have_layers_of_their_own(house: Path):
    write(house / "repo/.holdfast/MEMORY.md", "kept")
    write(house / "repo/MEMORY.md", "root memory")
    write(house / "home/config/AGENTS.md", "mine")
    write(house / "home/config/MEMORY.md", "personal")
    assert [(origin, text) for origin, _, text in listed(found(house, "repo"))] == [
        ("user", "mine"),
        ("memory", "kept"),
        ("memory", "root memory"),
        ("recalled", "personal"),
    ]


def test_a_link_out_of_the_project_is_not_followed(house: Path):
    write(house / "secret.txt", "private")
    os.symlink(house / "secret.txt", house / "repo/AGENTS.md")
    result = found(house, "repo")
    assert listed(result) == []
    assert result.problems == (
        "AGENTS.md was left out: it is a link that leads out of the project.",
    )


def test_a_link_inside_the_project_is_followed(house: Path):
    write(house / "repo/docs/agents.md", "linked")
    os.symlink("docs/agents.md", house / "repo/AGENTS.md")
    assert listed(found(house, "repo")) == [("project", "AGENTS.md", "linked")]


def test_what_is_no_regular_file_is_named_and_not_waited_for(house: Path):
    os.mkfifo(house / "repo/AGENTS.md")
    (house / "repo/MEMORY.md").mkdir()
    result = found(house, "repo")
    assert listed(result) == []
    assert len(result.problems) == 2


def test_odd_bytes_are_read_as_text(house: Path):
    (house / "repo/AGENTS.md").write_bytes(b"\xef\xbb\xbfone\r\ntwo \xff\0 end\n\n")
    assert listed(found(house, "repo")) == [("project", "AGENTS.md", "one\ntwo � end")]


def test_of_a_huge_file_the_beginning_is_read(house: Path):
    write(house / "repo/AGENTS.md", "a" * 5_000_000)
    (source,) = found(house, "repo").sources
    assert source.raw == 5_000_000
    assert len(source.text) == 4_000_000


def test_a_file_brings_those_that_it_names(house: Path):
    write(
        house / "repo/AGENTS.md",
        "See @docs/style.md and @missing.md.\n`@code.md`\n```\n@code.md\n```\n",
    )
    write(house / "repo/code.md", "not this")
    write(house / "repo/docs/style.md", "Short lines. @more.md @../AGENTS.md")
    write(house / "repo/docs/more.md", "And a mail to me@more.md. @../../out.md")
    write(house / "out.md", "outside")
    result = found(house, "repo")
    assert [source.name for source in result.sources] == [
        "AGENTS.md",
        "docs/style.md",
        "docs/more.md",
    ]
    assert {source.origin for source in result.sources} == {"project"}
    (problem,) = result.problems
    assert "out.md was left out: it lies outside the project." in problem


def test_instructions_below_are_found_for_what_was_touched(house: Path):
    write(house / "repo/AGENTS.md", "root")
    write(house / "repo/app/CLAUDE.md", "app")
    write(house / "repo/app/core/AGENTS.md", "core")
    write(house / "repo/other/AGENTS.md", "other")
    workspace = Workspace.at(house / "repo", ceiling=house)
    touched = [house / "repo/app/core/store.py", house / "repo/main.py", house / "elsewhere.py"]
    below = nested(workspace, touched)
    assert [(one.name, one.text) for one in below] == [
        ("app/CLAUDE.md", "app"),
        ("app/core/AGENTS.md", "core"),
    ]
    again = nested_again(workspace, ["AGENTS.md", "app/CLAUDE.md", "MEMORY.md", "/x/AGENTS.md"])
    assert [one.name for one in again] == ["app/CLAUDE.md"]


def test_rules_without_paths_are_instructions_and_bring_files_along(house: Path) -> None:
    write(house / "repo/AGENTS.md", "root")
    write(house / "repo/.claude/rules/style.md", "See @more.md.")
    write(house / "repo/.claude/rules/more.md", "---\nname: x\n---\nMore.")
    write(house / "repo/.holdfast/rules/api.md", "---\npaths: src/**\n---\nOnly there.")
    write(house / "home/config/rules/mine.md", "Mine.")
    mine = ("user", str(house / "home/config/rules/mine.md"), "Mine.")
    rows = listed(found(house, "repo"))
    assert rows[0] == ("project", "AGENTS.md", "root")
    assert mine in rows
    assert ("project", ".claude/rules/style.md", "See @more.md.") in rows
    assert sum(name == ".claude/rules/more.md" for _, name, _ in rows) == 1
    assert not any("Only there." in text for _, _, text in rows)
