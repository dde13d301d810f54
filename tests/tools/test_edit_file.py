"""edit_file: exact, and clear about why a passage was not found."""

from __future__ import annotations

import os
import re
import stat
from pathlib import Path

import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from tests.tools.folder import Folder, said
from tui.tools.edit_file import EditFile
from tui.tools.file_ledger import FileLedger
from tui.tools.read_file import ReadFile
from tui.tools.text_match import NUMBERS, TextMatch, find_matches, splice

LIKE = str.maketrans("“”–\u00a0", '""- ')

edit_file, read_file = EditFile(), ReadFile()


async def edited(folder: Folder, before: str | bytes, old: str, new: str, **more: bool) -> bytes:
    path = folder.write("f.txt", before)
    await folder.call(read_file, path="f.txt")
    await folder.call(edit_file, path="f.txt", old_string=old, new_string=new, **more)
    return path.read_bytes()


async def refused(folder: Folder, before: str | bytes, old: str, new: str, **more: bool) -> str:
    path = folder.write("f.txt", before)
    data = path.read_bytes()
    await folder.call(read_file, path="f.txt")
    error = await folder.error(edit_file, path="f.txt", old_string=old, new_string=new, **more)
    assert path.read_bytes() == data
    return error


async def test_one_passage_is_replaced(folder: Folder) -> None:
    folder.write("src/f.py", "def f():\n    return 1\n\n\ndef g():\n    return 2\n")
    await folder.call(read_file, path="src/f.py")
    output = await folder.call(
        edit_file, path="src/f.py", old_string="    return 2", new_string="    x = 2\n    return x"
    )
    assert (folder.root / "src/f.py").read_text().endswith("def g():\n    x = 2\n    return x\n")
    assert said(output) == "Edited src/f.py at line 6: +2 −1 lines."
    assert output.summary == "+2 −1"
    assert "-    return 2\n+    x = 2\n+    return x" in output.display
    assert output.display.startswith("--- a/src/f.py\n+++ b/src/f.py\n@@ -3,4 +3,5 @@\n")
    before = Path(output.details["before"])
    assert before.read_text().endswith("return 2\n")


async def test_every_passage_is_replaced_when_asked(folder: Folder) -> None:
    assert await edited(folder, "a b a b a", "a", "xx", replace_all=True) == b"xx b xx b xx"
    assert await edited(folder, "aaaa", "aa", "a", replace_all=True) == b"aa"
    assert await edited(folder, "x\ny\n", "x\n", "") == b"y\n"


async def test_regex_characters_mean_themselves(folder: Folder) -> None:
    assert await edited(folder, "a.c abc $x", "a.c", r"\1 \g<0>") == rb"\1 \g<0> abc $x"


async def test_an_ambiguous_passage_says_where(folder: Folder) -> None:
    error = await refused(folder, "x = 1\ny\nx = 1\nx = 1\n", "x = 1", "x = 2")
    assert "occurs 3 times in f.txt (lines 1, 3, 4)" in error
    assert "replace_all" in error
    error = await refused(folder, "x\n" * 50, "x", "y")
    assert "(lines 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, …)" in error


async def test_blanks_that_differ_are_named_with_the_lines(folder: Folder) -> None:
    text = "class A:\n\tdef f(self):\n\t\treturn 1\n\nend\n"
    error = await refused(folder, text, "  def f(self):\n        return 1", "x")
    assert "Lines 2-3 differ from it only in blanks" in error
    assert "\tdef f(self):\n\t\treturn 1\n" in error
    assert "only in blanks" in await refused(folder, text, "def  f(self):", "x")
    assert "only in blanks" in await refused(folder, "last line", "last line\n", "x")


async def test_the_closest_lines_are_shown(folder: Folder) -> None:
    text = "".join(f"value_{n} = compute({n})\n" for n in range(100)) + "totally = different\n"
    error = await refused(folder, text, "before\ntotaly = diferent", "x")
    assert "The closest lines are 100-101:\nvalue_99 = compute(99)\ntotally = different\n" in error
    assert "closest" not in await refused(folder, "abc\n", "zzzzzzzzzzzz", "x")


