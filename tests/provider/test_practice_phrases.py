"""The handful of phrases: each works with the real tools, and what is none is answered honestly."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

from tests.provider.practice_world import World
from tui.provider.practice.excerpts import code
from tui.provider.practice.phrases import PHRASES, match_phrase


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


@pytest.mark.parametrize(
    ("prompt", "call"),
    [
        ("list", ("list_dir", {"path": "."})),
        ("List the files.", ("list_dir", {"path": "."})),
        ("list src", ("list_dir", {"path": "src"})),
        ("show me the files", ("list_dir", {"path": "."})),
        ("read README.md", ("read_file", {"path": "README.md"})),
        ("please open the file app.py", ("read_file", {"path": "app.py"})),
        ('read @"with space.txt"', ("read_file", {"path": "with space.txt"})),
        ("can you show @src/x.py?", ("read_file", {"path": "src/x.py"})),
        ("what's in app.py?", ("read_file", {"path": "app.py"})),
        ("read README.md and say what it is about", ("read_file", {"path": "README.md"})),
        ("run the tests", ("run_command", {"command": "pytest -q"})),
        ("run the tests and fix what fails", ("run_command", {"command": "pytest -q"})),
        ("fix the tests", ("run_command", {"command": "pytest -q"})),
        ("run `echo one and two`", ("run_command", {"command": "echo one and two"})),
        ("run seq 1 3", ("run_command", {"command": "seq 1 3"})),
        ("`ls -la`", ("run_command", {"command": "ls -la"})),
        ("find *.py", ("find_by_name", {"pattern": "*.py", "path": "."})),
        ('append "x" to a.txt', ("read_file", {"path": "a.txt"})),
        ("write x to a.txt", ("read_file", {"path": "a.txt"})),
        ("create a.txt with b c", ("write_file", {"path": "a.txt", "content": "b c\n"})),
        ("create a.txt with the text b", ("write_file", {"path": "a.txt", "content": "b\n"})),
    ],
)  # fmt: skip
async def test_a_phrase_is_a_call(world: World, prompt: str, call: tuple[str, dict[str, Any]]):
    world.type(prompt)
    world.refuse = lambda _: "not today"
    await world.step()
    assert world.calls == [call]


async def test_every_example_is_understood_as_the_phrase_that_it_is_of():
    for phrase in PHRASES:
        fits = [other for other in PHRASES if match_phrase(other, phrase.example) is not None]
        assert fits[0] is phrase


async def test_a_file_is_shown_from_its_beginning(world: World):
    world.write("README.md", "# Demo\n\nThe demo project.\n\n## Use\n\n```\n# no heading\n```\n")
    said = await world.ask("read README.md")
    assert said.startswith("I read 9 lines of `README.md`:\n\n````markdown\n# Demo\n")
    assert said.endswith("It contains: Demo, Use.")
    world.write("long.txt", "".join(f"line {n}\n" for n in range(1, 4001)))
    said = await world.ask("read long.txt")
    assert "line 12\n… 1,9" in said
    assert "continue with offset=" in said


async def test_a_repository_is_explained_by_its_files_and_its_readme(world: World):
    world.write("src/a.py", "x = 1\n")
    bare = await world.ask("explain this repository")
    assert "src/" in bare
    assert "no README" in bare
    world.write("README.md", "# Demo\n\n![a picture](a.png)\n\nThe demo\nproject.\n\n## Use\n")
    said = await world.ask("Please describe my project.")
    assert "src/" in said
    assert said.endswith("`README.md` begins:\n\n> The demo project.\n\nIts parts: Use.")


async def test_a_search_regards_no_capitals(world: World):
    world.write("src/a.py", "# TODO one\nx = 1\n")
    world.write("b.py", "# TODO two\n")
    said = await world.ask("search for todo in src")
    assert "a.py:1:" in said
    assert "two" not in said
    assert "No match" in await world.ask("search zebra")
    assert "b.py" in await world.ask("find *.py")


async def test_a_command_is_shown_by_its_end(world: World):
    said = await world.ask("run seq 1 500")
    assert "succeeded" in said
    assert "488 earlier lines\n489\n" in said
    assert "exit code" not in said, "that is a note for the model"
    said = await world.ask("run `echo broken; exit 3`")
    assert "**failed**" in said
    assert "\nbroken\n" in said


async def test_failing_tests_are_shown_and_the_edit_is_asked_for(world: World):
    world.refuse = lambda _: "FAILED test_a.py::test_one\n[exit code 1 · 0.1 s]"
    said = await world.ask("run the tests and fix what fails")
    assert "FAILED test_a.py::test_one" in said
    assert "can't find the fix" in said
    assert "first part" not in said


async def test_a_change_reads_first(world: World):
    world.write("app.py", "one\ntwo\n")
    said = await world.ask("change two to three in app.py")
    assert world.names == ["read_file", "edit_file"]
    assert world.read("app.py") == "one\nthree\n"
    assert said.startswith("Done. Edited app.py")
    assert "```diff\n-two\n+three\n```" in said
    assert "That didn't work" in await world.ask("change zebra to lion in app.py")
    assert "doesn't exist" in await world.ask("change a to b in gone.py")
    assert world.read("app.py") == "one\nthree\n"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("one\n", "one\nmore\n"),
        ("one\none\n", "one\none\nmore\n"),
        ("no newline", "no newline\nmore\n"),
        ("x\n\n\n", "x\n\n\nmore\n"),
        ("", "more\n"),
        (None, "more\n"),
    ],
)
async def test_a_line_is_appended(world: World, before: str | None, after: str):
    if before is not None:
        world.write("notes.txt", before)
    await world.ask('append "more" to notes.txt')
    assert world.read("notes.txt") == after


async def test_a_file_whose_end_is_not_seen_stays_as_it_is(world: World):
    text = "line\n" * 4000
    world.write("long.txt", text)
    assert "too long" in await world.ask('append "more" to long.txt')
    assert world.read("long.txt") == text


async def test_an_existing_file_is_not_replaced(world: World):
    await world.ask('create notes.txt with "hello"')
    assert world.read("notes.txt") == "hello\n"
    world.write("old.txt", "precious\n")
    assert "That didn't work" in await world.ask("create old.txt with new")
    assert world.read("old.txt") == "precious\n"


@pytest.mark.parametrize("prompt", ["hello", "help", "?", "What can you do?", "who are you?"])
async def test_it_says_what_it_is_and_what_it_understands(world: World, prompt: str):
    said = await world.ask(prompt)
    assert said.startswith("I'm the **practice model**")
    assert "`read README.md`" in said
    assert "`/login`" in said
    assert world.calls == []


@pytest.mark.parametrize(
    "prompt",
    ["make me a sandwich", "add a test to utils.py", "the tests fail: find out why", "read"],
)
async def test_what_it_does_not_understand_it_says(world: World, prompt: str):
    said = await world.ask(prompt)
    assert said.startswith(f"I didn't understand `{prompt}`. I'm the **practice model**")
    assert "`read README.md`" in said
    assert world.calls == []


async def test_a_quoted_prompt_brings_no_second_period(world: World):
    said = await world.ask("Make me a sandwich.")
    assert said.startswith("I didn't understand `Make me a sandwich`. I'm")


async def test_what_is_asked_for_beside_the_first_thing_is_not_passed_over(world: World):
    world.write("a.txt", "alpha")
    said = await world.ask("read a.txt and say what it means")
    assert "alpha" in said
    assert "one plain thing at a time" in said
    assert "one plain thing" not in await world.ask("read a.txt")


async def test_only_tools_that_are_given_are_used(world: World):
    world.tools = {name: world.tools[name] for name in ("read_file", "list_dir")}
    assert "`run_command`" in await world.ask("run make")
    said = await world.ask("dance")
    assert "`read README.md`" in said
    assert "create" not in said
    assert world.calls == []


async def test_a_tool_that_fails_is_told_with_its_reason(world: World):
    reasons = {
        "read ../outside.txt": "outside the workspace",
        "list ../": "outside the workspace",
        "search x in gone/": "doesn't exist",
        "create ../x.txt with y": "outside the workspace",
    }
    for prompt, reason in reasons.items():
        assert reason in await world.ask(prompt)


@pytest.mark.parametrize(
    "text", ["change " + "to in " * 4000, "read " + "a, " * 9000, "'a " * 9000, "run a; " * 3000]
)
def test_long_pasted_text_takes_no_time(text: str):
    started = time.process_time()
    for phrase in PHRASES:
        match_phrase(phrase, text[:1999])
        assert match_phrase(phrase, text) is None
    assert time.process_time() - started < 2.0


@pytest.mark.parametrize("text", ["", "a", "a`b", "``", "a``b`c", "two\nlines", "x" * 500])
def test_inline_code_cannot_be_broken_out_of(text: str):
    shown = code(text)
    marks = len(shown) - len(shown.lstrip("`"))
    inner = shown[marks:-marks]
    assert shown.endswith("`" * marks)
    assert "`" * marks not in inner
    assert "\n" not in shown
    assert len(shown) <= 90
