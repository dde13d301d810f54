"""apply_patch: several files or none, in both formats, and clear words where it does not apply."""

from __future__ import annotations

import os
import stat
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.tools.folder import Folder, said
from tui.core.errors import ToolError
from tui.tools.apply_patch import ApplyPatch
from tui.tools.diff import unified
from tui.tools.edit_file import EditFile
from tui.tools.patch_format import label_of, named_paths, parse_patch
from tui.tools.patch_hunks import apply_hunks
from tui.tools.read_file import ReadFile
from tui.tools.write_file import WriteFile

apply_patch, read_file = ApplyPatch(), ReadFile()


def marked(*lines: str) -> str:
    return "\n".join(["*** Begin Patch", *lines, "*** End Patch"])


def update(*lines: str, path: str = "a.txt") -> str:
    return marked(f"*** Update File: {path}", *lines)


def contents(folder: Folder) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder.root)): path.read_bytes()
        for path in folder.root.rglob("*")
        if path.is_file() and ".holdfast" not in path.parts
    }


async def patched(folder: Folder, before: str | bytes, patch: str) -> bytes:
    """What a patch makes of a.txt."""
    path = folder.write("a.txt", before)
    await folder.call(apply_patch, patch=patch)
    return path.read_bytes()


async def refused(folder: Folder, patch: str) -> str:
    """Why a patch is refused. Nothing is changed then."""
    before = contents(folder)
    try:
        params = apply_patch.parse({"patch": patch})
        with pytest.raises(ToolError) as failed:
            await apply_patch.run(params, folder.context())
    except ToolError as error:
        assert contents(folder) == before
        return str(error)
    assert contents(folder) == before
    assert not folder.left_over()
    said_so = ("Nothing was changed.", "nothing was written.")
    assert any(words in str(failed.value) for words in said_so)
    return str(failed.value)


async def test_several_files_change_with_one_patch(folder: Folder) -> None:
    folder.write("src/app.py", "def main():\n    run()\n\n\ndef other():\n    run()\n")
    folder.write("old.txt", "gone\n").chmod(0o640)
    folder.write("a.sh", "echo 1\necho 2\n").chmod(0o755)
    await folder.call(read_file, path="old.txt")
    patch = marked(
        "*** Update File: src/app.py",
        "@@ def other():",
        "-    run()",
        "+    walk()",
        "*** Add File: docs/deep/new.md",
        "+# New",
        "+",
        "*** Delete File: old.txt",
        "*** Update File: a.sh",
        "*** Move to: bin/b.sh",
        "@@",
        " echo 1",
        "-echo 2",
        "+echo 3",
    )
    preview = await folder.preview(apply_patch, patch=patch)
    assert (folder.root / "old.txt").exists()
    output = await folder.call(apply_patch, patch=patch)
    assert contents(folder) == {
        "src/app.py": b"def main():\n    run()\n\n\ndef other():\n    walk()\n",
        "docs/deep/new.md": b"# New\n\n",
        "bin/b.sh": b"echo 1\necho 3\n",
    }
    assert stat.S_IMODE((folder.root / "bin/b.sh").stat().st_mode) == 0o755
    assert said(output).splitlines() == [
        "Edited src/app.py: +1 −1 lines.",
        "Created docs/deep/new.md: 7 B.",
        "Deleted old.txt.",
        "Moved a.sh to bin/b.sh: +1 −1 lines.",
    ]
    assert (output.summary, preview.text) == ("+4 −3", output.display)
    heads = [line for line in output.display.splitlines() if line[:4] in {"--- ", "+++ "}]
    assert heads == [
        *("--- a/src/app.py", "+++ b/src/app.py", "--- /dev/null", "+++ b/docs/deep/new.md"),
        *("--- a/old.txt", "+++ /dev/null", "--- a/a.sh", "+++ b/bin/b.sh"),
    ]
    files: list[dict[str, Any]] = output.details["files"]
    assert [Path(file["path"]).name for file in files] == [
        *("app.py", "new.md", "old.txt", "b.sh", "a.sh"),
    ]
    gone = files[2]
    assert Path(gone["before"]).read_bytes() == b"gone\n"
    assert gone["before_sha256"] == sha256(b"gone\n").hexdigest()
    assert (gone["after_sha256"], gone["mode"]) == (None, 0o640)
    assert files[1]["before"] is None
    assert not folder.left_over()