async def test_a_change_that_was_made_already_is_recognised(folder: Folder) -> None:
    error = await refused(folder, "x = 2  # two\n", "x = 1", "x = 2  # two")
    assert "may have been made already" in error


async def test_requests_that_make_no_sense(folder: Folder) -> None:
    assert "old_string is empty" in await refused(folder, "x", "", "y")
    assert "are the same" in await refused(folder, "x", "x", "x")
    assert "only in line endings" in await refused(folder, "a\r\nb", "a\r\nb", "a\nb")
    assert "surrogate" in await refused(folder, "x", "x", "\udce4")
    assert "isn't in f.txt" in await refused(folder, "", "x", "y")


async def test_crlf_is_matched_and_kept(folder: Folder) -> None:
    before = "one\r\ntwo\r\nthree\r\n"
    expected = b"one\r\n2\r\n2b\r\nthree\r\n"
    assert await edited(folder, before, "one\ntwo\n", "one\n2\n2b\n") == expected
    assert await edited(folder, before, "one\r\ntwo\r\n", "one\r\n2\r\n2b\r\n") == expected
    assert await edited(folder, before, "two", "2\n2b") == expected
    assert await edited(folder, "one\ntwo\n", "one\r\ntwo", "1\r\n2") == b"1\n2\n"


async def test_mixed_line_endings_outside_the_passage_are_untouched(folder: Folder) -> None:
    assert await edited(folder, "a\nb\r\nc\nd\r\n", "b\nc", "B\nC") == b"a\nB\r\nC\nd\r\n"
    assert await edited(folder, "a\r\nb\nc\r\n", "b\nc", "B\nC") == b"a\r\nB\nC\r\n"
    assert await edited(folder, "a\r\nb\n", "\nb", "\nx") == b"a\r\nx\n"


async def test_several_edits_are_made_in_order_with_one_call(folder: Folder) -> None:
    path = folder.write("f.txt", "a = 1\nb = 2\nc = 3\n")
    await folder.call(read_file, path="f.txt")
    edits = [
        {"old_string": "a = 1", "new_string": "a = 10"},
        {"old_string": "a = 10\nb", "new_string": "a = 10\nbb"},
        {"old_string": " = ", "new_string": " := ", "replace_all": True},
    ]
    output = await folder.call(edit_file, path="f.txt", edits=edits)
    assert path.read_text() == "a := 10\nbb := 2\nc := 3\n"
    assert said(output) == "Edited f.txt in 5 places (lines 1, 1, 1, 2, 3): +3 −3 lines."
    again = {"old_string": "c", "new_string": "d"}
    await folder.call(
        edit_file, path="f.txt", edits=f'[{{"old_string": "{"c"}", "new_string": "d"}}]'
    )
    assert path.read_text().endswith("d := 3\n")
    assert "it isn't clear" in await folder.error(edit_file, path="f.txt", edits=[again], **again)


async def test_one_edit_that_fails_leaves_all_undone(folder: Folder) -> None:
    path = folder.write("f.py", "a = 1\nb = 2\n")
    await folder.call(read_file, path="f.py")
    good = {"old_string": "a = 1", "new_string": "a = 2"}
    for bad, why in (
        ({"old_string": "a = 1", "new_string": "x"}, "old_string isn't in f.py."),
        ({"old_string": " = 2", "new_string": "x"}, "occurs 2 times in f.py (lines 1, 2)."),
        ({"old_string": "", "new_string": "x"}, "old_string is empty."),
        ({"old_string": "x", "new_string": "\ud800"}, "surrogate"),
    ):
        error = await folder.error(edit_file, path="f.py", edits=[good, bad])
        assert error.startswith("Edit 2 of 2: ")
        assert why in error
        assert "Nothing was changed." in error
        assert path.read_text() == "a = 1\nb = 2\n"
    back = {"old_string": "a = 2", "new_string": "a = 1"}
    assert "undo each other" in await folder.error(edit_file, path="f.py", edits=[good, back])
    assert "edits" in await folder.error(edit_file, path="f.py", edits=[])


