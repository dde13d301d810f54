"""grep_search and find_by_name."""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.tools.folder import Folder
from tui.core.errors import ToolError
from tui.tools import search
from tui.tools.find_by_name import FindByName, glob_matcher
from tui.tools.grep_search import GrepSearch

grep, find = GrepSearch(), FindByName()
EXCLUDED = [
    *("node_modules", ".git", "__pycache__", ".venv", "venv", ".tox", ".mypy_cache"),
    *(".pytest_cache", "dist", "build", ".next", ".nuxt", ".holdfast"),
]


def make_repository(folder: Folder) -> None:
    subprocess.run(["git", "init", "-q", str(folder.root)], check=True)


@pytest.fixture
def tree(folder: Folder) -> Folder:
    """A small project, not in git, with a TODO in every place."""
    for name in EXCLUDED:
        folder.write(f"{name}/in.py", "TODO\n")
        folder.write(f"src/{name}/deep/in.py", "TODO\n")
    folder.write("src/a.py", "one\ntwo TODO here\nthree\n")
    folder.write("src/.hidden.py", "TODO\n")
    folder.write("README.md", "# TODO\ntodo\n")
    folder.write("src/picture.bin", b"TODO\n\0\1\2TODO\n")
    return folder


async def test_L22_L23_excluded_folders_are_not_searched(tree: Folder) -> None:
    text = await tree.text(grep, pattern="TODO")
    assert text.splitlines()[:2] == ["README.md:1:# TODO", "src/.hidden.py:1:TODO"]
    assert "src/a.py:2:two TODO here" in text
    assert not any(f"{name}/" in text for name in EXCLUDED)
    assert await tree.text(find, pattern="in.py") == "Nothing matches 'in.py'."


@pytest.mark.parametrize("name", EXCLUDED)
async def test_L24_an_excluded_folder_can_be_named(tree: Folder, name: str) -> None:
    assert await tree.text(grep, pattern="TODO", path=name) == f"{name}/in.py:1:TODO"
    assert await tree.text(grep, pattern="TODO", path=f"src/{name}/deep") == (
        f"src/{name}/deep/in.py:1:TODO"
    )
    assert await tree.text(find, pattern="*.py", path=name) == f"{name}/in.py"
    assert await tree.text(grep, pattern="TODO", path=f"{name}/in.py") == f"{name}/in.py:1:TODO"


async def test_L24_what_lies_above_the_root_does_not_count(tmp_path: Path) -> None:
    root = tmp_path / "build" / "dist"
    root.mkdir(parents=True)
    inside = Folder(root)
    inside.write("a.py", "TODO\n")
    assert await inside.text(grep, pattern="TODO") == "a.py:1:TODO"


@pytest.mark.skipif(shutil.which("git") is None, reason="a repository is needed")
async def test_L24_a_named_folder_is_searched_though_git_ignores_it(folder: Folder) -> None:
    make_repository(folder)
    folder.write(".gitignore", "node_modules/*\nbuild/**\n")
    folder.write("node_modules/p/index.js", "TODO\n")
    folder.write("build/out.js", "TODO\n")
    assert "index.js" in await folder.text(grep, pattern="TODO", path="node_modules")
    assert "index.js" in await folder.text(find, pattern="*.js", path="node_modules/p")
    assert "out.js" in await folder.text(grep, pattern="TODO", path="build")


@pytest.mark.skipif(shutil.which("git") is None, reason="a repository is needed")
async def test_files_that_git_ignores_are_left_out(folder: Folder) -> None:
    make_repository(folder)
    folder.write(".gitignore", "*.log\n")
    folder.write("a.log", "TODO\n")
    folder.write("a.py", "TODO\n")
    assert await folder.text(grep, pattern="TODO") == "a.py:1:TODO"
    assert "a.log" not in await folder.text(find, pattern="a.*")
    assert await folder.text(grep, pattern="TODO", glob="*.log") == "a.log:1:TODO"


async def test_L24_parts_are_whole_names(tree: Folder) -> None:
    tree.write("rebuild/builder.py", "TODO\n")
    assert "rebuild/builder.py:1:TODO" in await tree.text(grep, pattern="TODO")


async def test_binary_files_are_left_out_unless_named(tree: Folder) -> None:
    lines = (await tree.text(grep, pattern="TODO")).splitlines()
    assert lines[-1] == (
        "[left out: 1 binary file with a match (src/picture.bin). Name one as path to look there]"
    )
    assert not any("picture.bin" in line for line in lines[:-1])
    assert "picture" not in await tree.text(grep, pattern="two TODO")
    tree.write(".holdfast/tool-results/x.txt", b"\0TODO\0\n")
    named = await tree.text(grep, pattern="TODO", path=".holdfast/tool-results/x.txt")
    assert named == ".holdfast/tool-results/x.txt:1:\ufffdTODO\ufffd"


