"""Commands from Markdown files: found, read, filled in; what is wrong is named."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tui.settings.user_commands import SHIPPED, UserCommand, load


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def test_a_command_is_a_markdown_file(tmp_path: Path):
    write(
        tmp_path / "review.md",
        "---\ndescription: Review a change\nargument: '[BRANCH]'\n---\n\nReview $ARGUMENTS now.\n",
    )
    commands, problems = load([tmp_path])
    assert problems == ()
    assert commands == {
        "review": UserCommand(
            "review",
            "Review a change",
            "[BRANCH]",
            "Review $ARGUMENTS now.",
            tmp_path / "review.md",
        )
    }
    assert commands["review"].prompt("main") == "Review main now."


@pytest.mark.parametrize(
    ("text", "description", "prompt"),
    [
        ("# Write notes\n\nWrite them.", "Write notes", "# Write notes\n\nWrite them.\n\nshort"),
        ("\ufeffOne line\r\nand more\r\n", "One line", "One line\nand more\n\nshort"),
        ("---\nno end", "---", "---\nno end\n\nshort"),
        ("", "", "\n\nshort"),
    ],
)
def test_without_front_matter(tmp_path: Path, text: str, description: str, prompt: str):
    write(tmp_path / "notes.md", text)
    command = load([tmp_path])[0]["notes"]
    assert command.description == description
    assert command.prompt("short") == prompt


def test_a_later_folder_goes_first(tmp_path: Path):
    write(tmp_path / "own/a.md", "own a")
    write(tmp_path / "own/b.md", "own b")
    write(tmp_path / "project/b.md", "project b")
    commands, _ = load([tmp_path / "own", tmp_path / "project", tmp_path / "missing"])
    assert [(c.name, c.text) for c in commands.values()] == [("a", "own a"), ("b", "project b")]


def test_what_is_no_command_is_named(tmp_path: Path):
    write(tmp_path / "Bad Name.md", "x")
    write(tmp_path / "help.md", "x")
    write(tmp_path / "huge.md", "x" * 300_000)
    os.mkfifo(tmp_path / "pipe.md")
    (tmp_path / "folder.md").mkdir()
    commands, problems = load([tmp_path], reserved=["help"])
    assert commands == {}
    assert len(problems) == 5
    assert "help.md: /help is a built-in command." in problems


def test_three_come_with_the_program_and_can_be_replaced(tmp_path: Path):
    shipped, problems = load([SHIPPED])
    assert problems == ()
    assert {name: one.argument for name, one in shipped.items()} == {
        "commit": "[WORDS]",
        "pr": "[WORDS]",
        "review": "[BRANCH|PATH]",
    }
    assert all(one.shipped and one.description for one in shipped.values())
    assert all(
        "main" in one.prompt("main") and "$" not in one.prompt("") for one in shipped.values()
    )
    assert "Never push" in shipped["commit"].text
    write(tmp_path / "review.md", "My review of $ARGUMENTS.")
    mine = load([SHIPPED, tmp_path])[0]
    assert (mine["review"].prompt("x"), mine["review"].shipped) == ("My review of x.", False)
    assert mine["commit"].shipped