NEAR = [
    pytest.param("if x:\n        go()\n", "if x:\n    go()  \n", "if x:\n    go()\n    stop()\n",
                 "if x:\n        go()\n", "", "", id="not one shift"),
    pytest.param("class A:\n    def f(self):\n        return 1\n", "def f(self):\n    return 1\n",
                 "def f(self):\n    x = 1\n\n    return x\n",
                 "class A:\n    def f(self):\n        x = 1\n\n        return x\n",
                 "Lines 2-3", "indentation differs", id="deeper in the file"),
    pytest.param("def f():\n    a\nend\n", "        def f():\n            a\n        end",
                 "        def f():\n            b\n        end",
                 "def f():\n    b\nend\n", "Lines 1-3", "indentation differs", id="less deep"),
    pytest.param("\tif a:\n\t\tb()\n", "    if a:\n        b()\n",
                 "    if a:\n        if c:\n            b()\n",
                 "\tif a:\n\t\tif c:\n\t\t\tb()\n", "Lines 1-2", "indentation differs", id="tabs"),
    pytest.param("  if a:\n    b()\n", "\tif a:\n\t\tb()\n", "\tif a:\n\t\tc()\n",
                 "  if a:\n    c()\n", "Lines 1-2", "indentation differs", id="spaces"),
    pytest.param("one  \ntwo\t\nthree\n", "one\ntwo\nthree", "one\ntwo\nfour",
                 "one  \ntwo\t\nfour\n", "Lines 1-3", "trailing whitespace differs", id="trailing"),
    pytest.param("x\nsay(“hi”) – ok\n", 'say("hi") - ok', 'say("hi") - no',
                 "x\nsay(“hi”) – no\n", "Line 2", "quotes, dashes or spaces differ", id="quotes"),
    pytest.param("a\u00a0b\n", "a b", "a c", "a\u00a0c\n", "Line 1", "spaces differ", id="space"),
    pytest.param("x = 1\n\ny = 2\n", "1\tx = 1\n2\n3\ty = 2\n", "1\tx = 1\n2\t\n3\ty = 3\n",
                 "x = 1\n\ny = 3\n", "Lines 1-3", "it had line numbers", id="numbers"),
    pytest.param("  x = 1\n  y = 2\n", "7\tx = 1\n8\ty = 2", "x = 1\ny = 3",
                 "  x = 1\n  y = 3\n", "Lines 1-2", "line numbers and indentation", id="both"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "old", "new", "after", "place", "why"), NEAR)
async def test_a_near_miss_in_one_place_is_made_and_shown(
    folder: Folder, text: str, old: str, new: str, after: str, place: str, why: str
) -> None:
    if not why:
        assert "isn't in f.txt" in await refused(folder, text, old, new)
        return
    for ending in ("\n", "\r\n"):
        path = folder.write("f.txt", text.replace("\n", ending))
        await folder.call(read_file, path="f.txt")
        change = {"path": "f.txt", "old_string": old, "new_string": new}
        preview = await folder.preview(edit_file, **change)
        output = await folder.call(edit_file, **change)
        assert path.read_bytes().decode() == after.replace("\n", ending)
        assert f"{place} matched old_string, though " in said(output)
        assert why in said(output)
        assert text.splitlines()[int(re.findall(r"\d+", place)[0]) - 1] in said(output)
        assert why.rsplit(" and ", maxsplit=1)[-1] in output.summary
        assert preview.text == output.display


async def test_a_near_miss_in_two_places_is_an_error(folder: Folder) -> None:
    error = await refused(folder, "  x()\ny\n\tx()\n", "    x()\n", "    z()\n")
    assert "nearly in 2 places (lines 1, 3), where indentation differs" in error
    for old, more in (("    x()\n", True), ("5\tx()", False)):
        error = await refused(folder, "  x()\n\tx()\n", old, "z\n", replace_all=more)
        assert "nearly in 2 places" in error
    error = await refused(folder, "‘a’ ’a’\n", "'a'", "b")
    assert "nearly in 2 places (lines 1, 1)" in error


