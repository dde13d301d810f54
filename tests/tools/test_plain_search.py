"""grep_search and find_by_name where there is no ripgrep."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.tools.folder import Folder
from tests.tools.test_search import EXCLUDED, find, grep, make_repository
from tui.tools import plain_search, search


@pytest.fixture(autouse=True)
def no_ripgrep(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(search, "ripgrep", lambda: None)


async def test_L23_the_same_folders_are_left_out(folder: Folder) -> None:
    for name in EXCLUDED:
        folder.write(f"src/{name}/in.py", "TODO\n")
    folder.write("src/a.py", "one\ntwo TODO here\n")
    assert await folder.text(grep, pattern="TODO") == "src/a.py:2:two TODO here"
    assert await folder.text(find, pattern="*.py") == "src/a.py"
    assert await folder.text(grep, pattern="TODO", path="src/dist") == "src/dist/in.py:1:TODO"


async def test_ignore_files_count_in_a_repository(folder: Folder) -> None:
    folder.write(".gitignore", "*.log\n/gen/\n!keep.log\na/**/z\n# x\n")
    for name in ("x.log", "keep.log", "gen/a", "sub/gen/a", "a/b/z/f", "a.py"):
        folder.write(name, "here\n")
    assert len((await folder.text(grep, pattern="here")).splitlines()) == 6
    make_repository(folder)
    folder.write("sub/.gitignore", "gen\n")
    found = await folder.text(grep, pattern="here")
    assert [line.partition(":")[0] for line in found.splitlines()] == ["a.py", "keep.log"]
    assert "gen" in await folder.text(grep, pattern="here", path="gen/a")


@pytest.mark.parametrize(
    ("glob", "found"),
    [
        ("*.py", ["a.py", "src/b.py"]),
        ("src/**/*.{py,ts}", ["src/b.py", "src/c/d.ts"]),
        ("!*.py", ["src/c/d.ts"]),
        ("[a-b].py", ["a.py", "src/b.py"]),
    ],
)
async def test_globs(folder: Folder, glob: str, found: list[str]) -> None:
    for name in ("a.py", "src/b.py", "src/c/d.ts"):
        folder.write(name, "x\n")
    text = await folder.text(grep, pattern="x", glob=glob)
    assert [line.partition(":")[0] for line in text.splitlines()] == found


async def test_lines_around_a_match_long_ones_and_wide_characters(folder: Folder) -> None:
    folder.write("a", "1\n2\n3 x\n4\n5\n" + "y" * 600 + "z\n")
    folder.write("wide", "\ufeffacht x\n".encode("utf-16-le"))
    folder.write("binary", b"x\n\0x\n")
    lines = (await folder.text(grep, pattern="x", context=1)).splitlines()
    assert lines[:-1] == ["a-2-2", "a:3:3 x", "a-4-4", "--", "wide:1:acht x"]
    assert lines[-1].startswith("[left out: 1 binary file with a match (binary).")
    long = await folder.text(grep, pattern="z", path="a")
    assert long == f"a:6:{'y' * 500} [... omitted end of long line]"
    assert await folder.text(grep, pattern="-4", literal=True) == "No match for '-4'."


async def test_a_broken_expression_is_explained(folder: Folder) -> None:
    folder.write("a", "x\n")
    assert "regex parse error (ripgrep isn't installed)" in await folder.error(grep, pattern="(x")


@pytest.mark.slow
async def test_an_expression_that_takes_for_ever_is_given_up(
    folder: Folder, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    code = Path(plain_search.__file__).read_text().replace("_SECONDS: Final = 60", "_SECONDS = 1")
    (tmp_path / "quick.py").write_text(code)
    path = f"import sys; sys.path[:0] = [sys.argv.pop(1), {str(tmp_path)!r}]"
    monkeypatch.setattr(search, "_OWN", f"{path}; import quick; quick.main()")
    folder.write("a", "a" * 40 + "b\n")
    assert "took longer than 1 s" in await folder.error(grep, pattern="(a+)+$")


async def test_links_are_not_followed(folder: Folder, tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out/secret").write_text("x\n")
    (folder.root / "link").symlink_to(tmp_path / "out")
    folder.write("a", "x\n")
    assert await folder.text(grep, pattern="x") == "a:1:x"
    assert await folder.text(find, pattern="*") == "a"
