"""Decision 33: what a session changed can be shown, and brought back without losing anything."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from tests.tools.folder import Folder
from tui.context.file_changes import changes, restore, texts
from tui.session.records import Record
from tui.tools.apply_patch import ApplyPatch
from tui.tools.edit_file import EditFile
from tui.tools.read_file import ReadFile
from tui.tools.write_file import WriteFile

read_file, write_file, edit_file = ReadFile(), WriteFile(), EditFile()


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    return Folder(tmp_path)


class Story:
    """Calls of the real tools, as the records they leave."""

    def __init__(self, folder: Folder) -> None:
        self.folder = folder
        self.records: list[Record] = []

    async def do(
        self, tool: ReadFile | WriteFile | EditFile | ApplyPatch, **arguments: object
    ) -> None:
        output = await self.folder.call(tool, **arguments)
        data = {"is_error": output.is_error, "details": output.details}
        self.records.append(Record("tool_result", f"{len(self.records)}", None, "", data))


def kept(folder: Folder) -> Path:
    return folder.root / ".holdfast" / "tool-results"


async def test_33_several_writes_are_one_change(folder: Folder):
    folder.write("a.txt", "one\n")
    story = Story(folder)
    await story.do(read_file, path="a.txt")
    await story.do(edit_file, path="a.txt", old_string="one", new_string="two")
    await story.do(edit_file, path="a.txt", old_string="two", new_string="three")
    await story.do(write_file, path="b.txt", content="new\n")
    first, second = changes(story.records)
    assert (first.path.name, first.writes, first.created) == ("a.txt", 2, False)
    assert texts(first) == ("one\n", "three\n")
    assert (second.path.name, second.created) == ("b.txt", True)
    assert texts(second) == (None, "new\n")


async def test_a_file_with_hard_links_comes_back_in_all_of_them(folder: Folder):
    path = folder.write("a.txt", "one\n")
    (folder.root / "twin.txt").hardlink_to(path)
    story = Story(folder)
    await story.do(read_file, path="a.txt")
    await story.do(edit_file, path="a.txt", old_string="one", new_string="two")
    (change,) = changes(story.records)
    assert restore(change, kept(folder)).outcome == "restored"
    assert path.samefile(folder.root / "twin.txt")
    assert path.read_text() == "one\n"


async def test_33_files_are_brought_back_and_what_they_held_is_kept(folder: Folder):
    folder.write("a.txt", "one\n")
    story = Story(folder)
    await story.do(read_file, path="a.txt")
    await story.do(edit_file, path="a.txt", old_string="one", new_string="two")
    await story.do(write_file, path="b.txt", content="new\n")
    done = [restore(change, kept(folder)) for change in changes(story.records)]
    assert [each.outcome for each in done] == ["restored", "deleted"]
    assert (folder.root / "a.txt").read_text() == "one\n"
    assert not (folder.root / "b.txt").exists()
    copies = [each.kept.read_text() for each in done if each.kept]
    assert copies == ["two\n", "new\n"]
    again = [restore(change, kept(folder)) for change in changes(story.records)]
    assert [each.outcome for each in again] == ["unchanged", "unchanged"]


async def test_33_every_file_of_a_patch_is_brought_back(folder: Folder):
    folder.write("a.txt", "one\r\n")
    folder.write("gone.sh", "echo\n").chmod(0o750)
    folder.write("from.txt", "x\ny\n").chmod(0o640)
    story = Story(folder)
    for name in ("a.txt", "gone.sh"):
        await story.do(read_file, path=name)
    await story.do(edit_file, path="a.txt", old_string="one", new_string="two")
    lines = [
        *("*** Begin Patch", "*** Update File: a.txt", "@@", "-two", "+three"),
        *("*** Add File: new.txt", "+new", "*** Delete File: gone.sh"),
        *("*** Update File: from.txt", "*** Move to: to/to.txt", "@@", "-y", "+z"),
        "*** End Patch",
    ]
    await story.do(ApplyPatch(), patch="\n".join(lines))
    found = {change.path.name: change for change in changes(story.records)}
    assert list(found) == ["a.txt", "new.txt", "gone.sh", "to.txt", "from.txt"]
    assert (found["a.txt"].writes, texts(found["a.txt"])) == (2, ("one\r\n", "three\r\n"))
    assert texts(found["gone.sh"]) == ("echo\n", None)
    done = [restore(change, kept(folder)) for change in found.values()]
    assert [each.outcome for each in done] == [
        *("restored", "deleted", "restored", "deleted", "restored"),
    ]
    now = {
        str(path.relative_to(folder.root)): (path.read_bytes(), stat.S_IMODE(path.stat().st_mode))
        for path in folder.root.rglob("*")
        if path.is_file() and ".holdfast" not in path.parts
    }
    assert now.pop("a.txt")[0] == b"one\r\n"
    assert now == {"gone.sh": (b"echo\n", 0o750), "from.txt": (b"x\ny\n", 0o640)}
    again = [restore(change, kept(folder)) for change in found.values()]
    assert {each.outcome for each in again} == {"unchanged"}
    folder.write("gone.sh", "of somebody else\n")
    assert restore(found["gone.sh"], kept(folder)).outcome == "changed since"


async def test_33_a_file_that_a_patch_added_and_removed_is_no_change(folder: Folder):
    story = Story(folder)
    for line in ("*** Add File: a.txt\n+a", "*** Delete File: a.txt"):
        await story.do(ApplyPatch(), patch=f"*** Begin Patch\n{line}\n*** End Patch")
    assert changes(story.records) == []


async def test_33_somebody_elses_work_is_left_alone(folder: Folder):
    folder.write("a.txt", "one\n")
    story = Story(folder)
    await story.do(read_file, path="a.txt")
    await story.do(edit_file, path="a.txt", old_string="one", new_string="two")
    (folder.root / "a.txt").write_text("by hand\n")
    (change,) = changes(story.records)
    assert restore(change, kept(folder)).outcome == "changed since"
    assert (folder.root / "a.txt").read_text() == "by hand\n"


async def test_33_a_lost_or_forged_copy_is_said_to_be(folder: Folder):
    folder.write("a.txt", "one\n")
    story = Story(folder)
    await story.do(read_file, path="a.txt")
    await story.do(edit_file, path="a.txt", old_string="one", new_string="two")
    (change,) = changes(story.records)
    assert change.before
    change.before.write_text("forged")
    assert restore(change, kept(folder)).outcome == "lost"
    change.before.unlink()
    assert restore(change, kept(folder)).outcome == "lost"
    assert (folder.root / "a.txt").read_text() == "two\n"


async def test_33_only_what_came_after_a_point_is_brought_back(folder: Folder):
    folder.write("a.txt", "one\n")
    story = Story(folder)
    await story.do(read_file, path="a.txt")
    await story.do(edit_file, path="a.txt", old_string="one", new_string="two")
    await story.do(edit_file, path="a.txt", old_string="two", new_string="three")
    (later,) = changes(story.records[2:])
    assert restore(later, kept(folder)).outcome == "restored"
    assert (folder.root / "a.txt").read_text() == "two\n"


async def test_a_change_that_was_taken_back_is_none(folder: Folder):
    folder.write("a.txt", "one\n")
    story = Story(folder)
    await story.do(read_file, path="a.txt")
    await story.do(edit_file, path="a.txt", old_string="one", new_string="two")
    await story.do(edit_file, path="a.txt", old_string="two", new_string="one")
    assert changes(story.records) == []


@pytest.mark.parametrize(
    "data",
    [
        {},
        {"details": "no"},
        {"details": {"path": 3, "after_sha256": "x"}},
        {"details": {"path": "relative", "after_sha256": "x"}},
        {"is_error": True, "details": {"path": "/a", "after_sha256": "x"}},
    ],
)
def test_other_results_change_nothing(data: dict[str, object]):
    assert changes([Record("tool_result", "1", None, "", data)]) == []


async def test_33_nothing_is_brought_back_through_a_link(folder: Folder, tmp_path: Path):
    folder.write("deep/a.txt", "one\n")
    story = Story(folder)
    await story.do(read_file, path="deep/a.txt")
    await story.do(edit_file, path="deep/a.txt", old_string="one", new_string="two")
    await story.do(write_file, path="deep/new.txt", content="new\n")
    outside = tmp_path / "outside"
    outside.mkdir()
    for name, text in (("a.txt", "two\n"), ("new.txt", "new\n")):
        (outside / name).write_text(text)
    (folder.root / "deep").rename(folder.root / "kept")
    (folder.root / "deep").symlink_to(outside)
    outcomes = [restore(change, kept(folder)).outcome for change in changes(story.records)]
    assert "restored" not in outcomes
    assert "deleted" not in outcomes
    assert (outside / "a.txt").read_text() == "two\n"
    assert (outside / "new.txt").exists()
