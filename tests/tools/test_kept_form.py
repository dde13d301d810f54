"""Files stay what they are, whichever tool writes them: encoding, mark, line endings, links."""

from __future__ import annotations

import codecs
import itertools
import os
import shutil
import stat
import subprocess
import sys
import tempfile
from pathlib import Path
from unicodedata import normalize

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.tools.folder import Folder, said
from tui.core import in_place
from tui.core.in_place import bring_back, put
from tui.core.paths import folders
from tui.tools.apply_patch import ApplyPatch
from tui.tools.edit_file import EditFile
from tui.tools.read_file import ReadFile
from tui.tools.text_match import flatten, with_endings
from tui.tools.write_file import WriteFile

read_file, write_file, edit_file, patch = ReadFile(), WriteFile(), EditFile(), ApplyPatch()

FORMS = {
    "utf-8": (b"", "utf-8"),
    "utf-8 with a mark": (codecs.BOM_UTF8, "utf-8"),
    "utf-16-le": (codecs.BOM_UTF16_LE, "utf-16-le"),
    "utf-16-be": (codecs.BOM_UTF16_BE, "utf-16-be"),
    "utf-16-le without a mark": (b"", "utf-16-le"),
    "utf-16-be without a mark": (b"", "utf-16-be"),
    "utf-32-le": (codecs.BOM_UTF32_LE, "utf-32-le"),
    "latin-1": (b"", "latin-1"),
}
ENDINGS = {"LF": "\n", "CRLF": "\r\n", "CR": "\r"}
OLD = ["# one", "two: caf\u00e9", "three", "four"]
NEW = ["# one", "two: caf\u00e9", "3", "more", "four"]


async def change(folder: Folder, tool: str, path: str, *, ends: bool = True) -> str:
    """Make NEW of OLD with a tool, as a model would: with LF."""
    await folder.call(read_file, path=path)
    if tool == "write_file":
        content = "\n".join(NEW) + "\n" * ends
        return said(await folder.call(write_file, path=path, content=content))
    if tool == "edit_file":
        edit = {"old_string": "three\n", "new_string": "3\nmore\n"}
        return said(await folder.call(edit_file, path=path, **edit))
    hunk = f"*** Begin Patch\n*** Update File: {path}\n-three\n+3\n+more\n four\n*** End Patch"
    return said(await folder.call(patch, patch=hunk))


@pytest.mark.parametrize("tool", ["write_file", "edit_file", "apply_patch"])
@pytest.mark.parametrize("form", FORMS)
async def test_a_file_keeps_its_form(folder: Folder, tool: str, form: str) -> None:
    bom, encoding = FORMS[form]
    for (name, ending), ends in itertools.product(ENDINGS.items(), (True, False)):
        if encoding == "latin-1" and tool == "write_file":
            continue
        path = folder.write("a.txt", bom + (ending.join(OLD) + ending * ends).encode(encoding))
        words = await change(folder, tool, "a.txt")
        wanted = bom + (ending.join(NEW) + ending * ends).encode(encoding)
        assert path.read_bytes() == wanted, (form, name, ends)
        assert ("BOM" in words) == bool(bom)
        assert (f"{name} line endings" in words) == (name != "LF")
        assert (f"{encoding.upper()} encoding" in words) == encoding.startswith(("utf-1", "utf-3"))
        assert ("unknown encoding" in words) == (encoding == "latin-1")


async def test_the_answer_says_what_was_kept(folder: Folder) -> None:
    folder.write("a.txt", codecs.BOM_UTF8 + "\r\n".join(OLD).encode())
    assert await change(folder, "write_file", "a.txt") == (
        "Replaced a.txt: +2 −1 lines. Kept its BOM, CRLF line endings and missing last newline."
    )
    await folder.call(read_file, path="a.txt")
    content = "\n".join(NEW) + "\n"
    words = said(await folder.call(write_file, path="a.txt", content=content))
    assert "missing last newline" not in words  # it is all that was asked for
    assert (folder.root / "a.txt").read_bytes().endswith(b"four\r\n")