async def test_expressions_texts_and_case(tree: Folder) -> None:
    tree.write("b.txt", "f(x)\nfoo\r\nbar\r\n-e odd\n")
    assert await tree.text(grep, pattern=r"^fo+$") == "b.txt:2:foo"
    assert await tree.text(grep, pattern="f(x)", literal=True) == "b.txt:1:f(x)"
    assert await tree.text(grep, pattern="-e") == "b.txt:4:-e odd"
    assert await tree.text(grep, pattern="(?<=b)ar") == "b.txt:3:bar"
    both = await tree.text(grep, pattern="^.{0,2}todo", case_insensitive=True, path="README.md")
    assert both == "README.md:1:# TODO\nREADME.md:2:todo"


async def test_no_match_is_an_answer(tree: Folder) -> None:
    output = await tree.call(grep, pattern="nowhere")
    assert not output.is_error
    assert output.content[0]["text"] == "No match for 'nowhere'."
    assert output.summary == "0 matches in 0 files"


async def test_context_lines_and_gaps(tree: Folder) -> None:
    tree.write("c.txt", "".join(f"{n}\n" for n in range(1, 21)))
    text = await tree.text(grep, pattern="^(3|5|15)$", path="c.txt", context=1)
    assert text.splitlines() == [
        *("c.txt-2-2", "c.txt:3:3", "c.txt-4-4", "c.txt:5:5", "c.txt-6-6", "--"),
        *("c.txt-14-14", "c.txt:15:15", "c.txt-16-16"),
    ]


@pytest.mark.parametrize(
    ("glob", "found"),
    [
        ("*.py", ["a.py", "src/b.py", "src/deep/c.py"]),
        ("src/*.py", ["src/b.py"]),
        ("src/**/*.py", ["src/b.py", "src/deep/c.py"]),
        ("**/deep/*", ["src/deep/c.py"]),
        ("*.{md,txt}", ["d.md", "src/e.txt"]),
        ("!*.py", ["d.md", "src/e.txt"]),
        ("[ad].*", ["a.py", "d.md"]),
    ],
)
async def test_globs(folder: Folder, glob: str, found: list[str]) -> None:
    for name in ("a.py", "src/b.py", "src/deep/c.py", "d.md", "src/e.txt"):
        folder.write(name, "x\n")
    text = await folder.text(grep, pattern="x", glob=glob)
    assert [line.split(":")[0] for line in text.splitlines()] == found
    files = (await folder.text(find, pattern=glob)).splitlines()
    assert [line for line in files if not line.endswith("/")] == found


async def test_folders_are_found_by_what_is_in_them(tree: Folder) -> None:
    tree.write("app/tests/unit/test_a.py", "x")
    assert await tree.text(find, pattern="tests") == "app/tests/"
    assert await tree.text(find, pattern="app/**") == (
        "app/tests/\napp/tests/unit/\napp/tests/unit/test_a.py"
    )
    assert await tree.text(find, pattern="unit", path="app") == "app/tests/unit/"


async def test_results_are_bounded_and_say_so(tree: Folder) -> None:
    for number in range(30):
        tree.write(f"many/{number:02}.txt", "needle\n" * 10)
    output = await tree.call(grep, pattern="needle", max_results=25)
    lines = output.content[0]["text"].splitlines()
    assert len(lines) == 26
    assert lines[24] == "many/02.txt:5:needle"
    assert lines[25].startswith("[stopped after 25 matching lines, there are more:")
    assert output.summary == "25 matches in 3 files"
    exact = await tree.text(grep, pattern="needle", max_results=300)
    assert "stopped" not in exact
    found = (await tree.text(find, pattern="many/*", max_results=3)).splitlines()
    assert found[:3] == ["many/00.txt", "many/01.txt", "many/02.txt"]
    assert found[3].startswith("[stopped after 3 results")
    assert "stopped" not in await tree.text(find, pattern="many/*", max_results=30)


