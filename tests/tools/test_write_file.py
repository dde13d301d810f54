"""write_file: whole, in one step, never over something the model has not seen, old bytes kept."""

from __future__ import annotations

import asyncio
import os
import stat
import threading
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from tests.support.clock import PATIENCE_S
from tests.tools.folder import Folder, said
from tui.tools import file_access
from tui.tools.file_ledger import FileLedger
from tui.tools.read_file import ReadFile
from tui.tools.write_file import WriteFile

read_file, write_file = ReadFile(), WriteFile()


def digest(data: bytes) -> str:
    return sha256(data).hexdigest()


async def test_a_line_is_one_line(folder: Folder) -> None:
    output = await folder.call(write_file, path="a.txt", content="one\n")
    assert output.summary == "new, 1 line"


async def test_a_new_file_with_its_folders(folder: Folder) -> None:
    output = await folder.call(write_file, path="a/b/c.txt", content="one\ntwo\n")
    path = folder.root / "a/b/c.txt"
    assert path.read_bytes() == b"one\ntwo\n"
    assert said(output) == "Created a/b/c.txt: 8 B."
    assert output.summary == "new, 2 lines"
    assert output.display == "--- /dev/null\n+++ b/a/b/c.txt\n@@ -0,0 +1,2 @@\n+one\n+two"
    assert output.details == {
        "path": str(path),
        "before": None,
        "before_sha256": None,
        "after_sha256": digest(b"one\ntwo\n"),
    }
    assert not folder.left_over()


async def test_a_new_file_gets_the_usual_mode(folder: Folder) -> None:
    umask = os.umask(0o027)
    try:
        await folder.call(write_file, path="a.txt", content="x")
    finally:
        os.umask(umask)
    assert stat.S_IMODE((folder.root / "a.txt").stat().st_mode) == 0o640


async def test_content_is_written_as_given(folder: Folder) -> None:
    for number, content in enumerate(["", "no end", "a\r\nb\n\rc", "\ufeffmark", "\0é🜁"]):
        await folder.call(write_file, path=f"{number}.txt", content=content)
        assert (folder.root / f"{number}.txt").read_bytes() == content.encode()


async def test_33_a_file_that_was_not_read_is_not_replaced(folder: Folder) -> None:
    path = folder.write("a.txt", "mine\n")
    error = await folder.error(write_file, path="a.txt", content="yours\n")
    why = "a.txt exists and hasn't been read since this session was opened. Read it"
    assert error.startswith(why)
    assert path.read_text() == "mine\n"


async def test_33_a_file_that_changed_since_it_was_read_is_not_replaced(folder: Folder) -> None:
    path = folder.write("a.txt", "old\n")
    await folder.call(read_file, path="a.txt")
    before = path.stat()
    path.write_text("NEW\n")
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))  # only the content tells
    error = await folder.error(write_file, path="a.txt", content="x")
    assert error == (
        "a.txt changed since it was last read; nothing was written.\nWhat changed:\n"
        "--- a/a.txt\n+++ b/a.txt\n@@ -1 +1 @@\n-old\n+NEW\n"
        " If the edit is still right, send it again for the file as it is now."
    )
    assert path.read_text() == "NEW\n"
    await folder.call(read_file, path="a.txt")
    await folder.call(write_file, path="a.txt", content="x")
    assert path.read_text() == "x"


async def test_33_touching_a_file_changes_nothing(folder: Folder) -> None:
    path = folder.write("a.txt", "old\n")
    await folder.call(read_file, path="a.txt")
    os.utime(path, ns=(1, 1))
    await folder.call(write_file, path="a.txt", content="new\n")
    assert path.read_text() == "new\n"


async def test_33_after_a_resume_a_file_is_read_again_first(folder: Folder) -> None:
    await folder.call(write_file, path="a.txt", content="one\n")
    await folder.call(write_file, path="a.txt", content="two\n")  # it wrote it: it knows it
    folder.files = FileLedger()
    assert "hasn't been read" in await folder.error(write_file, path="a.txt", content="three\n")