async def test_characters_that_do_not_fit_are_refused(folder: Folder) -> None:
    path = folder.write("a.txt", "caf\u00e9\nthree\n".encode("latin-1"))
    before = path.read_bytes()
    await folder.call(read_file, path="a.txt")
    new = "caf\u00e9\n3\n"
    errors = [
        await folder.error(write_file, path="a.txt", content=new),
        await folder.error(edit_file, path="a.txt", old_string="three", new_string="\u20ac"),
        await folder.error(
            patch,
            patch="*** Begin Patch\n*** Update File: a.txt\n-three\n+\u20ac\n*** End Patch",
        ),
    ]
    for error in errors:
        assert "a.txt isn't UTF-8, so the encoding of the new characters is unknown." in error
        assert "convert the file with a command (iconv) first" in error
    assert path.read_bytes() == before


@pytest.mark.parametrize("tool", ["write_file", "edit_file", "apply_patch"])
async def test_each_line_keeps_its_own_ending(folder: Folder, tool: str) -> None:
    path = folder.write("a.txt", "# one\r\ntwo: caf\u00e9\nthree\nfour\r\n")
    await change(folder, tool, "a.txt")
    assert path.read_bytes().decode() == "# one\r\ntwo: caf\u00e9\n3\nmore\nfour\r\n"
    path.write_bytes(b"a\r\nb\nc\r\nd\n")
    await folder.call(read_file, path="a.txt")
    await folder.call(edit_file, path="a.txt", old_string="a\nb\nc", new_string="a\nB\nx\nc")
    assert path.read_bytes() == b"a\r\nB\nx\nc\r\nd\n"


LINES = st.lists(st.sampled_from(["a", "b", "", "long line"]), min_size=1, max_size=8)


@given(LINES, LINES, st.lists(st.sampled_from(["\n", "\r\n"]), min_size=8, max_size=8), st.data())
def test_mixed_endings_are_those_of_the_lines(
    old: list[str], new: list[str], endings: list[str], data: st.DataObject
) -> None:
    ends = data.draw(st.sampled_from(["", "\n"]))
    mixed = "".join(line + end for line, end in zip(old, endings, strict=False))
    default = data.draw(st.sampled_from(["\n", "\r\n"]))
    assert with_endings(mixed, flatten(mixed), default) == mixed
    wanted = "\n".join(new) + ends
    assert flatten(with_endings(mixed, wanted, default)) == wanted
    # What comes before the first change and after the last one is as it was.
    longer = with_endings(mixed, f"first\n{flatten(mixed)}last\n", default)
    assert mixed in longer


async def test_a_broken_format_is_told_and_the_edit_is_made(folder: Folder) -> None:
    for name, good, bad in (
        ("a.json", '{"a": 1}', '{"a": }'),
        ("a.toml", "a = 1\n", "a = \n"),
        ("a.yaml", "a: 1\n", "a: b: 1\n"),
        ("a.py", "a = 1\n", "a = \n"),
    ):
        path = folder.write(name, good)
        await folder.call(read_file, path=name)
        words = said(await folder.call(write_file, path=name, content=bad))
        assert f"But {name} was valid " in words
        assert path.read_text() == bad
        words = said(await folder.call(write_file, path=name, content=bad + "\n#"))
        assert "was valid" not in words  # it wasn't before


@pytest.mark.parametrize("tool", ["write_file", "edit_file", "apply_patch"])
async def test_hard_links_stay_one_file(folder: Folder, tool: str) -> None:
    path = folder.write("a.txt", "\n".join(OLD) + "\n")
    twin = folder.root / "twin.txt"
    twin.hardlink_to(path)
    words = await change(folder, tool, "a.txt")
    assert "Written in place: it has 2 hard links, which stay one file." in words
    assert twin.read_text() == path.read_text() == "\n".join(NEW) + "\n"
    assert path.samefile(twin)
    assert not list(folders().in_place.iterdir())
    assert not folder.left_over()


async def test_a_setuid_bit_does_not_outlive_a_change(folder: Folder) -> None:
    path = folder.write("a.txt", "\n".join(OLD) + "\n")
    path.chmod(0o4755)
    words = await change(folder, "write_file", "a.txt")
    assert "Its setuid bit is gone, as after any write." in words
    assert stat.S_IMODE(path.stat().st_mode) == 0o755


