"""Edits of files that have changed since the model saw them: made elsewhere, else refused with the
difference."""

from __future__ import annotations

import itertools
import random

import pytest

from tests.tools.folder import Folder, said
from tui.core.errors import ToolError
from tui.tools.apply_patch import ApplyPatch
from tui.tools.edit_file import EditFile
from tui.tools.file_ledger import KEPT_BYTES, KEPT_FILE_BYTES
from tui.tools.read_file import ReadFile
from tui.tools.stale_text import StaleFileError
from tui.tools.write_file import WriteFile

read_file, edit_file, write_file, apply_patch = ReadFile(), EditFile(), WriteFile(), ApplyPatch()
TEXT = "".join(f"line {n}\n" for n in range(1, 21))


async def refusal(folder: Folder, old: str, new: str = "NEW", **more: object) -> StaleFileError:
    with pytest.raises(StaleFileError) as failed:
        await folder.call(edit_file, path="a.txt", old_string=old, new_string=new, **more)
    return failed.value


@pytest.fixture
async def seen(folder: Folder) -> Folder:
    """A folder with a text of 20 lines that the model has read."""
    folder.write("a.txt", TEXT)
    await folder.call(read_file, path="a.txt")
    return folder


async def test_an_edit_of_what_stands_is_made_and_shows_what_changed_elsewhere(
    seen: Folder,
) -> None:
    path = seen.write("a.txt", TEXT.replace("line 18\n", "line 18, by a person\n"))
    output = await seen.call(edit_file, path="a.txt", old_string="line 3\n", new_string="three\n")
    assert said(output).startswith("Edited a.txt at line 3: +1 −1 lines.\na.txt had changed else")
    assert "-line 18\n+line 18, by a person" in said(output)
    assert output.summary == "+1 −1 · changed elsewhere"
    assert path.read_text() == TEXT.replace("line 3\n", "three\n").replace(
        "line 18\n", "line 18, by a person\n"
    )
    again = await seen.call(edit_file, path="a.txt", old_string="line 4\n", new_string="four\n")
    assert said(again) == "Edited a.txt at line 4: +1 −1 lines."  # it knows now what is there


async def test_an_edit_of_what_changed_is_refused_with_the_difference(seen: Folder) -> None:
    path = seen.write("a.txt", TEXT.replace("line 3\n", "line 3, by a person\n"))
    error = await refusal(seen, "line 2\nline 3\n")
    assert error.message.startswith(
        "a.txt changed since it was last read; nothing was written.\nWhat changed:\n--- a/a.txt\n"
    )
    assert "-line 3\n+line 3, by a person\n" in error.message
    assert error.found is not None
    assert error.found.data == path.read_bytes()
    assert "by a person" in path.read_text()


async def test_a_passage_that_moved_is_not_edited_where_it_went(seen: Folder) -> None:
    """The only `line 3` is now somewhere else, which the model has not seen."""
    seen.write("a.txt", TEXT.replace("line 3\n", "gone\n") + "def other():\nline 3\n")
    assert "+def other():" in (await refusal(seen, "line 3\n")).message


async def test_replace_all_takes_nothing_that_was_added_since(seen: Folder) -> None:
    seen.write("a.txt", TEXT + "line 12\n")
    assert "+line 12" in (await refusal(seen, "line 12\n", replace_all=True)).message


async def test_what_matches_only_nearly_is_refused(seen: Folder) -> None:
    seen.write("a.txt", TEXT + "more\n")
    assert "+more" in (await refusal(seen, "line 3  \nline 4\n", "x\n")).message


async def test_a_passage_that_only_the_new_text_has_was_seen_in_another_way(seen: Folder) -> None:
    """The model ran a formatter and printed what it did."""
    path = seen.write("a.txt", TEXT.replace("line 3\n", "formatted(3)\n"))
    output = await seen.call(
        edit_file, path="a.txt", old_string="formatted(3)", new_string="formatted(33)"
    )
    assert "+formatted(3)\n" in said(output)
    assert "formatted(33)" in path.read_text()


async def test_a_deletion_inside_the_passage_is_a_change_of_it(seen: Folder) -> None:
    seen.write("a.txt", TEXT.replace("line 3\n", ""))
    assert "-line 3" in (await refusal(seen, "line 2\nline 3\nline 4\n")).message


