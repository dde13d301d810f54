"""Commands from Markdown files: found, read, filled in; what is wrong is named."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tui.settings.user_commands import SHIPPED, ExpandedCommand, UserCommand, find, load


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
    assert commands["review"].expanded("main").text == "Review main now."


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
    assert command.expanded("short").text == prompt


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
    commands, problems = load([tmp_path], reserved=["help"])
    assert list(commands) == ["user:help"]
    assert len(problems) == 4
    assert "help.md: /help is a built-in command; this one is /user:help." in problems


def test_a_workspaces_file_with_a_name_of_the_programs_has_a_long_one(tmp_path: Path):
    write(tmp_path / ".claude/commands/plan.md", "Plan $0")
    write(tmp_path / "mine/plan.md", "mine")
    folders = [tmp_path / ".claude/commands", tmp_path / "mine"]
    commands, _ = load(folders, ["plan"], workspace=tmp_path / ".claude")
    project, mine = commands["project:plan"], find(commands, "user:plan")
    assert project.expanded("it").text == "Plan it"
    assert mine is not None
    assert mine.text == "mine"
    assert find(commands, "plan") is None


COMMIT = """---
allowed-tools: Bash(git add:*), Bash(git status:*), Bash(git commit:*)
argument-hint: [message]
description: Create a git commit
model: haiku
---

## Context

- Status: !`git status`
- Diff against $1: !`git diff $1`
- An example is `foo!`x``.

Commit with the message $ARGUMENTS.
"""


def test_a_command_as_claude_code_has_it(tmp_path: Path):
    write(tmp_path / "commit.md", COMMIT)
    (command,) = load([tmp_path])[0].values()
    assert command.description == "Create a git commit"
    assert command.argument == "[message]"
    assert command.model == "haiku"
    assert command.allowed.rules == (
        "run_command(git add *)",
        "run_command(git status *)",
        "run_command(git commit *)",
    )
    sent = command.expanded("main 'two words'")
    assert sent.runs == ("git status", "git diff main")
    assert sent.text.splitlines() == [
        "## Context",
        "",
        "- Status: `git status` (its output is below)",
        "- Diff against main: `git diff main` (its output is below)",
        "- An example is `foo!`x``.",
        "",
        "Commit with the message main 'two words'.",
    ]


@pytest.mark.parametrize(
    ("text", "arguments", "sent"),
    [
        ("$1 and $2 and $3", "a 'b c'", "a and b c and "),
        ("$1 $1 costs $10, not $0", "a", "a a costs $10, not $0"),
        ("it is $1", "don't stop", "it is don't"),
        ("$ARGUMENTS|$1", "$1 !`rm -rf x` @a", "$1 !`rm -rf x` @a|$1"),
        ("No place.", "x y", "No place.\n\nx y"),
        ("No place.", "", "No place."),
        ("$ARGUMENTSX", "x", "$ARGUMENTSX\n\nx"),
    ],
)
def test_arguments(tmp_path: Path, text: str, arguments: str, sent: str):
    write(tmp_path / "a.md", text)
    assert load([tmp_path])[0]["a"].expanded(arguments) == ExpandedCommand(sent)


def test_only_so_many_commands_are_run(tmp_path: Path):
    write(tmp_path / "a.md", "\n".join(f"!`echo {number}`" for number in range(25)))
    sent = load([tmp_path])[0]["a"].expanded("")
    assert len(sent.runs) == 20
    assert sent.text.endswith("`echo 24` (not run: there are too many)")


def test_folders_are_in_the_long_name(tmp_path: Path):
    mine, brought = tmp_path / "mine", tmp_path / "w" / ".claude" / "commands"
    write(mine / "frontend/test.md", "Mine.")
    write(mine / "git/help.md", "---\ndescription: Help\n---\nWith git.")
    write(brought / "backend/api/test.md", "---\ndescription: Run\n---\nDeep.")
    write(brought / "backend/test.md", "Nearer.")
    write(brought / "speckit.plan.md", "Plan.")
    write(brought / "Fix_Issue-2.md", "Fix.")
    write(brought / "README.md", "About these commands.")
    write(brought / ".git/x.md", "x")
    commands, problems = load([mine, brought], ["help"], workspace=tmp_path / "w")
    assert problems == ()
    assert {name: one.description for name, one in commands.items()} == {
        "Fix_Issue-2": "Fix.",
        "backend:api:test": "Run (project:backend:api)",
        "git:help": "Help (user:git)",
        "speckit.plan": "Plan.",
        "test": "Nearer. (project:backend)",
    }

    def meant(typed: str) -> str:
        command = find(commands, typed)
        return command.text if command else ""

    assert meant("test") == meant("backend:test") == meant("Backend:Test") == "Nearer."
    assert meant("backend:api:test") == "Deep."
    assert meant("fix_issue-2") == "Fix."
    assert meant("frontend:test") == ""
    assert meant("help") == ""


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
        "main" in one.expanded("main").text and "$" not in one.expanded("").text
        for one in shipped.values()
    )
    assert "Never push" in shipped["commit"].text
    write(tmp_path / "review.md", "My review of $ARGUMENTS.")
    mine = load([SHIPPED, tmp_path])[0]
    assert (mine["review"].expanded("x").text, mine["review"].shipped) == ("My review of x.", False)
    assert mine["commit"].shipped
