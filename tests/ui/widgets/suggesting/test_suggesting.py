"""What is suggested in the prompt: where, in which order, and from which files."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.clock import FakeClock
from tui.ui.commands.completion_sources import FRESH_S, WorkspaceFiles
from tui.ui.widgets.autocomplete import CompletionQuery, asked, completed, rank


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("/|", CompletionQuery("command", "", 1)),
        ("/mo|", CompletionQuery("command", "mo", 1)),
        ("/mo|del", CompletionQuery("command", "mo", 1)),
        ("/model |", CompletionQuery("argument", "", 7, "model")),
        ("/Model  cl-x y|", CompletionQuery("argument", "cl-x y", 8, "model")),
        ("@|", CompletionQuery("file", "", 1)),
        ("see @src/ma|", CompletionQuery("file", "src/ma", 5)),
        ('see @"my do|', CompletionQuery("file", "my do", 5)),
        ("line\n@x|", CompletionQuery("file", "x", 6)),
        ("me@example|", None),
        ("say /mo|", None),
        ("/usr/lib|", None),
        ("/model a\nb|", None),
        ("@done |", None),
        ("plain|", None),
        ("|", None),
    ],
)
def test_what_is_asked_for(text: str, expected: CompletionQuery | None):
    cursor = text.index("|")
    assert asked(text.replace("|", ""), cursor) == expected


@pytest.mark.parametrize(
    ("text", "choice", "expected"),
    [
        ("/mo|", "model", "/model |"),
        ("see @ma| now", "src/main.py", "see @src/main.py| now"),
        ("@s|", "src/", "@src/|"),
        ("@my|", "my docs/a b.md", '@"my docs/a b.md" |'),
        ('@"my d|', "my docs/a b.md", '@"my docs/a b.md" |'),
        ("@my|", "my docs/", '@"my docs/|'),
        ('@"my docs/b|"', "my docs/a b.md", '@"my docs/a b.md" |'),
        ('@"my docs/b|" x', "my docs/deep er/", '@"my docs/deep er/| x'),
        ("/theme |", "midnight", "/theme midnight |"),
    ],
)
def test_a_choice_takes_the_place_of_the_query(text: str, choice: str, expected: str):
    cursor = text.index("|")
    plain = text.replace("|", "")
    wanted = asked(plain, cursor)
    assert wanted
    after, at = completed(plain, cursor, wanted, choice)
    assert after[:at] + "|" + after[at:] == expected


def test_the_name_goes_before_the_folders():
    paths = ["main/other.py", "src/domain.py", "src/main.py", "src/m/a/i/n.txt", "README.md"]
    assert rank("main", paths) == [
        "src/main.py",
        "src/domain.py",
        "main/other.py",
        "src/m/a/i/n.txt",
    ]


def test_letters_fit_in_their_order_and_capitals_count_when_typed():
    names = ["test_context_meter.py", "context.py", "TCM.md"]
    assert rank("tcm", names)[0] == "TCM.md"
    assert set(rank("tcm", names)) == {"TCM.md", "test_context_meter.py"}
    assert rank("TCM", names) == ["TCM.md"]
    assert rank("", names) == names
    assert rank("zzz", names) == []
    assert rank("a.b*(", ["xa.b*(y"]) == ["xa.b*(y"]


def test_a_search_that_nobody_waits_for_ends():
    assert rank("a", ["a"] * 10, stop=lambda: True) == []


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / ".git").mkdir()
    (tmp_path / ".gitignore").write_text("*.log\n")
    (tmp_path / "src" / "deep").mkdir(parents=True)
    (tmp_path / "node_modules" / "x").mkdir(parents=True)
    for name in ("a.py", "b.log", "src/c.py", "src/deep/d e.py", "node_modules/x/y.js"):
        (tmp_path / name).write_text("")
    return tmp_path


async def test_files_are_listed_as_git_sees_them(root: Path):
    found = await WorkspaceFiles(root, FakeClock()).paths()
    assert found == [".gitignore", "a.py", "src/", "src/c.py", "src/deep/", "src/deep/d e.py"]


@pytest.mark.parametrize(
    ("query", "paths"),
    [
        ("b.l", ["b.log"]),
        ("node", ["node_modules/"]),
        ("node_modules/x/", ["node_modules/x/y.js"]),
        ("a.py", []),
        (".git", []),
        ("../", []),
        ("gone/x", []),
    ],
)
async def test_what_git_ignores_is_found_where_it_is(root: Path, query: str, paths: list[str]):
    files = WorkspaceFiles(root, FakeClock())
    await files.paths()
    assert await files.unlisted(query) == paths


async def test_an_old_listing_is_made_anew_behind(root: Path):
    clock = FakeClock()
    files = WorkspaceFiles(root, clock)
    await files.paths()
    (root / "new.py").write_text("")
    assert "new.py" not in await files.paths()
    clock.elapsed += FRESH_S + 1
    await files.paths()
    assert files._making  # pyright: ignore[reportPrivateUsage]
    await files._making  # pyright: ignore[reportPrivateUsage]
    assert "new.py" in await files.paths()


async def test_a_folder_that_is_gone_has_no_files(tmp_path: Path):
    assert await WorkspaceFiles(tmp_path / "gone", FakeClock()).paths() == []