async def test_numbers_that_are_the_files_own_stay(folder: Folder) -> None:
    assert await edited(folder, "1\ta\n2\tb\n", "1\ta", "1\tc") == b"1\tc\n2\tb\n"
    assert "isn't in f.txt" in await refused(folder, "2\tx\n", "1\tx", "1\ty")
    assert "isn't in f.txt" in await refused(folder, "a\nb\n", "1\ta\n3\tb\n", "c")
    assert "isn't in f.txt" in await refused(folder, "a\nb\n", "1\ta\n2\tb\n", "1\ta\nc")


async def test_places_that_overlap_are_two(folder: Folder) -> None:
    assert "occurs 2 times" in await refused(folder, "x\n\n\ny", "\n\n", "\n")


_WORDS = st.sampled_from(
    ["", "a", " a", "  b", "\tb", "b ", "“a”", '"a"', "a – b", "3\ta", "\u00a0"]
)
_LINES = st.lists(_WORDS, min_size=1, max_size=6).map("\n".join)


@settings(deadline=None, max_examples=400)
@given(_LINES, _LINES, st.text(alphabet="xy \n", max_size=6), st.booleans())
def test_a_match_changes_its_own_place_only(text: str, old: str, new: str, whole: bool) -> None:
    matches = find_matches(text, old, new, whole_lines=whole)
    assert all(match.differences == matches[0].differences for match in matches)
    if not whole and old:
        assert text.count(old) <= len(matches)
        assert bool(text.count(old)) == bool(matches and not matches[0].differences)
    if len(matches) == 1:
        (match,) = matches
        changed, starts = splice(text, matches)
        assert starts == [match.start]
        assert changed == text[: match.start] + match.new + text[match.end :]
        alike = [
            "".join(part.split()).translate(LIKE) for part in (text[match.start : match.end], old)
        ]
        assert alike[0] == alike[1] or NUMBERS in match.differences


@settings(deadline=None)
@given(_LINES, _LINES, st.text(alphabet="xy \n", max_size=6))
def test_what_occurs_twice_is_never_chosen(text: str, old: str, new: str) -> None:
    twice = f"{text}\n{old}\n--\n{old}\n"
    assume(old)
    assert len(find_matches(twice, old, new)) > 1


@settings(deadline=None)
@given(
    st.lists(st.sampled_from(["a", "b", "\n", "\r\n", "\r", "ab"]), max_size=30).map("".join),
    st.text(alphabet="ab\n", min_size=1, max_size=3),
    st.text(alphabet="xy\n", max_size=3),
)
@example("a\r\na\n", "a\n", "x\n")
@example("\r\r\n", "\n", "x")
def test_a_replacement_is_one_of_the_flat_text(text: str, old: str, new: str) -> None:
    flat = text.replace("\r\n", "\n")
    hits = re.finditer(re.escape(old), flat)
    changed, starts = splice(text, [TextMatch(hit.start(), hit.end(), new) for hit in hits])
    if "\r" not in text.replace("\r\n", ""):  # a lone CR may come to stand before an LF
        assert changed.replace("\r\n", "\n") == flat.replace(old, new)
    assert len(starts) == flat.count(old)
    if "\n" not in old + new:
        assert changed.count("\r\n") >= text.count("\r\n")
    if "\r\n" not in text:
        assert changed == text.replace(old, new)


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16-le", "utf-16-be", "utf-32-le"])
async def test_the_encoding_and_its_mark_are_kept(folder: Folder, encoding: str) -> None:
    mark = "" if encoding == "utf-8-sig" else "\ufeff"
    before = (mark + "grüße\r\nzwei\r\n").encode(encoding)
    after = (mark + "grüße\r\n🜁 drei\r\n").encode(encoding)
    assert await edited(folder, before, "zwei\n", "🜁 drei\n") == after


