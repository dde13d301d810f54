"""list_dir: one folder, in order, bounded, nothing followed."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.tools.folder import Folder
from tui.tools.list_dir import MAX_ENTRIES, ListDir

list_dir = ListDir()


async def test_folders_first_then_files_with_sizes(folder: Folder) -> None:
    folder.write("b.txt", "x" * 1536)
    folder.write("a.txt", "")
    folder.write("zoo/x")
    folder.write(".git/x")
    (folder.root / "link").symlink_to("zoo/x")
    (folder.root / "broken").symlink_to("/nowhere")
    os.mkfifo(folder.root / "pipe")
    folder.write(os.fsdecode(b"caf\xe9\n"), "12")
    output = await folder.call(list_dir)
    assert output.content[0]["text"].splitlines() == [
        ".git/",
        "zoo/",
        "a.txt  0 B",
        "b.txt  1.5 KB",
        "broken -> /nowhere",
        "caf\\xe9\\n  2 B",
        "link -> zoo/x",
        "pipe  (FIFO)",
    ]
    assert output.summary == "8 entries"


async def test_other_folders_and_empty_ones(folder: Folder) -> None:
    folder.write("src/deep/a.py", "1")
    assert await folder.text(list_dir, path="src/deep") == "a.py  1 B"
    (folder.root / "empty").mkdir()
    output = await folder.call(list_dir, path="empty/")
    assert (output.content[0]["text"], output.summary) == ("[the folder is empty]", "0 entries")


async def test_a_large_folder_is_bounded_and_says_so(folder: Folder) -> None:
    for number in range(MAX_ENTRIES + 5):
        (folder.root / f"{number:05}").touch()
    (folder.root / "zz").mkdir()
    lines = (await folder.text(list_dir)).splitlines()
    assert lines[:2] == ["zz/", "00000  0 B"]
    assert len(lines) == MAX_ENTRIES + 1
    assert lines[-1].startswith("[1000 of 1006 entries; ")


async def test_what_cannot_be_listed(
    folder: Folder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder.write("src/a.py")
    (folder.root / "out").symlink_to(tmp_path)
    assert "isn't a folder. Use read_file" in await folder.error(list_dir, path="src/a.py")
    assert "Did you mean src?" in await folder.error(list_dir, path="scr")
    for path in ("..", "out", "/"):
        assert "outside the workspace" in await folder.error(list_dir, path=path)

    def denied(_path: object) -> object:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("tui.tools.list_dir.os.scandir", denied)
    error = await folder.error(list_dir, path="src")
    assert error.startswith("Couldn't list src: Permission denied.")
