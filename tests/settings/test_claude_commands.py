"""Commands below `.claude/` count as Claude Code was seen to count, case by case."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.settings.claude_code.seen import lay_out, prompt_of, seen
from tui.app.commands.own import turn_variables, user_commands
from tui.core.paths import folders
from tui.settings.trust import Trust
from tui.settings.user_commands import UserCommands, find

DIFFERS = {
    "variables": "the effort is not filled in",
    "bang-typed": "arguments are never read for commands, so nothing is escaped",
    "bang-typed-appended": "as above",
    "words 21": "brackets end the words",
    "words 22": "as above",
    "words 29": "an exclamation mark stays as it is",
    "words 30": "a word of the shell's syntax is a word",
    "words 33": "as above",
    "words 39": "as above",
    "words 40": "as above",
    "words 43": "as above",
    "words 54": "a brace is a letter",
    "words 59": "as above",
    "words 73": "arithmetic ends the words",
    "words 75": "an exclamation mark stays as it is",
    "words 76": "as above",
}
"""Cases in which we do something else on purpose."""
_TYPED = [
    name
    for name, row in seen().items()
    if set(row["files"]) == {".claude/commands/tt.md"} and row["typed"].startswith("/tt")
]


@pytest.fixture
def commands(tmp_path: Path) -> UserCommands:
    (tmp_path / "w").mkdir()
    return user_commands(folders(), tmp_path / "w", lambda: Trust(everything=True), frozenset())


def sent_for(commands: UserCommands, name: str) -> str | None:
    """What goes out for what was typed, in the words of the table."""
    row, workspace = seen()[name], commands.workspace
    assert workspace
    lay_out(row, workspace, Path.home())
    commands.load()
    typed, _, arguments = row["typed"].removeprefix("/").partition(" ")
    command = find(commands.commands, typed)
    if command is None:
        return None
    variables = turn_variables(workspace, "<SESSION>")
    return command.expanded(arguments.strip(), variables).text.replace(str(workspace), "<WORK>")


@pytest.mark.parametrize("name", [n for n in _TYPED if "bang" not in n and n not in DIFFERS])
def test_places_are_filled_as_it_was_seen(commands: UserCommands, name: str) -> None:
    theirs = prompt_of(seen()[name])
    ours = sent_for(commands, name)
    assert (ours and ours.strip()) == (theirs and theirs.replace("\n\n\n", "\n\n"))


@pytest.mark.parametrize("name", DIFFERS)
def test_what_differs_is_known(commands: UserCommands, name: str) -> None:
    assert sent_for(commands, name) != prompt_of(seen()[name])


@pytest.mark.parametrize(
    ("name", "runs"),
    [
        ("bang", ("echo hi one", "echo second")),
        ("bang-made-of-parts", ("echo ran",)),
        ("bang-block", ("echo one\necho one",)),
        ("bang-in-code", ("echo no", "echo in fence")),
        ("bang-lines", ("echo one\necho two",)),
        ("bang-typed", ()),
        ("bang-typed-appended", ()),
    ],
)
def test_the_same_commands_are_run(
    commands: UserCommands, name: str, runs: tuple[str, ...]
) -> None:
    row = seen()[name]
    sent_for(commands, name)
    command = commands.commands["tt"]
    ours = command.expanded(row["typed"].removeprefix("/tt").strip()).runs
    assert ours == runs
    said = prompt_of(row) or ""
    assert all(word in said for run in runs for word in re.findall(r"echo (\w+)", run))


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("clash-user-project", "User's."),
        ("in-folder", "Sub x."),
        ("in-folder-deep", "Sub x."),
    ],
)
def test_names(commands: UserCommands, name: str, text: str) -> None:
    assert sent_for(commands, name) == prompt_of(seen()[name]) == text


@pytest.mark.parametrize("name", ["clash-command-skill", "clash-user-skill-project-command"])
def test_a_skill_goes_before_a_command(commands: UserCommands, name: str) -> None:
    ours, theirs = sent_for(commands, name), prompt_of(seen()[name])
    assert ours
    assert ours.startswith("Use the skill tt (")
    assert theirs
    assert theirs.startswith("Base directory for this skill: ")


def test_a_command_for_the_model_alone_is_named(commands: UserCommands) -> None:
    assert sent_for(commands, "not-for-user") is None
    assert seen()["not-for-user"]["out"].startswith("This skill can only be invoked by Claude")
    assert commands.problems == (
        "tt.md: it is only for the model (user-invocable: false), which uses only skills.",
    )


def test_when_to_use_belongs_to_the_description(commands: UserCommands) -> None:
    sent_for(commands, "when-to-use")
    assert commands.commands["tt"].description == "d - when it rains"


def test_a_fork_is_left_to_a_sub_agent(commands: UserCommands) -> None:
    workspace = commands.workspace
    assert workspace
    folder = workspace / ".claude/commands"
    folder.mkdir(parents=True)
    (folder / "tt.md").write_text("---\ncontext: fork\nagent: Explore\n---\nFind $0.\n")
    commands.load()
    text = commands.commands["tt"].expanded("it").text
    assert "one sub-agent do this (`task`, agent 'Explore')" in text
    assert text.endswith("\n\nFind it.")


def test_our_own_folders_count_from_one(commands: UserCommands) -> None:
    workspace = commands.workspace
    assert workspace
    folder = workspace / ".holdfast/commands"
    folder.mkdir(parents=True)
    (folder / "tt.md").write_text("$0 $1 $2 $ARGUMENTS[0]")
    commands.load()
    assert commands.commands["tt"].expanded("a b").text == "$0 a b a b[0]"


def test_what_does_nothing_here_is_named(commands: UserCommands) -> None:
    workspace = commands.workspace
    assert workspace
    folder = workspace / ".claude/commands"
    folder.mkdir(parents=True)
    (folder / "tt.md").write_text("---\nhooks:\n  Stop: []\neffort: low\n---\nDo it.\n")
    commands.load()
    assert commands.commands["tt"].left == ("hooks", "effort")