async def test_a_file_that_is_not_utf8_keeps_its_other_bytes(folder: Folder) -> None:
    before = "größe = 1\nname = é\n".encode("latin-1")
    assert await edited(folder, before, "= 1", "= 2") == before.replace(b"= 1", b"= 2")
    assert "isn't UTF-8" in await refused(folder, before, "= 1", "= é")
    assert "shown as \ufffd" in await refused(folder, before, "gr\ufffd\ufffde = 1", "x")


async def test_the_mode_is_kept(folder: Folder) -> None:
    path = folder.write("run.sh", "echo 1\n")
    path.chmod(0o755)
    await folder.call(read_file, path="run.sh")
    await folder.call(edit_file, path="run.sh", old_string="1", new_string="2")
    assert stat.S_IMODE(path.stat().st_mode) == 0o755
    assert not folder.left_over()


async def test_33_edits_need_what_was_read(folder: Folder) -> None:
    path = folder.write("a.txt", "one\n")
    change = {"path": "a.txt", "old_string": "one", "new_string": "two"}
    assert "hasn't been read" in await folder.error(edit_file, **change)
    await folder.call(read_file, path="a.txt")
    path.write_text("one more\n")
    assert "changed since it was last read" in await folder.error(edit_file, **change)
    assert path.read_text() == "one more\n"
    await folder.call(read_file, path="a.txt")
    await folder.call(edit_file, **change)
    again = {"path": "a.txt", "old_string": "two", "new_string": "three"}
    await folder.call(edit_file, **again)
    assert path.read_text() == "three more\n"
    folder.files = FileLedger()
    assert "hasn't been read" in await folder.error(edit_file, **change)


async def test_what_cannot_be_edited(folder: Folder, tmp_path: Path) -> None:
    change = {"old_string": "x", "new_string": "y"}
    folder.write("src/main.py", "x")
    assert "Did you mean src/main.py?" in await folder.error(edit_file, path="src/man.py", **change)
    folder.write("a.bin", b"x\0y")
    await folder.call(read_file, path="a.bin")
    assert "isn't a text file" in await folder.error(edit_file, path="a.bin", **change)
    folder.write("late.txt", b"x\n" * 5000 + b"\0")
    await folder.call(read_file, path="late.txt")
    assert "isn't a text file" in await folder.error(edit_file, path="late.txt", **change)
    os.truncate(folder.write("big.txt", "x\n" * 5000), 20 * 1024 * 1024 + 1)
    await folder.call(read_file, path="big.txt")
    assert "too large to edit: 20.0 MB" in await folder.error(edit_file, path="big.txt", **change)
    assert "outside the workspace" in await folder.error(edit_file, path="../x", **change)
    assert "is a folder" in await folder.error(edit_file, path="src", **change)
    folder.write("odd.txt", b"\xff\xfex")
    await folder.call(read_file, path="odd.txt")
    assert "isn't valid" in await folder.error(edit_file, path="odd.txt", **change)


async def test_the_preview_is_the_diff(folder: Folder) -> None:
    path = folder.write("a.txt", "one\n")
    await folder.call(read_file, path="a.txt")
    preview = await folder.preview(edit_file, path="a.txt", old_string="one", new_string="two")
    assert preview.text == "--- a/a.txt\n+++ b/a.txt\n@@ -1 +1 @@\n-one\n+two"
    assert path.read_text() == "one\n"
    with pytest.raises(Exception, match=r"isn't in a\.txt"):
        await folder.preview(edit_file, path="a.txt", old_string="three", new_string="two")


async def test_a_miss_in_a_large_file_is_explained_quickly(folder: Folder) -> None:
    lines = "".join(f"    result_{n} = compute(alpha={n}, beta={n * 7})\n" for n in range(200_000))
    error = await refused(folder, lines, "    result_77 = compute(alpha=77, gamma=539)", "x")
    assert "closest" in error
