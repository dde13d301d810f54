"""Plain English becomes steps."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tui.provider.practice.steps import (
    Append,
    Change,
    Create,
    Find,
    FixTests,
    Job,
    ListFolder,
    Mark,
    Plan,
    Read,
    Run,
    Search,
    Step,
    Talk,
    Think,
    Unknown,
    code,
    describe,
)
from tui.provider.practice.understand import MAX_STEPS, understand


@pytest.mark.parametrize(
    ("text", "step"),
    [
        ("read README.md", Read(("README.md",))),
        ("Read the file README.md, please.", Read(("README.md",))),
        ("please read `my file.txt`", Read(("my file.txt",))),
        ("could you show me @src/app.py?", Read(("src/app.py",))),
        ("cat Makefile", Read(("Makefile",))),
        ("open notes", Read(("notes",))),
        ("read a.py, b.py and src/c.py", Read(("a.py", "b.py", "src/c.py"))),
        ("read app.py lines 10-20", Read(("app.py",), 10, 20)),
        ("read app.py from line 2001", Read(("app.py",), 2001)),
        ("what's in pyproject.toml?", Read(("pyproject.toml",))),
        ("@README.md", Read(("README.md",))),
        ("search TODO", Search("TODO")),
        ("search for the text TODO in src", Search("TODO", "src")),
        ('grep "hello world" in "my folder"', Search("hello world", "my folder")),
        (r"search /def \w+/ in tui", Search(r"def \w+", "tui", regex=True)),
        ("look for cats in the project", Search("cats")),
        ("where is parse_config defined?", Search("parse_config")),
        ("find TODO in src", Search("TODO", "src")),
        ("find *.py", Find("*.py")),
        ("find files named conf in src", Find("*conf*", "src")),
        ("find config.py", Find("config.py")),
        ("find all python files", Find("*.py")),
        ("find .toml files", Find("*.toml")),
        ("list", ListFolder()),
        ("ls", ListFolder()),
        ("list the files in src", ListFolder("src")),
        ("what files are there?", ListFolder()),
        ("show me all files", ListFolder()),
        ("list *.md", Find("*.md")),
        ("run pytest -q", Run("pytest -q")),
        ("run `ls -la | head`.", Run("ls -la | head")),
        ('execute the command "git log"', Run("git log")),
        ("run ruff check .", Run("ruff check .")),
        ("run the tests", Run("pytest -q")),
        ("run sleep 30 in the background", Run("sleep 30", background=True)),
        ("start `npm run dev` in the background", Run("npm run dev", background=True)),
        ("git status", Run("git status")),
        ("ls -la", Run("ls -la")),
        ("run:\n```sh\nmake all\n```", Run("make all")),
        ("check job-1", Job("job-1", "read")),
        ("wait for job 2", Job("job-2", "wait")),
        ("stop the background job job-3", Job("job-3", "stop")),
        ("list jobs", Job("", "read")),
        ("create notes.txt with hello world", Create("notes.txt", "hello world\n")),
        ('create a file called a.txt with the text "x\\ny"', Create("a.txt", "x\ny\n")),
        ("create list.txt with milk and eggs", Create("list.txt", "milk and eggs\n")),
        ("create x.txt with go and read a book", Create("x.txt", "go and read a book\n")),
        ("create notes.txt: hello", Create("notes.txt", "hello\n")),
        ("make a new file empty.md", Create("empty.md", "")),
        ("create a file notes with hi", Create("notes", "hi\n")),
        ("write hello to notes.txt", Create("notes.txt", "hello\n", overwrite=True)),
        ("overwrite a.txt with b", Create("a.txt", "b\n", overwrite=True)),
        ("create a.txt with:\none\n\nand read x.py", Create("a.txt", "one\n\nand read x.py\n")),
        ("create a.py:\n```python\nx = 1\n```", Create("a.py", "x = 1\n")),
        ("change foo to bar in f.py", Change("foo", "bar", "f.py")),
        ("change 'a to b' to \"c\" in f.py", Change("a to b", "c", "f.py")),
        ("replace all foo with bar in src/f.py", Change("foo", "bar", "src/f.py", everywhere=True)),
        ("change `x` to `y` in f.py everywhere", Change("x", "y", "f.py", everywhere=True)),
        ("in f.py, change A to B.", Change("A", "B", "f.py")),
        ('remove "debug" from f.py', Change("debug", "", "f.py")),
        ('append "last" to notes.txt', Append("last", "notes.txt")),
        ("add the line x = 1 to the end of a.py", Append("x = 1", "a.py")),
        ("plan: read it, test it; ship it", Plan(("read it", "test it", "ship it"))),
        ("todo:\n- one\n2. two", Plan(("one", "two"))),
        ("mark 2 done", Mark(2, "completed")),
        ("mark step 1 as in progress", Mark(1, "in_progress")),
        ("fix the failing test", FixTests()),
        ("run the tests and fix what fails", FixTests()),
        ("read README.md and say what this project is about", Read(("README.md",))),
        ("what is this project about?", Read(("README.md",))),
        ("explain this repository", Read(("README.md",))),
        ("why do the tests fail?", FixTests()),
        ("think about the sea", Think("the sea")),
        ("Hello!", Talk("hello")),
        ("?", Talk("help")),
        ("What can you do?", Talk("help")),
        ("who are you?", Talk("who")),
        ("thanks", Talk("thanks")),
        ("never mind", Talk("stop")),
        ("make me a sandwich", Unknown("make me a sandwich")),
        ("rename a.py to b.py", Unknown("rename a.py to b.py")),
        ("write me a poem about the sea", Unknown("write me a poem about the sea")),
    ],
)  # fmt: skip
def test_one_request(text: str, step: Step):
    assert understand(text) == (step,)


@pytest.mark.parametrize(
    ("text", "steps"),
    [
        ("read a.py and then run pytest -q", (Read(("a.py",)), Run("pytest -q"))),
        ("read a.py then list; find *.md", (Read(("a.py",)), ListFolder(), Find("*.md"))),
        ("read a.py\nread b.py\n", (Read(("a.py",)), Read(("b.py",)))),
        ("- list\n- run make", (ListFolder(), Run("make"))),
        ("1. read a.py\n2. run make", (Read(("a.py",)), Run("make"))),
        ("change A to B in f.py. Then run pytest.", (Change("A", "B", "f.py"), Run("pytest"))),
        ("search for def main and read tui/cli.py", (Search("def main"), Read(("tui/cli.py",)))),
        ("Hello! read README.md", (Read(("README.md",)),)),
        ("run `a; b and then read x`, then list", (Run("a; b and then read x"), ListFolder())),
        ("run cd src; ls", (Run("cd src; ls"),)),
        ("run pytest -q; read a.py", (Run("pytest -q"), Read(("a.py",)))),
        ("refactor everything; then run tests", (Unknown("refactor everything"), Run("pytest -q"))),
        ("plan: a, b\nlist", (Plan(("a", "b")), ListFolder())),
        ("create f.txt ```\nabc\n``` and then list", (Create("f.txt", "abc\n"), ListFolder())),
        ('create a.txt with "x" and then read a.txt', (Create("a.txt", "x\n"), Read(("a.txt",)))),
    ],
)  # fmt: skip
def test_several_requests_in_one_prompt(text: str, steps: tuple[Step, ...]):
    assert understand(text) == steps


def test_an_empty_prompt_asks_for_nothing():
    assert understand(" \n ") == ()


WORDS = (
    st.sampled_from(
        ["read", "change", "create", "run", "plan:", "search", "job", "everywhere", "all"]
    )
    | st.sampled_from(["a.py", "and", "then", "to", "in", "with", "the", "file", ".", ";", "\n"])
    | st.sampled_from(["`x`", '"', "'", "```", "é", "\ud800"])
)


@given(st.lists(WORDS, max_size=60).map(" ".join) | st.text(max_size=400))
def test_nothing_typed_breaks_it(text: str):
    steps = understand(text)
    assert len(steps) <= MAX_STEPS
    assert bool(steps) == bool(text.strip())
    for step in steps:
        assert describe(step)
        assert "\n" not in describe(step)


@pytest.mark.parametrize(
    "text",
    [
        "change " + "to in " * 4000,
        "read " + "a, " * 9000,
        "in a change b to " * 2000,
        "create " + "with " * 6000,
        "'a " * 9000,
        "word and, then. bar; x\n" * 2000,
        "run a; " * 3000,
    ],
)
def test_long_pasted_text_takes_no_time(text: str):
    started = time.process_time()
    assert understand(text)
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