async def test_a_name_on_the_disk_is_kept(folder: Folder) -> None:
    name = normalize("NFD", "caf\u00e9.txt")
    folder.write(name, "\n".join(OLD) + "\n")
    await change(folder, "write_file", normalize("NFC", name))
    await change_again(folder, normalize("NFC", name))
    assert [path.name for path in folder.root.glob("*.txt")] == [name]


async def change_again(folder: Folder, path: str) -> None:
    await folder.call(edit_file, path=path, old_string="more", new_string="less")


def test_a_name_in_other_letters_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # As where upper and lower case are the same: both names lead to one file.
    (tmp_path / "Readme.md").write_text("old")
    state = (tmp_path / "Readme.md").stat()
    put(tmp_path / "README.MD", b"new", old=b"old", like=state, mode=0o666, check=lambda: None)
    assert [path.name for path in tmp_path.iterdir()] == ["Readme.md"]
    assert (tmp_path / "Readme.md").read_bytes() == b"new"


async def test_a_full_disk_leaves_a_linked_file_as_it_was(
    folder: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = folder.write("a.txt", "\n".join(OLD) + "\n")
    (folder.root / "twin.txt").hardlink_to(path)
    real, calls = os.pwrite, iter([False, True])

    def full(file: int, data: bytes, at: int) -> int:
        if next(calls, True):
            return real(file, data, at)
        real(file, data[:5], at)
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "pwrite", full)
    await folder.call(read_file, path="a.txt")
    error = await folder.error(write_file, path="a.txt", content="other\n")
    assert "No space left" in error
    assert path.read_text() == "\n".join(OLD) + "\n"
    assert not list(folders().in_place.iterdir())


KILLED = """
import os, sys
from pathlib import Path
from tui.core import in_place

path, new, after = Path(sys.argv[1]), sys.argv[2].encode(), int(sys.argv[3])
real = os.pwrite

def cut(file, data, at):
    real(file, data[:after], at)
    os.kill(os.getpid(), 9)

os.pwrite = cut
old = path.read_bytes()
in_place.put(path, new, old=old, like=path.stat(), mode=0o666, check=lambda: None)
"""


def killed(path: Path, new: str, after: int) -> None:
    done = subprocess.run(
        [sys.executable, "-c", KILLED, str(path), new, str(after)], check=False, cwd=Path.cwd()
    )
    assert done.returncode == -9


@pytest.mark.parametrize("length", [5, 9000, 20_000])
def test_a_kill_while_writing_is_undone_at_the_next_start(tmp_path: Path, length: int) -> None:
    new = "n" * length
    path = tmp_path / "a.txt"
    old = b"0123456789" * 900
    path.write_bytes(old)
    (tmp_path / "twin").hardlink_to(path)
    killed(path, new, 5)
    assert path.read_bytes() != old
    (brought,) = bring_back()
    assert (brought.path, brought.restored) == (path, True)
    assert path.read_bytes() == old
    assert path.samefile(tmp_path / "twin")
    assert bring_back() == []


def test_what_somebody_changed_after_a_kill_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes(b"0123456789")
    (tmp_path / "twin").hardlink_to(path)
    killed(path, "abcdefghij", 5)
    path.write_bytes(b"their own")
    assert [one.restored for one in bring_back()] == [False]
    assert path.read_bytes() == b"their own"


def test_a_pipe_in_the_place_of_a_file_that_was_cut_off_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("old\n" * 100)
    os.link(path, tmp_path / "b.txt")
    killed(path, "new\n" * 100, 10)
    path.unlink()
    os.mkfifo(path)
    assert [one.restored for one in bring_back()] == [False]
    assert path.is_fifo()