async def test_a_change_that_is_too_large_to_show_has_to_be_read(seen: Folder) -> None:
    seen.write("a.txt", TEXT + "much\n" * 300)
    error = await refusal(seen, "line 3\n")
    assert str(error) == (
        "a.txt changed since it was last read; nothing was written. Read it again."
    )
    assert error.found is None


async def test_other_line_ends_stand_in_no_ones_way(seen: Folder) -> None:
    path = seen.write("a.txt", TEXT.replace("\n", "\r\n"))
    await seen.call(edit_file, path="a.txt", old_string="line 3\n", new_string="three\n")
    assert path.read_bytes() == TEXT.replace("line 3\n", "three\n").replace("\n", "\r\n").encode()


async def test_a_whole_file_is_not_replaced_unseen(seen: Folder) -> None:
    path = seen.write("a.txt", TEXT + "a person's line\n")
    error = await seen.error(write_file, path="a.txt", content="mine\n")
    assert "+a person's line" in error
    same = await seen.call(write_file, path="a.txt", content=TEXT + "a person's line\n")
    assert same.summary == "no change"
    assert path.read_text().endswith("a person's line\n")


def patched(*lines: str) -> str:
    return "\n".join(["*** Begin Patch", *lines, "*** End Patch"])


async def test_a_patch_is_applied_elsewhere_and_else_refused(seen: Folder) -> None:
    seen.write("a.txt", TEXT.replace("line 18\n", "person\n"))
    update = ("*** Update File: a.txt", "@@")
    output = await seen.call(apply_patch, patch=patched(*update, "-line 3", "+three"))
    assert "a.txt had changed elsewhere since you last saw it:" in said(output)
    assert "+person" in said(output)
    assert output.summary == "+1 −1 · changed elsewhere"
    seen.write("a.txt", TEXT.replace("line 4\n", "person 4\n"))
    for lines in (
        (*update, "-line 4", "+four"),
        ("*** Delete File: a.txt",),
        ("*** Update File: a.txt", "*** Move to: b.txt"),
    ):
        params = apply_patch.parse({"patch": patched(*lines)})
        with pytest.raises(StaleFileError) as failed:
            await apply_patch.run(params, seen.context())
        assert "+person 4" in failed.value.message
        assert (seen.root / "a.txt").exists()


async def test_what_is_kept_of_the_files_is_bounded(folder: Folder) -> None:
    count = KEPT_BYTES // KEPT_FILE_BYTES + 3
    for number in range(count):
        folder.write(f"{number}.txt", "x" * 99 + "\n" + "y\n" * (KEPT_FILE_BYTES // 2 - 60))
        await folder.call(read_file, path=f"{number}.txt", limit=1)
    kept = [folder.files.seen(folder.root / f"{number}.txt") for number in range(count)]
    sizes = [len(one.data or b"") for one in kept if one]
    assert sum(sizes) <= KEPT_BYTES
    assert not any(sizes[:3])
    assert all(sizes[3:])
    folder.write("large.txt", "z\n" * KEPT_FILE_BYTES)
    await folder.call(read_file, path="large.txt", limit=1)
    large = folder.files.seen(folder.root / "large.txt")
    assert large
    assert large.sha256
    assert large.data is None


async def test_no_edit_of_a_changed_file_loses_what_a_person_wrote(folder: Folder) -> None:
    """Random changes by a person, then an edit by what was seen: either refused, or both are
    there."""
    chance, outcomes = random.Random(1), {"made": 0, "refused": 0}
    marks = itertools.count()
    for _ in range(300):
        lines = [f"l{n % 7}" for n in range(chance.randrange(3, 15))]
        path = folder.write("a.txt", "\n".join(lines) + "\n")
        await folder.call(read_file, path="a.txt")
        theirs, mark = list(lines), f"person {next(marks)}"
        at = chance.randrange(len(lines))
        theirs[at : at + chance.randrange(2)] = [mark]
        path.write_text("\n".join(theirs) + "\n")
        first = chance.randrange(len(lines))
        old = "\n".join(lines[first : first + chance.randrange(1, 4)])
        why = ""
        try:
            await folder.call(edit_file, path="a.txt", old_string=old, new_string="MINE")
        except ToolError as error:
            why = str(error)
        outcomes["refused" if why else "made"] += 1
        before, now = "\n".join(theirs) + "\n", path.read_text()
        assert now == (before if why else before.replace(old, "MINE", 1))
        assert mark in now
        assert mark in why or not why
    assert min(outcomes.values()) > 30