@pytest.mark.parametrize("context", [0, 1])
@pytest.mark.parametrize("limit", [1, 2, 5, 6, 11, 12, 13, 50, 10_000])
async def test_results_are_the_first_in_the_order_of_paths(
    folder: Folder, limit: int, context: int
) -> None:
    names = ["a/x", "a/z/y", "a-b/x", "a.py", "aa", "a b/x"]
    for name in names:
        folder.write(name, "no\nneedle\nno\nno\nneedle\nno\n")
    for number in range(200):  # so that several threads have something to do
        folder.write(f"z/{number}", "hay\n" * 500)
    text = await folder.text(grep, pattern="needle", max_results=limit, context=context)
    lines = [line for line in text.splitlines() if not line.startswith("[stopped")]
    found = [line for line in lines if line.endswith(("2:needle", "5:needle"))]
    in_order = ["a/x", "a/z/y", "a b/x", "a-b/x", "a.py", "aa"]
    whole = [f"{name}:{number}:needle" for name in in_order for number in (2, 5)]
    assert found == whole[:limit]
    assert ("[stopped after" in text) is (limit < len(whole))
    if context and limit >= len(whole):
        assert lines[:8] == [
            *("a/x-1-no", "a/x:2:needle", "a/x-3-no", "a/x-4-no"),
            *("a/x:5:needle", "a/x-6-no", "--", "a/z/y-1-no"),
        ]


