"""The practice model works with the real tools, in several steps, and reads what they say."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from tests.provider.practice_world import World

APP = "import os\n\n\ndef greet(name):\n    return 'hello ' + name\n\n\nclass Greeter:\n    pass\n"


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


async def test_reading_shows_the_start_and_what_it_holds(world: World):
    world.write("README.md", "# Demo\n\nThe demo project.\n\n## Use\n\n```\n# no heading\n```\n")
    world.write("app.py", APP)
    said = await world.ask("read README.md")
    assert world.calls == [("read_file", {"path": "README.md"})]
    assert "The demo project." in said
    assert "Demo, Use" in said
    assert "````markdown" in said  # a fence inside the excerpt does not end it
    said = await world.ask("read app.py")
    assert "`greet`()" in said
    assert "`Greeter`" in said
    assert "9 lines" in said


async def test_several_files_are_read_side_by_side(world: World):
    world.write("a.txt", "alpha")
    world.write("b.txt", "beta")
    world.type("read a.txt and b.txt")
    first = await world.step()
    assert [b["input"] for b in first.content if b["type"] == "tool_use"] == [
        {"path": "a.txt"},
        {"path": "b.txt"},
    ]
    said = await world.go_on()
    assert "alpha" in said
    assert "beta" in said


async def test_a_long_file_is_read_on_from_where_it_says(world: World):
    world.write("long.txt", "".join(f"line {n}\n" for n in range(1, 4001)))
    said = await world.ask("read long.txt")
    follow = next(part for part in said.split("`") if part.startswith("read long.txt from line "))
    first = int(follow.rsplit(" ", 1)[1])
    assert 1000 < first <= 2001
    said = await world.ask(follow)
    assert world.calls[-1] == ("read_file", {"path": "long.txt", "offset": first})
    assert f"line {first}\n" in said


async def test_a_range_of_lines(world: World):
    world.write("long.txt", "".join(f"line {n}\n" for n in range(1, 50)))
    said = await world.ask("read long.txt lines 10-12")
    assert world.calls == [("read_file", {"path": "long.txt", "offset": 10, "limit": 3})]
    assert "line 10\nline 11\nline 12\n" in said
    assert "from line 10" in said


async def test_a_missing_file_lists_the_folder_once(world: World):
    world.write("src/real.py", "x = 1\n")
    said = await world.ask("read src/reel.py")
    assert world.names == ["read_file", "list_dir"]
    assert "real.py" in said
    said = await world.ask("read nowhere/x.py")
    assert world.names[2:] == ["read_file", "list_dir"]
    assert "src/" in said


async def test_a_folder_is_listed_instead_of_read(world: World):
    world.write("src/real.py", "x = 1\n")
    said = await world.ask("read src")
    assert world.names == ["read_file", "list_dir"]
    assert "real.py" in said


async def test_a_file_that_is_no_text(world: World):
    (world.root / "blob.bin").write_bytes(bytes(range(256)) * 10)
    (world.root / "empty.txt").write_bytes(b"")
    assert "binary" in await world.ask("read blob.bin")
    assert "empty" in await world.ask("read empty.txt")


async def test_searching_lists_the_hits(world: World):
    world.write("a.py", "# TODO one\nx = 1\n# TODO two\n")
    world.write("sub/b.py", "# TODO three\n")
    said = await world.ask("search TODO")
    assert world.names == ["grep_search"]
    assert world.calls[0][1]["literal"] is True
    assert "3 matches in 2 files" in said
    assert "a.py:1" in said


async def test_searching_without_a_hit_tries_once_more_in_any_case(world: World):
    world.write("a.py", "# TODO one\n")
    assert "1 match in 1 file" in await world.ask("search todo")
    assert [c[1].get("case_insensitive") for c in world.calls] == [None, True]
    assert "nowhere" in await world.ask("search zebra")
    assert "nowhere" in await world.ask("search 12345")
    assert world.names == ["grep_search"] * 5


async def test_finding_and_listing(world: World):
    world.write("a.py", "")
    world.write("sub/b.py", "")
    said = await world.ask("find *.py")
    assert "I found 2" in said
    assert "sub/b.py" in said
    assert "no file named `*.rs`" in await world.ask("find *.rs")
    said = await world.ask("list")
    assert "`sub/`" in said
    assert "1 folder, 1 other" in said


async def test_running_a_command_tells_how_it_ended(world: World):
    said = await world.ask("run echo one; echo two")
    assert "succeeded" in said
    assert "one\ntwo" in said
    said = await world.ask("run `echo broken; exit 3`")
    assert "**failed** (exit code 3" in said
    assert "broken" in said
    assert "printed nothing" in await world.ask("run true")


async def test_long_output_is_shown_by_its_end(world: World):
    said = await world.ask("run seq 1 500")
    assert "500\n" in said
    assert "earlier lines" in said
    assert "\n100\n" not in said


async def test_a_background_command_is_started_looked_at_and_stopped(world: World):
    said = await world.ask("run `echo up` in the background")
    assert "**job-1**" in said
    assert "up\n" in await world.ask("wait for job 1")
    assert "**job-2**" in await world.ask("run sleep 60 in the background")
    assert "job-2" in await world.ask("stop job-2")
    assert world.calls[-1] == ("command_status", {"job": "job-2", "action": "stop"})
    assert not [job for job in world.jobs.list() if not job.ended]
    await world.jobs.close()


async def test_creating_then_reading_in_one_prompt(world: World):
    said = await world.ask("create notes.txt with hello and then read notes.txt")
    assert world.read("notes.txt") == "hello\n"
    assert world.names == ["write_file", "read_file"]
    assert "hello" in said


async def test_an_existing_file_is_not_replaced_unless_the_wording_allows(world: World):
    world.write("notes.txt", "precious\n")
    said = await world.ask("create notes.txt with new")
    assert world.read("notes.txt") == "precious\n"
    assert "there already" in said
    said = await world.ask("overwrite notes.txt with new")
    assert world.read("notes.txt") == "new\n"
    assert world.names == ["write_file", "write_file", "read_file", "write_file"]


async def test_changing_reads_first_then_edits_then_says_what_changed(world: World):
    world.write("app.py", APP)
    said = await world.ask("change hello to goodbye in app.py")
    assert world.names == ["read_file", "edit_file"]
    assert world.read("app.py") == APP.replace("hello", "goodbye")
    assert "-    return 'hello ' + name\n+    return 'goodbye ' + name" in said


async def test_changing_what_stands_there_several_times_asks_or_does_all(world: World):
    world.write("app.py", "one\ntwo one\n")
    said = await world.ask("change one to three in app.py")
    assert world.names == ["read_file"]
    assert "2 times" in said
    assert "lines 1 and 2" in said
    await world.ask("change one to three in app.py everywhere")
    assert world.read("app.py") == "three\ntwo three\n"


async def test_changing_what_is_not_there_changes_nothing(world: World):
    world.write("app.py", "Hello\n")
    said = await world.ask("change hello to bye in app.py")
    assert world.names == ["read_file"]
    assert "line 1" in said
    assert "is not in" in await world.ask("change zebra to lion in app.py")
    assert "app.py" in await world.ask("change a to b in gone.py")
    assert world.names == ["read_file"] * 3 + ["list_dir"]
    assert world.read("app.py") == "Hello\n"


async def test_a_file_that_changed_meanwhile_is_read_again(world: World):
    file = world.write("app.py", "alpha beta\n")
    world.type("change alpha to gamma in app.py")
    await world.step()
    file.write_text("# new\nalpha beta\n")
    await world.go_on()
    assert world.names == ["read_file", "edit_file", "read_file", "edit_file"]
    assert world.read("app.py") == "# new\ngamma beta\n"


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
async def test_appending(world: World, before: str | None, after: str):
    if before is not None:
        world.write("notes.txt", before)
    await world.ask('append "more" to notes.txt')
    assert world.read("notes.txt") == after


async def test_a_plan_is_noted_and_ticked_off(world: World):
    said = await world.ask("plan: read, test, ship")
    assert "1. read\n2. test\n3. ship" in said
    said = await world.ask("mark 2 done")
    assert "`test` is completed" in said
    assert world.calls[-1][1]["todos"][1] == {"text": "test", "status": "completed"}
    assert "no item 9" in await world.ask("mark 9 done")


async def test_failing_tests_are_found_and_shown(world: World, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}:/usr/bin:/bin")
    world.write("test_sum.py", "def test_sum():\n    assert 1 + 1 == 3\n")
    world.write("pytest.ini", "[pytest]\naddopts = -p no:cacheprovider\n")
    said = await world.ask("fix the failing test")
    assert world.names == ["run_command", "read_file"]
    assert world.calls[1][1]["path"] == "test_sum.py"
    assert "`test_sum.py` `test_sum`" in said
    assert "assert (1 + 1) == 3" in said
    assert "real model" in said
    world.write("test_sum.py", "def test_sum():\n    assert 1 + 1 == 2\n")
    assert "Nothing to fix" in await world.ask("fix the tests")


async def test_what_it_does_not_understand_it_says_with_examples_that_fit(world: World):
    world.write("README.md", "x")
    world.write("src/a.py", "x")
    world.write("pyproject.toml", "")
    said = await world.ask("make me a sandwich")
    assert "`make me a sandwich`" in said
    assert "`read README.md`" in said
    assert "`list src`" in said
    assert "`run pytest -q`" in said


@pytest.mark.parametrize("text", ["hello", "help", "who are you?"])
async def test_it_says_what_it_is(world: World, text: str):
    said = await world.ask(text)
    assert "practice model" in said
    assert "rules" in said
    assert world.calls == []


async def test_only_tools_that_are_given_are_used(world: World):
    world.tools = {name: world.tools[name] for name in ("read_file", "list_dir")}
    world.write("a.txt", "alpha")
    said = await world.ask("run make and then create b.txt with x and then read a.txt")
    assert "`run_command`" in world.said
    assert "`write_file`" in world.said
    assert world.names == ["read_file"]
    assert "alpha" in said
    world.tools = {}
    assert "did not understand" in await world.ask("dance")
    assert "`read README.md`" not in await world.ask("help")


async def test_a_tool_that_fails_is_told_with_its_reason(world: World):
    reasons: dict[str, Any] = {
        "read ../outside.txt": "outside the workspace",
        "list ../": "outside the workspace",
        "search x in gone/": "does not exist",
        "create ../x.txt with y": "outside the workspace",
        "stop job-7": "no background command",
    }
    for prompt, reason in reasons.items():
        assert reason in await world.ask(prompt)