async def test_the_ledger_knows_what_a_patch_wrote(folder: Folder) -> None:
    folder.write("seen.txt", "a\n")
    folder.write("unseen.txt", "a\n")
    await folder.call(read_file, path="seen.txt")
    hunk = ("@@", "-a", "+b")
    await folder.call(
        apply_patch,
        patch=marked(
            *("*** Update File: seen.txt", *hunk, "*** Update File: unseen.txt", *hunk),
            *("*** Add File: new.txt", "+a"),
        ),
    )
    edit, write = EditFile(), WriteFile()
    for path in ("seen.txt", "new.txt"):
        await folder.call(write, path=path, content="c\n")
    change = {"old_string": "b", "new_string": "c"}
    assert "hasn't been read" in await folder.error(edit, path="unseen.txt", **change)
    move = marked("*** Update File: unseen.txt", "*** Move to: moved.txt")
    await folder.call(apply_patch, patch=move)
    assert "hasn't been read" in await folder.error(edit, path="moved.txt", **change)
    await folder.call(apply_patch, patch=marked("*** Delete File: new.txt"))
    folder.write("new.txt", "of somebody else\n")
    assert "hasn't been read" in await folder.error(write, path="new.txt", content="")


async def test_nothing_happens_unless_all_can(folder: Folder) -> None:
    folder.write("a.txt", "one\n")
    folder.write("b.txt", "two\n")
    good = ("*** Update File: a.txt", "@@", "-one", "+1", "*** Add File: new/c.txt", "+c")
    for bad, why in (
        (("*** Update File: b.txt", "@@", "-three", "+3"), "The hunk for b.txt doesn't apply"),
        (("*** Add File: b.txt", "+x"), "b.txt exists already, so it can't be added"),
        (("*** Delete File: b.txt",), "b.txt exists and hasn't been read"),
        (("*** Delete File: d.txt",), "d.txt doesn't exist"),
        (("*** Update File: b.txt", "*** Move to: a.txt", "@@", "-two", "+2"), "names a.txt twice"),
        (("*** Update File: ../x.txt", "@@", "-two", "+2"), "outside the workspace"),
        (("*** Update File: b.txt", "@@", " two"), "changes nothing in b.txt"),
        (("*** Add File: new/../new/c.txt", "+x"), "names new/c.txt twice"),
    ):
        params = apply_patch.parse({"patch": marked(*good, *bad)})
        before = contents(folder)
        with pytest.raises(ToolError) as failed:
            await apply_patch.run(params, folder.context())
        assert why in str(failed.value)
        assert contents(folder) == before
        assert not (folder.root / "new").exists()


async def test_a_file_that_changed_since_it_was_read_is_left_alone(folder: Folder) -> None:
    path = folder.write("a.txt", "one\ntwo\n")
    await folder.call(read_file, path="a.txt")
    path.write_text("one!\ntwo\nthree\n")
    assert "changed since it was last read" in await refused(folder, update("@@", "-one", "+1"))


