"""read_file on what is really found on disks: large, binary, foreign, special and missing files."""

from __future__ import annotations

import base64
import os
import re
import socket
import tracemalloc
from pathlib import Path

import pytest

from tests.tools.folder import Folder, said
from tui.core.config import Guard
from tui.core.image_resize import MAX_SOURCE
from tui.core.workspace import Workspace
from tui.tools.paging import without_numbers
from tui.tools.read_file import ReadFile

PNG = b"\x89PNG\r\n\x1a\n" + b"\0\0\0\rIHDR" + bytes(40)
read_file = ReadFile()


@pytest.mark.parametrize("text", ["a\nb\n", "no end", "a\r\nb\r\n", "é\u2028\x0c\n", "  x\n\n\n"])
async def test_a_small_text_comes_back_with_its_lines_numbered(folder: Folder, text: str) -> None:
    folder.write("a.txt", text)
    shown = await folder.text(read_file, path="a.txt")
    assert shown == "".join(
        f"{number}\t{line}" for number, line in enumerate(re.findall(r"[^\n]*\n|[^\n]+", text), 1)
    )
    assert without_numbers(shown) == text.replace("\r\n", "\n")


async def test_L21_pages_follow_one_another(folder: Folder) -> None:
    folder.write("big.txt", "".join(f"line {n}\n" for n in range(1, 5001)))
    first = await folder.call(read_file, path="big.txt")
    footer = "[lines 1-1999 of 5000; continue with offset=2000]"
    assert said(first).endswith(f"\n1999\tline 1999\n{footer}")
    assert first.summary == "1999 lines, more follows"
    second = await folder.text(read_file, path="big.txt", offset=2000)
    assert second.startswith("2000\tline 2000\n")
    assert (
        await folder.text(read_file, path="big.txt", offset=4999, limit=5)
        == "4999\tline 4999\n5000\tline 5000\n"
    )
    line = await folder.text(read_file, path="big.txt", limit=1)
    assert line.startswith("1\tline 1\n[lines 1-1 ")


async def test_L21_a_page_keeps_to_what_the_context_allows(folder: Folder) -> None:
    folder.changes = {"read_page_bytes": 1000, "guard": Guard(clamp_lines=10)}
    folder.write("wide.txt", ("y" * 99 + "\n") * 50)
    text = await folder.text(read_file, path="wide.txt")
    assert text.endswith("[lines 1-7 of 50; continue with offset=8]")
    assert len(text) <= 1000
    folder.write("narrow.txt", "\n" * 50 + "x")
    assert (await folder.text(read_file, path="narrow.txt")).count("\n") == 9


async def test_a_line_of_30_mb_is_paged_without_being_loaded(folder: Folder) -> None:
    data = b"[" + '"é",'.encode() * 6_000_000 + b"0]"
    folder.write("one.json", data)
    tracemalloc.start()
    text, last = (await folder.text(read_file, path="one.json")).rsplit("\n", 1)
    text = text.removeprefix("1\t")
    at = len(text.encode())
    assert text.encode() == data[:at]
    assert at > 50_000
    assert last == f"[line 1, up to byte {at} of {len(data)}; continue with byte_offset={at}]"
    end = await folder.text(read_file, path="one.json", byte_offset=len(data) - 5)
    assert end == 'é",0]', "a byte inside a character means that character"
    assert tracemalloc.get_traced_memory()[1] < 8_000_000
    tracemalloc.stop()


async def test_a_sparse_file_of_5_gb_costs_little(folder: Folder) -> None:
    path = folder.write("sparse.log", b"start\n" * 3000)
    os.truncate(path, 5 << 30)
    tracemalloc.start()
    text = await folder.text(read_file, path="sparse.log")
    assert tracemalloc.get_traced_memory()[1] < 8_000_000
    tracemalloc.stop()
    assert text.startswith("1\tstart\n")
    assert text.endswith("[lines 1-1999; continue with offset=2000; up to byte 11,994 of 5.0 GB]")


async def test_a_file_of_nothing_but_nul_is_not_dumped(folder: Folder) -> None:
    os.truncate(folder.write("zeros"), 100 << 20)
    text = await folder.text(read_file, path="zeros")
    assert text == "zeros is a binary file: binary data of an unknown kind, 100.0 MB. Not shown."


async def test_L20_saved_output_is_text_even_with_nul_bytes(folder: Folder) -> None:
    folder.write(".holdfast/tool-results/toolu_x.txt", b"./a\0./b\0")
    text = await folder.text(read_file, path=".holdfast/tool-results/toolu_x.txt")
    assert text == "1\t./a\0./b\0"


@pytest.mark.parametrize(
    ("head", "media_type"),
    [
        (PNG, "image/png"),
        (b"\xff\xd8\xff\xe0" + bytes(20), "image/jpeg"),
        (b"GIF89a" + bytes(20), "image/gif"),
        (b"RIFF\x10\0\0\0WEBPVP8 " + bytes(20), "image/webp"),
    ],
)
async def test_images_come_as_images_by_what_they_are(
    folder: Folder, head: bytes, media_type: str
) -> None:
    data = head + bytes(range(256)) * 100
    folder.write("picture.bmp", data)
    output = await folder.call(read_file, path="picture.bmp")
    assert output.content == [
        {
            "type": "image",
            "source": {
                "type": "base64",
                "media_type": media_type,
                "data": base64.b64encode(data).decode(),
            },
        }
    ]