def test_a_copy_that_is_not_whole_counts_for_nothing(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes(b"0123456789")
    (tmp_path / "twin").hardlink_to(path)
    killed(path, "abcdefghij", 5)
    (copy,) = folders().in_place.iterdir()
    copy.write_bytes(copy.read_bytes()[:-3])
    assert bring_back() == []
    assert path.read_bytes() == b"abcde56789"
    assert not list(folders().in_place.iterdir())


MOUNTED = """
import asyncio, sys
from pathlib import Path
from tests.tools.folder import Folder, said
from tests.tools.test_kept_form import change

folder = Folder(Path(sys.argv[1]))
print(asyncio.run(change(folder, sys.argv[2], "a.txt")))
"""
BIND = 'mount --bind "$1/outside.txt" "$1/work/a.txt" && shift && exec "$@"'
WRAPPED = ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c", BIND, "-"]


def can_mount(folder: Path) -> bool:
    (folder / "outside.txt").touch()
    (folder / "work").mkdir(exist_ok=True)
    (folder / "work/a.txt").touch()
    words = [*WRAPPED, str(folder), "true"]
    tool = shutil.which("unshare")
    return bool(tool) and not subprocess.run(words, check=False, capture_output=True).returncode


@pytest.mark.parametrize("tool", ["write_file", "edit_file", "apply_patch"])
def test_a_mounted_file_is_written_in_place(tmp_path: Path, tool: str) -> None:
    if not can_mount(tmp_path):
        pytest.skip("this machine lets nobody mount")
    (tmp_path / "outside.txt").write_text("\n".join(OLD) + "\n")
    words = [*WRAPPED, str(tmp_path), sys.executable, "-c", MOUNTED, str(tmp_path / "work"), tool]
    done = subprocess.run(words, check=False, capture_output=True, text=True, cwd=Path.cwd())
    assert "Written in place: something is mounted there." in done.stdout, done.stderr
    assert (tmp_path / "outside.txt").read_text() == "\n".join(NEW) + "\n"
    assert (tmp_path / "work/a.txt").read_text() == ""


@pytest.mark.skipif(os.geteuid() != 0, reason="another user is needed")
def test_a_folder_that_takes_no_files_has_its_file_written_in_place() -> None:
    with tempfile.TemporaryDirectory() as made:
        Path(made).chmod(0o755)
        path = Path(made) / "a.txt"
        path.write_text("old")
        path.chmod(0o666)
        home = Path(made) / "home"
        home.mkdir(mode=0o777)
        home.chmod(0o777)
        state = path.stat()
        pid = os.fork()
        if pid == 0:
            try:
                os.environ["HOLDFAST_HOME"] = str(home)
                os.setgid(65534)
                os.setuid(65534)
                put(path, b"new", old=b"old", like=state, mode=0o666, check=lambda: None)
            except BaseException:  # noqa: BLE001 - whatever happens, this is a fork of the tests
                os._exit(1)
            os._exit(0)
        assert os.waitpid(pid, 0)[1] == 0
        assert path.read_text() == "new"
        assert (path.stat().st_uid, path.stat().st_ino) == (0, state.st_ino)


async def test_an_access_list_is_kept(folder: Folder) -> None:
    path = folder.write("a.txt", "\n".join(OLD) + "\n")
    try:
        os.setxattr(path, "user.note", b"mine")
    except (OSError, AttributeError):
        pytest.skip("no attributes here")
    words = await change(folder, "edit_file", "a.txt")
    assert "attributes of its own" in words
    assert os.getxattr(path, "user.note") == b"mine"


async def test_a_read_only_file_says_why(folder: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    path = folder.write("a.txt", "x")
    path.chmod(0o444)

    def refused(_path: object, _mode: int) -> bool:
        return False

    monkeypatch.setattr(os, "access", refused)
    await folder.call(read_file, path="a.txt")
    error = await folder.error(write_file, path="a.txt", content="y")
    assert error.startswith("a.txt is read-only: its mode is 444. Make it writable first")
    path.chmod(0o644)
    error = await folder.error(write_file, path="a.txt", content="y")
    assert error.startswith("a.txt is read-only for this user: another user owns it.")


def test_the_place_of_the_copies_is_ours_alone(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes(b"old")
    (tmp_path / "twin").hardlink_to(path)
    killed(path, "new", 1)
    (copy,) = folders().in_place.iterdir()
    assert stat.S_IMODE(copy.stat().st_mode) == 0o600
    assert stat.S_IMODE(copy.parent.stat().st_mode) == 0o700
    assert in_place.bring_back()[0].restored