async def test_33_a_large_file_is_known_by_size_and_time(folder: Folder) -> None:
    path = folder.write("big.txt", "line\n" * 600_000)
    await folder.call(read_file, path="big.txt")
    with path.open("a") as file:
        file.write("more\n")
    assert "changed" in await folder.error(write_file, path="big.txt", content="x")
    await folder.call(read_file, path="big.txt", offset=600_000)
    await folder.call(write_file, path="big.txt", content="x")


async def test_33_the_old_bytes_are_kept_privately(folder: Folder) -> None:
    folder.write("a.txt", b"old \xff bytes\n")
    await folder.call(read_file, path="a.txt")
    output = await folder.call(write_file, path="a.txt", content="new\n")
    before = Path(output.details["before"])
    assert before == folder.root / ".holdfast/tool-results/toolu_2.before"
    assert before.read_bytes() == b"old \xff bytes\n"
    assert stat.S_IMODE(before.stat().st_mode) == 0o600
    assert output.details["before_sha256"] == digest(b"old \xff bytes\n")
    assert output.summary == "+1 −1"


async def test_33_the_old_bytes_of_a_file_of_any_size_are_kept(folder: Folder) -> None:
    path = folder.write("big.bin", b"start\n")
    os.truncate(path, 21 << 20)
    await folder.call(read_file, path="big.bin")
    output = await folder.call(write_file, path="big.bin", content="new\n")
    before = Path(output.details["before"])
    assert before.stat().st_size == 21 << 20
    assert output.details["before_sha256"] == digest(before.read_bytes())
    assert "big.bin: 21.0 MB, not shown as text, is replaced by:" in output.display


async def test_33_without_a_copy_of_the_old_bytes_nothing_is_written(folder: Folder) -> None:
    path = folder.write("a.txt", "old\n")
    (folder.root / ".holdfast").symlink_to("/tmp")
    await folder.call(read_file, path="a.txt")
    error = await folder.error(write_file, path="a.txt", content="new\n")
    assert "couldn't be kept, so nothing was written" in error
    assert "symbolic link" in error
    assert path.read_text() == "old\n"


@pytest.mark.parametrize("mode", [0o755, 0o600, 0o664])
async def test_the_mode_is_kept(folder: Folder, mode: int) -> None:
    path = folder.write("run.sh", "a\n")
    path.chmod(mode)
    await folder.call(read_file, path="run.sh")
    await folder.call(write_file, path="run.sh", content="b\n")
    assert stat.S_IMODE(path.stat().st_mode) == mode


async def test_a_symlink_stays_and_its_target_is_written(folder: Folder) -> None:
    target = folder.write("real/a.txt", "old\n")
    (folder.root / "link").symlink_to("real/a.txt")
    await folder.call(read_file, path="real/a.txt")
    await folder.call(write_file, path="link", content="new\n")
    assert (folder.root / "link").is_symlink()
    assert target.read_text() == "new\n"


async def test_nothing_is_written_outside_the_workspace(folder: Folder, tmp_path: Path) -> None:
    (folder.root / "out").symlink_to(tmp_path)
    (folder.root / "dangling").symlink_to(tmp_path / "new")
    for path in ("out/x", "dangling", "../x", str(tmp_path / "x"), ""):
        assert "path" in await folder.error(write_file, path=path, content="x")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["work"]


async def test_what_is_no_file_is_not_replaced(folder: Folder) -> None:
    os.mkfifo(folder.root / "pipe")
    folder.write("file", "x")
    assert "is a FIFO" in await folder.error(write_file, path="pipe", content="x")
    assert "is a folder" in await folder.error(write_file, path=".", content="x")
    assert "is a file, not a folder" in await folder.error(write_file, path="file/x", content="x")
    assert "surrogate" in await folder.error(write_file, path="new", content="\ud83d")
    assert "name too long" in await folder.error(write_file, path="x" * 300, content="x")