async def test_an_image_comes_whole_up_to_what_can_be_shrunk(folder: Folder) -> None:
    whole = 6 * 1024 * 1024  # more than the API takes: it is shrunk when it is recorded
    folder.write("most.png", PNG.ljust(whole, b"\1"))
    image = (await folder.call(read_file, path="most.png")).content[0]
    assert len(image["source"]["data"]) == whole // 3 * 4
    os.truncate(folder.write("more.png", PNG), MAX_SOURCE + 1)
    text = await folder.text(read_file, path="more.png")
    assert "PNG image" in text
    assert "too large" in text


@pytest.mark.parametrize(
    ("data", "kind"),
    [
        (b"PK\x03\x04\x14\0\0\0", "ZIP archive"),
        (b"\x1f\x8b\x08\0\0\0", "gzip archive"),
        (b"\x7fELF\x02\x01\x01\0", "ELF executable"),
        (b"SQLite format 3\0\x10\0", "SQLite database"),
        (b"abc\0def", "unknown kind"),
    ],
)
async def test_binary_files_are_named(folder: Folder, data: bytes, kind: str) -> None:
    folder.write("thing", data)
    text = await folder.text(read_file, path="thing")
    assert kind in text
    assert "Not shown" in text


async def test_a_text_that_begins_like_a_binary_file_is_text(folder: Folder) -> None:
    folder.write("a.txt", "GIF89a is a format.\n")
    assert await folder.text(read_file, path="a.txt") == "1\tGIF89a is a format.\n"


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-16-be", "utf-32"])
async def test_encodings_are_told_by_their_mark(folder: Folder, encoding: str) -> None:
    mark = "\ufeff" if encoding.endswith("be") else ""
    folder.write("a.txt", (mark + "grüße\n🜁 end\n").encode(encoding))
    assert await folder.text(read_file, path="a.txt") == "1\tgrüße\n2\t🜁 end\n"


async def test_other_encodings_are_shown_with_replacement_and_a_remark(folder: Folder) -> None:
    folder.write("a.txt", "grüße\n".encode("latin-1"))
    text = await folder.text(read_file, path="a.txt")
    assert text == "1\tgr\ufffd\ufffde\n[bytes that are not UTF-8 are shown as \ufffd]"


async def test_an_empty_file_says_so(folder: Folder) -> None:
    folder.write("empty")
    assert await folder.text(read_file, path="empty") == "[the file is empty]"


async def test_a_missing_file_suggests_what_is_there(folder: Folder) -> None:
    folder.write("src/settings.py")
    assert "Did you mean src/settings.py?" in await folder.error(read_file, path="src/Setings.py")
    assert "neither does its folder" in await folder.error(read_file, path="scr/settings.py")
    assert "find_by_name" in await folder.error(read_file, path="src/zzz")


async def test_special_files_never_block(folder: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    os.mkfifo(folder.root / "pipe")
    assert "is a FIFO" in await folder.error(read_file, path="pipe")
    assert "is a folder" in await folder.error(read_file, path=".")
    with socket.socket(socket.AF_UNIX) as server:
        monkeypatch.chdir(folder.root)  # the path of a socket must be short
        server.bind("sock")
        assert "socket" in await folder.error(read_file, path="sock")
    folder.changes = {"workspace": Workspace.at(folder.root, ceiling="/").widen(True)}
    assert "is a device" in await folder.error(read_file, path="/dev/zero")


async def test_nothing_outside_the_workspace_is_read(folder: Folder, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("s")
    (folder.root / "link").symlink_to(tmp_path / "secret")
    (folder.root / "zero").symlink_to("/dev/zero")
    for path in ("link", "zero", "../secret", str(tmp_path / "secret"), "a/../../secret"):
        assert "outside the workspace" in await folder.error(read_file, path=path)


async def test_a_symlink_inside_the_workspace_is_followed(folder: Folder) -> None:
    folder.write("real.txt", "here\n")
    (folder.root / "link").symlink_to("real.txt")
    assert await folder.text(read_file, path="link") == "1\there\n"


async def test_an_unreadable_file_is_a_clear_error(
    folder: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder.write("locked")

    def denied(*_args: object, **_kwargs: object) -> int:
        raise PermissionError(13, "Permission denied")

    with monkeypatch.context() as patched:
        patched.setattr("tui.tools.file_access.os.open", denied)
        error = await folder.error(read_file, path="locked")
    assert error == (
        "Couldn't read locked: Permission denied. The permissions don't allow it; ask the user."
    )


async def test_names_that_are_no_text_can_be_named_in_errors(folder: Folder) -> None:
    folder.write(os.fsdecode(b"caf\xe9.txt"), "x")
    error = await folder.error(read_file, path="cafe.txt")
    assert "Did you mean caf\\xe9.txt?" in error
    error.encode()


async def test_wrong_arguments_are_named(folder: Folder) -> None:
    folder.write("a", "x")
    assert "offset" in await folder.error(read_file, path="a", offset=0)
    assert "past the end" in await folder.error(read_file, path="a", offset=2)
    assert "past the end" in await folder.error(read_file, path="a", byte_offset=1)


async def test_paths_that_cannot_exist(folder: Folder) -> None:
    folder.write("~nobody-here/a.txt", "a plain name\n")
    assert await folder.text(read_file, path="~nobody-here/a.txt") == "1\ta plain name\n"
    assert "surrogate" in await folder.error(read_file, path="\ud83d.txt")
    assert "NUL" in await folder.error(read_file, path="a\0b")
    assert "doesn't exist" in await folder.error(read_file, path="x" * 300)
    assert "doesn't exist" in await folder.error(read_file, path="~nobody-here/a.txt/b")