async def test_threads_search_and_only_too_much_is_searched_again_in_order(
    folder: Folder, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    program = tmp_path / "rg"
    program.write_text(
        f'#!/bin/sh\necho "$*" >> {tmp_path}/calls\nprintf "./b\\0001:x\\n./a\\0001:x\\n"\n'
    )
    program.chmod(0o755)
    monkeypatch.setattr(search, "ripgrep", lambda: program)

    for name in ("a", "b"):
        folder.write(name, "x\n")

    async def calls(**more: int) -> tuple[list[bool], str]:
        (tmp_path / "calls").write_text("")
        text = await folder.text(grep, pattern="x", **more)
        return ["--sort path" in c for c in (tmp_path / "calls").read_text().splitlines()], text

    assert await calls() == ([False], "a:1:x\nb:1:x")
    assert (await calls(max_results=1))[0] == [False, True]
    assert (await calls(max_results=10_000))[0] == [False]
    assert (await calls(max_results=10_000, context=20))[0] == [True]  # too much for its memory


async def test_L25_an_oversized_result_is_returned_whole(tree: Folder) -> None:
    tree.write("big.txt", "TODO and quite some text after it\n" * 900)
    text = await tree.text(grep, pattern="TODO and")
    assert text.count("\n") == 899
    assert len(text) > 20_000


async def test_long_lines_are_cut_with_a_remark(tree: Folder) -> None:
    tree.write("long.txt", "é" * 300 + "x" * 1_000_000 + "END\nnext END\n")
    text = await tree.text(grep, pattern="END")
    lines = text.splitlines()
    assert lines[0].startswith("long.txt:1:éé")
    assert lines[0].endswith(" [... omitted end of long line]")
    assert len(lines[0]) < 600
    assert lines[1] == "long.txt:2:next END"


async def test_a_broken_expression_is_explained(tree: Folder) -> None:
    error = await tree.error(grep, pattern="a(b")
    assert error.startswith("The search failed: ")
    assert "set literal" in error
    assert "rg:" not in error
    for pattern in ("a\nb", "", "\0"):
        assert "empty, or contains a newline or NUL" in await tree.error(grep, pattern=pattern)
    assert "surrogate" in await tree.error(grep, pattern="\ud800")


async def test_roots_that_cannot_be_searched(tree: Folder, tmp_path: Path) -> None:
    os.mkfifo(tree.root / "pipe")
    (tree.root / "out").symlink_to(tmp_path)
    assert "is a FIFO" in await tree.error(grep, pattern="x", path="pipe")
    assert "sorc doesn't exist. Did you mean src?" in await tree.error(
        find, pattern="x", path="sorc"
    )
    assert "is a file" in await tree.error(find, pattern="x", path="README.md")
    for tool in (grep, find):
        for path in ("..", "out", str(tmp_path)):
            assert "outside the workspace" in await tree.error(tool, pattern="x", path=path)


async def test_symlinks_are_not_followed(tree: Folder, tmp_path: Path) -> None:
    (tmp_path / "secret.txt").write_text("TODO secret\n")
    (tree.root / "folder").symlink_to(tmp_path)
    (tree.root / "file.txt").symlink_to(tmp_path / "secret.txt")
    (tree.root / "loop").symlink_to(".")
    assert "secret" not in await tree.text(grep, pattern="TODO")
    assert "file.txt" not in await tree.text(find, pattern="*.txt")


async def test_special_files_do_not_block(tree: Folder) -> None:
    os.mkfifo(tree.root / "src" / "pipe")
    assert "src/a.py" in await tree.text(grep, pattern="two TODO")


async def test_names_that_are_no_text(tree: Folder) -> None:
    tree.write(os.fsdecode(b"caf\xe9.txt"), "needle\n")
    tree.write("new\nline.txt", "needle\nneedle\n")
    text = await tree.text(grep, pattern="needle")
    assert text.splitlines() == [
        "caf\\xe9.txt:1:needle",
        "new\\nline.txt:1:needle",
        "new\\nline.txt:2:needle",
    ]
    assert await tree.text(find, pattern="*.txt") == "caf\\xe9.txt\nnew\\nline.txt"


async def test_other_folders_are_shown_in_full(tree: Folder, tmp_path: Path) -> None:
    other = tmp_path / "build" / "other"
    other.mkdir(parents=True)
    (other / "x.py").write_text("TODO\n")
    context = tree.context()
    tree.changes = {"workspace": context.workspace.at(tree.root, extra=(other,), ceiling=tree.root)}
    assert await tree.text(grep, pattern="TODO", path=str(other)) == f"{other}/x.py:1:TODO"


async def test_31_the_child_gets_no_secrets(
    folder: Folder, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    program = tmp_path / "rg"
    program.write_text(
        '#!/bin/sh\nprintf "./e\\0001:%s\\n" "$ANTHROPIC_API_KEY$RIPGREP_CONFIG_PATH"\n'
    )
    program.chmod(0o755)
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-secret")
    monkeypatch.setattr(search, "ripgrep", lambda: program)
    folder.write("e", "\n")
    assert await folder.text(grep, pattern="x") == "e:1:"


async def test_a_configuration_file_of_ripgrep_does_not_count(
    folder: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RIPGREP_CONFIG_PATH", str(folder.write("rc", "--invert-match\n")))
    folder.write("a.txt", "x\n")
    assert await folder.text(grep, pattern="x", path="a.txt") == "a.txt:1:x"


async def test_a_cancelled_search_leaves_no_process(
    folder: Folder, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    program = tmp_path / "rg"
    program.write_text(f"#!/bin/sh\necho $$ > {tmp_path}/started\nexec sleep 600\n")
    os.mkfifo(tmp_path / "started")
    program.chmod(0o755)
    monkeypatch.setattr(search, "ripgrep", lambda: program)
    call = asyncio.create_task(folder.call(grep, pattern="x"))
    pid = int(await asyncio.to_thread((tmp_path / "started").read_text))
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


async def test_a_program_that_cannot_start_is_an_error(
    folder: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(search, "ripgrep", lambda: folder.root / "gone")
    with pytest.raises(ToolError, match="Couldn't start"):
        await folder.call(grep, pattern="x")


def test_ripgrep_beside_the_interpreter_comes_first(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    own = tmp_path / "venv" / "rg"
    other = tmp_path / "path" / "rg"
    for program in (own, other):
        program.parent.mkdir()
        program.write_text("")
        program.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(own.with_name("python")))
    monkeypatch.setenv("PATH", str(other.parent))
    assert search.ripgrep() == own
    own.unlink()
    assert search.ripgrep() == other
    other.unlink()
    assert search.ripgrep() is None


def test_L22_ripgrep_gets_a_glob_for_each_folder() -> None:
    pairs = list(zip(search.exclusions()[::2], search.exclusions()[1::2], strict=True))
    assert pairs == [("--glob", f"!{name}/") for name in EXCLUDED]  # a file of that name is found


@pytest.mark.parametrize(
    ("glob", "path", "fits"),
    [
        ("*.py", "a/b/c.py", True),
        ("/*.py", "a.py", True),
        ("/*.py", "a/b.py", False),
        ("./a/*", "a/b", True),
        ("a/", "a/b/c", True),
        ("a/", "a", False),
        ("a/**", "a", False),
        ("**", "a/b", True),
        ("**/b", "b", True),
        ("a/**/b", "a/b", True),
        ("a/**/b", "a/x/y/b", True),
        ("a/**/b", "x/a/b", False),
        ("{a,b/c}.py", "b/c.py", True),
        ("{a,b", "{a,b", True),
        ("a?c", "abc", True),
        ("a?c", "a/c", False),
        ("[!a].py", "b.py", True),
        ("A.py", "a.py", False),
        ("!*.py", "a.md", True),
        ("!!*.py", "a.py", True),
        ("!" * 495 + "*.py", "a.py", False),
        ("a*" * 30 + "b", "a" * 200, False),
        ("**/" * 30 + "b", "/".join("a" * 100), False),
    ],
)
def test_the_globs_of_the_stand_in(glob: str, path: str, fits: bool) -> None:
    assert glob_matcher(glob)(path) is fits


@pytest.mark.parametrize(
    ("glob", "why"),
    [
        ("a" * 501, "more than 500 characters"),
        ("*a" * 45_000, "more than 500 characters"),
        ("{a,b}" * 7, "more than 64 patterns"),
    ],
)
def test_a_pattern_that_would_take_long_is_refused(glob: str, why: str) -> None:
    with pytest.raises(ToolError, match=why):
        glob_matcher(glob)