async def test_a_read_only_file_is_respected(
    folder: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder.write("a.txt", "x")
    await folder.call(read_file, path="a.txt")

    def access(_path: object, _mode: int) -> bool:
        return False  # what os.access says to all but root

    monkeypatch.setattr("tui.tools.file_access.os.access", access)
    assert "a.txt is read-only" in await folder.error(write_file, path="a.txt", content="y")


@pytest.mark.parametrize("step", ["fsync", "fchmod"])
async def test_a_failure_leaves_the_old_file_and_nothing_else(
    folder: Folder, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    path = folder.write("a.txt", "old\n")
    await folder.call(read_file, path="a.txt")
    real = getattr(os, step)
    calls: list[int] = []

    def full(fd: int, *rest: Any) -> None:
        calls.append(fd)
        if len(calls) == (2 if step == "fsync" else 1):  # the first sync is the pre-image's
            raise OSError(28, "No space left on device")
        real(fd, *rest)

    with monkeypatch.context() as patched:
        patched.setattr(f"tui.tools.file_access.os.{step}", full)
        error = await folder.error(write_file, path="a.txt", content="new\n")
    assert "No space left on device" in error
    assert "free some space" in error
    assert path.read_text() == "old\n"
    assert not folder.left_over()
    assert not list((folder.root / ".holdfast/tool-results").iterdir())


async def test_a_change_in_the_last_moment_is_not_overwritten(
    folder: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = folder.write("a.txt", "old\n")
    await folder.call(read_file, path="a.txt")
    real = file_access.private_copy

    def meanwhile(spot: Path) -> Any:
        path.write_text("someone else\n")
        return real(spot)

    monkeypatch.setattr(file_access, "private_copy", meanwhile)
    assert "changed" in await folder.error(write_file, path="a.txt", content="new\n")
    assert path.read_text() == "someone else\n"
    assert not folder.left_over()


async def test_a_file_that_appears_in_the_last_moment_is_not_overwritten(
    folder: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = folder.root / "new.txt"
    real = os.fsync

    def meanwhile(fd: int) -> None:
        path.write_text("someone else\n")
        real(fd)

    monkeypatch.setattr("tui.tools.file_access.os.fsync", meanwhile)
    assert "changed" in await folder.error(write_file, path="new.txt", content="x")
    assert path.read_text() == "someone else\n"


async def test_cancelling_before_the_last_step_writes_nothing(
    folder: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = folder.write("a.txt", "old\n")
    await folder.call(read_file, path="a.txt")
    reached, go_on = threading.Event(), threading.Event()
    real = os.fchmod

    def wait(fd: int, mode: int) -> None:
        reached.set()
        go_on.wait(PATIENCE_S)
        real(fd, mode)

    monkeypatch.setattr("tui.tools.file_access.os.fchmod", wait)
    call = asyncio.create_task(folder.call(write_file, path="a.txt", content="new\n"))
    await asyncio.to_thread(reached.wait, PATIENCE_S)
    call.cancel()
    asyncio.get_running_loop().call_soon(go_on.set)
    with pytest.raises(asyncio.CancelledError):
        await call
    assert path.read_text() == "old\n"
    assert not folder.left_over(), "when the call has ended, nothing goes on behind it"


async def test_the_same_content_is_not_written_again(folder: Folder) -> None:
    path = folder.write("a.txt", "same\n")
    await folder.call(read_file, path="a.txt")
    before = path.stat()
    output = await folder.call(write_file, path="a.txt", content="same\n")
    assert output.summary == "no change"
    assert path.stat().st_ino == before.st_ino


async def test_the_preview_is_the_diff_and_refuses_what_cannot_work(folder: Folder) -> None:
    path = folder.write("a.txt", "old\n")
    await folder.call(read_file, path="a.txt")
    preview = await folder.preview(write_file, path="a.txt", content="new\n")
    assert preview.kind == "diff"
    assert preview.text == "--- a/a.txt\n+++ b/a.txt\n@@ -1 +1 @@\n-old\n+new"
    assert path.read_text() == "old\n"
    assert not (folder.root / ".holdfast").exists()
    folder.files = FileLedger()
    with pytest.raises(Exception, match="hasn't been read"):
        await folder.preview(write_file, path="a.txt", content="new\n")