async def test_what_was_written_is_put_back_when_a_write_fails(
    folder: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder.write("a.txt", "one\n").chmod(0o600)
    folder.write("b.txt", "two\n")
    folder.write("c.txt", "three\n")
    for name in ("a.txt", "c.txt"):
        await folder.call(read_file, path=name)
    real = os.replace

    def full(source: str, target: str, **more: int) -> None:
        if target == "b.txt":
            raise OSError(28, "No space left on device")
        real(source, target, **more)

    before = contents(folder)
    patch = marked(
        *("*** Update File: a.txt", "@@", "-one", "+1", "*** Add File: new/d.txt", "+d"),
        *("*** Update File: b.txt", "@@", "-two", "+2", "*** Delete File: c.txt"),
    )
    with monkeypatch.context() as patching:
        patching.setattr("tui.core.files.os.replace", full)
        error = await folder.error(apply_patch, patch=patch)
    assert "Couldn't write b.txt: No space left on device" in error
    assert "What was written before was put back: no file is changed." in error
    assert contents(folder) == before
    assert stat.S_IMODE((folder.root / "a.txt").stat().st_mode) == 0o600
    assert not (folder.root / "new").exists()
    assert not list((folder.root / ".holdfast/tool-results").glob("*.before*"))
    await folder.call(apply_patch, patch=patch)
    assert set(contents(folder)) == {"a.txt", "b.txt", "new/d.txt"}


async def test_what_somebody_else_changed_meanwhile_is_not_put_back(
    folder: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = folder.write("a.txt", "one\n")
    folder.write("b.txt", "two\n")
    real = os.replace

    def full(source: str, target: str, **more: int) -> None:
        if target == "b.txt":
            path.write_text("of somebody else\n")
            raise OSError(28, "No space left on device")
        real(source, target, **more)

    monkeypatch.setattr("tui.core.files.os.replace", full)
    hunks = ("*** Update File: a.txt", "@@", "-one", "+1", "*** Update File: b.txt", "@@", "-two")
    error = await folder.error(apply_patch, patch=marked(*hunks))
    assert "still there: a.txt (changed meanwhile)" in error
    assert path.read_text() == "of somebody else\n"


MARKED = [
    pytest.param("a\nb\nc\n", update(" a", "-b", "+B", " c"), "a\nB\nc\n", id="no @@"),
    pytest.param("a\nb\n", update("@@", " b", "+c"), "a\nb\nc\n", id="at the end"),
    pytest.param("a\nb", update("@@", "-b", "+c"), "a\nc", id="no newline"),
    pytest.param("a\nb", update("@@", "-b"), "a\n", id="the last line goes"),
    pytest.param("a\nb\n", update("@@", "-b"), "a\n", id="a last line with newline goes"),
    pytest.param("", update("@@", "+a"), "a\n", id="an empty file"),
    pytest.param("a\n", update("@@", "+b"), "a\nb\n", id="only added"),
    pytest.param("f\nx\ng\nx\n", update("@@ f", "+y"), "f\ny\nx\ng\nx\n", id="added below"),
    pytest.param("f\nx\ng\nx\n", update("@@ g", "-x", "+y"), "f\nx\ng\ny\n", id="by its line"),
    pytest.param(
        "class A:\n  f()\n  x\nclass B:\n  f()\n  x\n",
        update("@@ class B", "@@   f()", "-  x", "+  y"),
        "class A:\n  f()\n  x\nclass B:\n  f()\n  y\n",
        id="two lines lead there",
    ),
    pytest.param("x\ny\nx\n", update("@@", "-x", "*** End of File"), "x\ny\n", id="end of file"),
    pytest.param(
        "x\na\nx\nb\n", update("@@", " a", "@@", "-x", "+X"), "x\na\nX\nb\n", id="in order"
    ),
    pytest.param("a\n\nb\n", update("@@", " a", "", "-b", "+c", ""), "a\n\nc\n", id="blank lines"),
    pytest.param("a\r\nb\r\n", update("@@", " a", "-b", "+c", "+d"), "a\r\nc\r\nd\r\n", id="crlf"),
    pytest.param("\tif a:\n\t\tb\n", update("@@", " if a:", "-    b", "+    c"), None, id="shift"),
    pytest.param("a  \nb\n", update("@@", " a", "-b", "+c"), "a  \nc\n", id="trailing"),
    pytest.param("a\nb\n", update("@@", " 1\ta", "-2\tb", "+2\tc"), "a\nc\n", id="numbered"),
]


@pytest.mark.parametrize(("text", "patch", "after"), MARKED)
async def test_hunks_of_a_marked_patch(
    folder: Folder, text: str, patch: str, after: str | None
) -> None:
    expected = "\tif a:\n\t\tc\n" if after is None else after
    assert (await patched(folder, text, patch)).decode() == expected


DIFF = "--- a/a.txt\n+++ b/a.txt\n"
UNIFIED = [
    pytest.param("a\nb\nc\n", DIFF + "@@ -1,3 +1,3 @@\n a\n-b\n+B\n c\n", "a\nB\nc\n", id="plain"),
    pytest.param("a\nb\nc\n", DIFF + "@@ -9,9 +9,9 @@ f\n a\n-b\n+B", "a\nB\nc\n", id="bad counts"),
    pytest.param("x\nx\nx\n", DIFF + "@@ -2 +2 @@\n-x\n+y\n", "x\ny\nx\n", id="by number"),
    pytest.param(
        "n\nx\n\nx\n", DIFF + "@@ -1 +1,2 @@\n n\n+m\n@@ -4 +5 @@\n-x\n+y\n", "n\nm\nx\n\ny\n",
        id="numbers of the file before",
    ),
    pytest.param(
        "a\nb\n", DIFF + "@@ -2 +2 @@\n-b\n+c\n\\ No newline at end of file\n", "a\nc", id="unended"
    ),
    pytest.param(
        "a", DIFF + "@@ -1 +1 @@\n-a\n\\ No newline at end of file\n+b\n", "b\n", id="ended"
    ),
    pytest.param("-- a\n", DIFF + "@@ -1 +1 @@\n--- a\n+++ b\n", "++ b\n", id="like a header"),
    pytest.param(
        "a\n", "```diff\n" + DIFF + "@@ -1 +1 @@\n-a\n+b\n```\n", "b\n", id="in a code block"
    ),
    pytest.param(
        "a\n",
        "From: x\n\n---\n a.txt | 2 +-\n\ndiff --git a/a.txt b/a.txt\nindex 1..2 100644\n"
        + DIFF + "@@ -1 +1 @@\n-a\n+b\n-- \n2.43.0\n",
        "b\n",
        id="a mail",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("text", "patch", "after"), UNIFIED)
async def test_hunks_of_a_unified_diff(folder: Folder, text: str, patch: str, after: str) -> None:
    assert (await patched(folder, text, patch)).decode() == after


async def test_gits_headers(folder: Folder) -> None:
    folder.write("old name.txt", "a\nb\n")
    folder.write("gone.txt", "x\ny\n")
    folder.write("move.txt", "same\n")
    folder.write("empty.txt", "")
    await folder.call(read_file, path="empty.txt")
    patch = (
        "diff --git a/old name.txt b/new name.txt\nsimilarity index 50%\n"
        "rename from old name.txt\nrename to new name.txt\n"
        "--- a/old name.txt\n+++ b/new name.txt\n@@ -1,2 +1,2 @@\n a\n-b\n+c\n"
        "diff --git a/gone.txt b/gone.txt\ndeleted file mode 100644\n"
        "--- a/gone.txt\n+++ /dev/null\n@@ -1,2 +0,0 @@\n-x\n-y\n"
        "diff --git a/move.txt b/moved.txt\nsimilarity index 100%\n"
        "rename from move.txt\nrename to moved.txt\n"
        "diff --git a/run.sh b/run.sh\nnew file mode 100755\n"
        "--- /dev/null\n+++ b/run.sh\n@@ -0,0 +1 @@\n+echo\n"
        'diff --git "a/gr\\303\\274n" "b/gr\\303\\274n"\nnew file mode 100644\n'
        "diff --git a/empty.txt b/empty.txt\ndeleted file mode 100644\n"
    )
    assert named_paths(patch) == (
        *("old name.txt", "new name.txt", "gone.txt", "move.txt", "moved.txt", "run.sh", "grün"),
        "empty.txt",
    )
    await folder.call(apply_patch, patch=patch)
    assert contents(folder) == {
        "new name.txt": b"a\nc\n",
        "moved.txt": b"same\n",
        "run.sh": b"echo\n",
        "grün": b"",
    }
    assert os.access(folder.root / "run.sh", os.X_OK)
    assert not os.access(folder.root / "grün", os.X_OK)


@pytest.mark.parametrize(
    ("patch", "why"),
    [
        ("", "in no known format"),
        ("hello", "in no known format"),
        ("*** Begin Patch\n*** End Patch", "names no file"),
        ("*** Begin Patch\n*** Add File: a\n+x\n", "no *** End Patch line"),
        (marked("*** Add File: a", "x"), "Line 3 of the patch belongs to no file: x."),
        (marked("+x"), "Line 2 of the patch belongs to no file"),
        (marked("*** Delete File: a", "-x"), "Line 3 of the patch belongs to no file"),
        (update("@@", "x y"), "Line 4 of the patch begins with none of space, - and +: x y."),
        (update(), "updates a.txt, but has no hunk for it"),
        ("diff --git a/x b/x\nGIT binary patch\n", "is of a binary file"),
        ("diff --git a/x b/x\nold mode 100644\nnew mode 100755\n", "changes a file's mode"),
        ("diff --git a/x b/y\ncopy from x\ncopy to y\n", "copies a file"),
    ],
)
async def test_what_is_no_patch_is_refused_at_once(folder: Folder, patch: str, why: str) -> None:
    with pytest.raises(ToolError) as failed:
        apply_patch.parse({"patch": patch})
    assert why in str(failed.value)
    assert named_paths(patch) == ()


@pytest.mark.parametrize(
    ("text", "patch", "why"),
    [
        ("x\ny\nx\n", update("@@", "-x", "+z"), "The hunk for a.txt matches 2 places (lines 1, 3)"),
        ("f\nx\nf\nx\n", update("@@ f", "-x"), "matches 2 places (lines 2, 4)"),
        ("f\nx\n", update("@@ g", "-x"), "no line is 'g', as its @@ line says"),
        ("x\nx\nf\n", update("@@ f", "-x"), "its lines don't come after its @@ line"),
        ("  x\n\tx\n", update("@@", "-    x"), "matches 2 places (lines 1, 2), though indentation"),
        ("x\nx\n", DIFF + "@@ -7 +7 @@\n-x\n+y", "matches 2 places (lines 1, 2)"),
        ("x\n", DIFF + "@@ -1,0 +2 @@\n+y", "has no lines that stay"),
        ("a\nb\nc\n", update("@@", "-a", "-b", "@@", "-b", "-c"), "change the same lines"),
        ("one\ntotal = 1\n", update("@@", "-totl = 1", "+x"), "closest lines are 2-2:\ntotal = 1"),
        ("a\nb\n", update("@@", "-a", "@@", "-q"), "Hunk 2 of 2 for a.txt doesn't apply"),
        ("b\n", update("@@", "-a", "+b"), "may have been applied already"),
        ("a\nb\n", "--- a/a.txt\n+++ /dev/null\n@@ -1 +0,0 @@\n-a", "more than the patch removes"),
        (b"a\0b", update("@@", "-a"), "isn't a text file"),
        ("gr\xf6\n".encode("latin-1"), update("@@", "+\xe9"), "isn't UTF-8"),
    ],
)
async def test_a_patch_that_does_not_apply_says_why(
    folder: Folder, text: str | bytes, patch: str, why: str
) -> None:
    folder.write("a.txt", text)
    assert why in await refused(folder, patch)


async def test_a_near_miss_is_shown(folder: Folder) -> None:
    folder.write("a.txt", "  a\n  b\n")
    output = await folder.call(apply_patch, patch=update("@@", " a", "-b", "+c"))
    assert "Lines 1-2 matched the hunk for a.txt, though indentation differs." in said(output)
    assert "They were:\n  a\n  b" in said(output)
    assert output.summary == "+1 −1 · not exact"


async def test_bytes_that_are_no_utf8_and_binary_files(folder: Folder) -> None:
    before = "gr\xf6\xdfe = 1\nb\n".encode("latin-1")
    assert await patched(folder, before, update("@@", "-b", "+c")) == before.replace(b"b\n", b"c\n")
    folder.write("pic", b"\x89PNG\r\n\x1a\n" + bytes(40))
    await folder.call(read_file, path="pic")
    output = await folder.call(apply_patch, patch=marked("*** Delete File: pic"))
    assert "pic: not shown as text, is deleted" in output.display


async def test_several_updates_of_one_file_are_one(folder: Folder) -> None:
    folder.write("a.txt", "a\nb\n")
    patch = marked(
        *("*** Update File: a.txt", "@@", "-a", "+A", "*** Update File: a.txt", "@@", "-b", "+B"),
    )
    output = await folder.call(apply_patch, patch=patch)
    assert contents(folder) == {"a.txt": b"A\nB\n"}
    assert len(output.details["files"]) == 1


def test_what_a_card_and_the_permissions_get_to_know() -> None:
    files = [f"*** Delete File: f{n}" for n in range(5)]
    params = apply_patch.parse({"patch": marked(*files)})
    assert apply_patch.paths(params) == ("f0", "f1", "f2", "f3", "f4")
    assert apply_patch.subject(params) == "f0, f1, f2, f3, f4"
    assert apply_patch.label(params) == "f0, f1, f2 and 2 more files"
    assert label_of(["a"]) == "a"


_ROWS = st.lists(st.sampled_from(["a", "b", " b", "", "x ", "-- y", "++ z", "@@ q"]), max_size=8)


@settings(deadline=None, max_examples=300)
@given(_ROWS, _ROWS, st.booleans(), st.booleans())
def test_a_diff_of_two_texts_makes_the_one_of_the_other(
    old: list[str], new: list[str], old_ends: bool, new_ends: bool
) -> None:
    before = "\n".join(old) + ("\n" if old_ends and old else "")
    after = "\n".join(new) + ("\n" if new_ends and new else "")
    diff = unified(before, after, "f", whole=True)
    if not diff.text or not before:
        return
    (file,) = parse_patch(diff.text)
    result = apply_hunks(file, before, "f")
    assert (result.text, result.notes) == (after, ())
