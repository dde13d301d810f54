"""What a search did not look at is named, and a text with a NUL is a text; with ripgrep and its
stand-in."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.support.call_host import FakeHost
from tests.tools.folder import Folder
from tui.tools import grep_search, search, search_scope
from tui.tools.base import Answer
from tui.tools.find_by_name import FindByName
from tui.tools.grep_search import GrepSearch

grep, find = GrepSearch(), FindByName()


@pytest.fixture(params=["ripgrep", "stand-in"], autouse=True)
def program(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param == "stand-in":
        monkeypatch.setattr(search, "ripgrep", lambda: None)


def git(folder: Folder, *words: str) -> None:
    subprocess.run(["git", "-C", str(folder.root), *words], check=True, capture_output=True)


async def test_a_late_nul_hides_nothing(folder: Folder) -> None:
    lines = ["TODO first", *["line"] * 40_000, "TODO middle", "\0", "TODO last"]
    folder.write("late.txt", "\n".join(lines))
    folder.write("a.txt", "TODO\n")
    folder.write("only.txt", "\n".join(lines[1:-3] + lines[-2:]))
    assert (await folder.text(grep, pattern="TODO")).splitlines() == [
        "a.txt:1:TODO",
        "late.txt:1:TODO first",
        "late.txt:40002:TODO middle",
        "late.txt:40004:TODO last",
        "only.txt:40002:TODO last",
    ]
    output = await folder.call(grep, pattern="TODO last")
    assert output.summary == "2 matches in 2 files"
    some = await folder.text(grep, pattern="TODO", max_results=2)
    assert some.splitlines()[:2] == ["a.txt:1:TODO", "late.txt:1:TODO first"]
    assert "there are more" in some


async def test_binary_files_that_take_too_long_are_not_read_to_their_end(
    folder: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder.write("a.txt", "TODO\n")
    folder.write("late.txt", "\n".join([*["line"] * 40_000, "\0", "TODO last"]))
    patient = GrepSearch()
    assert "late.txt:40002:TODO last" in await folder.text(patient, pattern="TODO")
    monkeypatch.setattr(grep_search, "_PATIENCE_S", 0.0)
    hasty = GrepSearch()
    for _ in range(2):
        assert await folder.text(hasty, pattern="TODO") == (
            "a.txt:1:TODO\n[binary files are large here: read up to their first NUL only]"
        )
    named = await folder.text(hasty, pattern="TODO", path="late.txt")
    assert named == "late.txt:40002:TODO last"


async def test_binary_files_that_match_are_counted(folder: Folder) -> None:
    for name in "abcde":
        folder.write(f"{name}.bin", b"\0\1TODO\n")
    folder.write("late.pdf", b"%PDF-1.4 \xff" + b"x\n" * 9000 + b"\0\nTODO\n")
    folder.write("other.bin", b"\0nothing\n")
    assert await folder.text(grep, pattern="TODO") == (
        "No match for 'TODO'.\n[left out: 6 binary files with a match (a.bin, b.bin, c.bin and 3 "
        "more). Name one as path to look there]"
    )


async def test_a_denied_binary_file_is_not_named(folder: Folder) -> None:
    folder.write("secret.bin", b"\0TODO\n")

    class Denying(FakeHost):
        def reading(self, path: Path) -> Answer:
            return "deny" if "secret" in path.name else "allow"

    folder.changes["host"] = Denying()
    text = await folder.text(grep, pattern="TODO")
    assert "secret" not in text
    assert "[1 path left out: a rule denies reading it]" in text


async def test_what_git_tracks_in_folders_that_are_left_out(folder: Folder) -> None:
    git(folder, "init", "-q")
    for name in ("dist/a.js", "dist/deep/b.js", "web/build/c.js", "src/d.py", "distant/e.js"):
        folder.write(name, "TODO\n")
    folder.write(".holdfast/boot.md", "TODO\n")
    git(folder, "add", "-A", "-f")
    folder.write("node_modules/not/tracked.js", "TODO\n")
    note = (
        "[left out: 3 files that git tracks in dist/, web/build/. Name one as path to look there]"
    )
    assert (
        await folder.text(grep, pattern="TODO") == f"distant/e.js:1:TODO\nsrc/d.py:1:TODO\n{note}"
    )
    assert "2 files" not in await folder.text(grep, pattern="TODO", path="src")
    text = await folder.text(find, pattern="*.js")
    assert text == f"distant/e.js\n{note}"
    assert await folder.text(find, pattern="*.py") == "src/d.py"
    inner = await folder.text(grep, pattern="TODO", path="web")
    assert "1 file that git tracks in web/build/." in inner
    assert await folder.text(grep, pattern="TODO", path="dist") == (
        "dist/a.js:1:TODO\ndist/deep/b.js:1:TODO"
    )


async def test_ignored_files_are_named_where_nothing_was_found(folder: Folder) -> None:
    git(folder, "init", "-q")
    folder.write("src/a.py", "word\n")
    assert await folder.text(grep, pattern="TODO") == "No match for 'TODO'."
    folder.write(".gitignore", "*.log\n")
    folder.write("out.log", "TODO\n")
    note = "[left out: files that git ignores. Name one as path to look there]"
    assert await folder.text(grep, pattern="TODO") == f"No match for 'TODO'.\n{note}"
    assert await folder.text(grep, pattern="TODO", path="src") == (
        f"No match for 'TODO' in src.\n{note}"
    )
    assert await folder.text(grep, pattern="word") == "src/a.py:1:word"
    assert await folder.text(find, pattern="*.txt") == f"Nothing matches '*.txt'.\n{note}"
    assert await folder.text(find, pattern="*.py") == "src/a.py"


async def test_git_is_only_asked_if_its_index_may_name_such_a_file(
    folder: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[object] = []

    def answer(*words: object, **_: object) -> str:
        asked.append(words)
        return "dist/a.js\0"

    monkeypatch.setattr(search_scope, "answer", answer)
    git(folder, "init", "-q")
    folder.write("src/a.py", "word\n")
    git(folder, "add", "-A")
    assert await folder.text(grep, pattern="word") == "src/a.py:1:word"
    assert not asked
    folder.write("dist/a.js", "")
    git(folder, "add", "-A", "-f")
    assert "git tracks in dist/" in await folder.text(grep, pattern="word")
    assert "git tracks in dist/" in await folder.text(grep, pattern="word")
    assert len(asked) == 1


async def test_a_worktree_has_an_index_of_its_own(folder: Folder) -> None:
    git(folder, "init", "-q")
    folder.write("dist/a.js", "x")
    git(folder, "add", "-A", "-f")
    git(folder, "-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "x")
    git(folder, "worktree", "add", "-q", "tree")
    inner = Folder(folder.root / "tree")
    assert "1 file that git tracks in dist/" in await inner.text(grep, pattern="x")
