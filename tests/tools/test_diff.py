"""The diff for the person: what `diff -u` would say, bounded."""

from __future__ import annotations

import difflib

from hypothesis import example, given, settings
from hypothesis import strategies as st

from tui.tools.diff import MAX_LINE_CHARS, MAX_LINES, hunks, unified

texts = st.lists(st.sampled_from(["a", "b", "c", "", "same", "x y"]), max_size=40).map(
    lambda lines: "".join(f"{line}\n" for line in lines)
)


def applied(old: str, diff: str) -> str:
    """`old` after the hunks of a diff: what makes a diff true."""
    source, result, at = old.splitlines(), list[str](), 0
    for line in diff.splitlines()[2:]:
        if line.startswith("@@"):
            start, _, length = line.split()[1].removeprefix("-").partition(",")
            begin = int(start) - (length != "0")
            result += source[at:begin]
            at = begin
        elif line.startswith("+"):
            result.append(line[1:])
        else:
            assert source[at] == line[1:]
            at += 1
            if line.startswith(" "):
                result.append(line[1:])
    result += source[at:]
    return "".join(f"{line}\n" for line in result)


@settings(deadline=None)
@given(texts, texts)
@example("a\n" * 20, "a\n" * 10 + "b\n" + "a\n" * 10)
@example("", "a\n")
@example("a\n", "")
def test_a_diff_leads_from_old_to_new(old: str, new: str) -> None:
    diff = unified(old, new, "f")
    assert applied(old, diff.text) == new
    lines = diff.text.splitlines()[2:]
    assert diff.added == sum(line.startswith("+") for line in lines)
    assert diff.removed == sum(line.startswith("-") for line in lines)


def test_it_is_the_diff_that_everyone_knows() -> None:
    old = [f"{n}\n" for n in range(40)]
    new = [*old[:5], "new\n", *old[5:20], *old[21:]]
    known = "".join(difflib.unified_diff(old, new, "a/f", "b/f"))
    assert unified("".join(old), "".join(new), "f").text + "\n" == known


def test_a_new_file_and_no_change() -> None:
    assert unified(None, "a\nb", "f").text == (
        "--- /dev/null\n+++ b/f\n@@ -0,0 +1,2 @@\n+a\n+b\n\\ No newline at end of file"
    )
    assert unified("a\n", "a\n", "f").text == ""
    assert unified("a\n", "a\nb\n", "f").summary == "+1 −0"


def test_line_endings_show_only_where_they_differ() -> None:
    assert "␍" not in unified("a\r\nb\r\n", "a\r\nc\r\n", "f").text
    assert "-a␍\n+a" in unified("a\r\nb\r\n", "a\nb\r\n", "f").text
    assert "-a\n\\ No newline at end of file\n+a" in unified("a", "a\n", "f").text


def test_a_large_diff_is_bounded_and_quick() -> None:
    old = "".join(f"{n}\n" for n in range(200_000))
    diff = unified(old, old.replace("7", "8"), "f")
    assert diff.text.count("\n") == MAX_LINES
    assert diff.text.endswith("… the rest of the diff isn't shown")
    assert diff.added == diff.removed == sum("7" in str(n) for n in range(200_000))
    diff = unified(old, "x" * 5_000_000, "f")
    assert (diff.removed, diff.added) == (200_000, 1)
    longest = max(map(len, unified("", "x" * 5_000_000, "f").text.splitlines()))
    assert longest < MAX_LINE_CHARS + 50


def test_hunks_have_their_lines_before_and_after_and_where_they_begin() -> None:
    old = "".join(f"{n}\n" for n in range(1, 31))
    new = old.replace("5\n", "five\n", 1).replace("28\n", "-- 28\n")
    first, second = hunks(unified(old, new, "a b.txt").text)
    assert (first.name, first.line, first.created) == ("a b.txt", 2, False)
    assert first.old == ["2", "3", "4", "5", "6", "7", "8"]
    assert first.new == ["2", "3", "4", "five", "6", "7", "8"]
    assert (second.line, second.new[3]) == (25, "-- 28")


def test_hunks_of_files_that_come_and_go() -> None:
    both = "\n".join([unified(None, "a\n", "new").text, unified("b\n", None, "old").text])
    made, gone = hunks(both)
    assert (made.name, made.created, made.old, made.new) == ("new", True, [], ["a"])
    assert (gone.name, gone.created, gone.old, gone.new) == ("old", False, ["b"], [])


def test_what_is_no_diff_has_no_hunks() -> None:
    assert hunks("") == []
    assert hunks("--- just text\n+++ and more\n") == []
