"""The task file's grammar and marks: A1, A2, A6, A7."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tui.batch.taskfile import Mark, parse, with_marks

FILE = """\
# The plan

<!-- boot: docs/start.md -->
- before any heading

Some prose.

## first group
- one
  goes on here
	and here

  and after a blank line
- [ ] two with a box
* not a task
  - nor is this: it is indented prose

## second ##
- [x] done
- [!] failed   twice
- [~] stopped
-no space, no task
"""


FENCED = """\
- run this:
  ```sh
  if true; then

      echo "a    b"
  fi
  ```
  and look
- two
  ~~~
  never closed
- not a task, but text of the passage? no: it is one
"""


def shown(text: str | bytes) -> list[tuple[str, str, str]]:
    data = text.encode() if isinstance(text, str) else text
    return [(task.group, task.mark, task.text) for task in parse(data).tasks]


def test_A1_the_grammar():
    assert shown(FILE) == [
        ("ungrouped", "", "before any heading"),
        ("first group", "", "one goes on here and here and after a blank line"),
        ("first group", " ", "two with a box"),
        ("second", "x", "done"),
        ("second", "!", "failed   twice"),
        ("second", "~", "stopped"),
    ]
    assert [task.index for task in parse(FILE.encode()).tasks] == list(range(6))


@pytest.mark.parametrize(
    "text",
    [
        "## g\r\n- one\r\n  more\r\n- two\r\n",
        "## g\n- one\n  more\n- two",
        "\ufeff## g\n- one more\n- two\n",
        "##\tg\n-\tone\n\tmore\n-   two\n\n\n",
    ],
)
def test_A1_line_ends_tabs_and_a_missing_final_newline(text: str):
    assert shown(text) == [("g", "", "one more"), ("g", "", "two")]


def test_A1_fenced_and_commented_lines_hold_no_tasks():
    text = "```\n- in code\n```\n<!--\n- hidden\n-->\n- real\n<!-- - hidden too -->\n- last\n"
    assert shown(text) == [("ungrouped", "", "real"), ("ungrouped", "", "last")]


def test_A1_an_empty_task_is_none():
    assert shown("- \n- [ ] \n- [ ]\n-\n- [] kept as text\n") == [
        ("ungrouped", "", "[] kept as text")
    ]


@pytest.mark.parametrize("data", [b"", b"\n", b"\xff\xfe\x00", b"prose only\n## heading\n"])
def test_a_file_without_tasks_is_one(data: bytes):
    assert parse(data).tasks == ()


def test_A2_the_hash_is_of_groups_and_texts_only():
    base = parse(b"## g\n- [ ] one\n- two\n").sha256
    assert parse(b"prose\n## g\n\n- [x] one\n\n- two").sha256 == base
    assert parse(b"## h\n- [ ] one\n- two\n").sha256 != base
    assert parse(b"## g\n- [ ] one\n- two!\n").sha256 != base
    assert parse(b"## g\n- two\n- [ ] one\n").sha256 != base


def test_A1_groups_of_the_same_name_are_counted_apart():
    tasks = parse(b"- a\n## empty\n## g\n- b\n- c\n## g\n- d\n").tasks
    assert [(task.section, task.group) for task in tasks] == [
        (0, "ungrouped"), (1, "g"), (1, "g"), (2, "g"),
    ]  # fmt: skip
    assert parse(b"## g\n- a\n## g\n- b\n").sha256 != parse(b"## g\n- a\n- b\n").sha256


def test_A6_the_boot_directive_stands_before_the_first_group():
    assert parse(FILE.encode()).boot == "docs/start.md"
    assert parse(b"<!--boot:a b.md-->\n<!-- boot: second.md -->\n").boot == "a b.md"


def test_A7_a_directive_after_the_first_group_is_ignored():
    assert parse(b"## g\n<!-- boot: late.md -->\n- one\n").boot == ""


def test_marks_are_written_into_the_boxes_and_nowhere_else():
    data = FILE.replace("\n", "\r\n").encode()
    marked = with_marks(data, {0: "x", 1: "x", 2: "!", 3: " ", 5: "x"})
    expected = (
        FILE.replace("- [ ] two", "- [!] two")
        .replace("- [x] done", "- [ ] done")
        .replace("- [~] stopped", "- [x] stopped")
    )
    assert marked == expected.replace("\n", "\r\n").encode()


_LINES = st.sampled_from(
    [
        b"- one",
        b"- [ ] box [ ] two",
        b"-  [x]\tdone",
        b"  more - [ ] text",
        b"## group",
        b"",
        b"```",
        b"<!-- x",
        b"-->",
        b"\xff\xfe odd",
        b"- [~] stop\r",
    ]
)


@given(st.lists(_LINES | st.binary(max_size=12), max_size=25), st.data())
def test_any_file_keeps_its_tasks_when_marks_are_written(lines: list[bytes], data: st.DataObject):
    original = b"\n".join(lines)
    before = parse(original)
    wanted: dict[int, Mark] = {
        task.index: data.draw(st.sampled_from([" ", "x", "!", "~"])) for task in before.tasks
    }
    marked = with_marks(original, wanted)
    after = parse(marked)
    assert after.sha256 == before.sha256
    assert len(marked) == len(original)
    assert [t.mark for t in after.tasks] == [
        wanted[t.index] if t.mark else "" for t in before.tasks
    ]


def test_29_blanks_inside_a_task_stay_as_they_are() -> None:
    text = "- a    b\tc\u00a0d\u2028e  \n  f  g\n\n   h\n"
    assert [task.text for task in parse(text.encode()).tasks] == ["a    b\tc\u00a0d\u2028e f  g h"]


def test_a_fenced_passage_of_a_task_keeps_its_lines():
    assert [text for _, _, text in shown(FENCED)] == [
        'run this:\n```sh\nif true; then\n\n    echo "a    b"\nfi\n```\nand look',
        "two\n~~~\nnever closed",
        "not a task, but text of the passage? no: it is one",
    ]


def test_what_looks_like_a_task_and_is_none_is_named():
    text = (
        "- one\n - two\n  - [ ] three\n  - a detail\n* four\n1. [x] five\n+ six\n"
        "* * *\n*prose* and\n<!--\n* [ ] six\n-->\n```\n* [ ] seven\n```\n"
    )
    file = parse(text.encode())
    assert [task.text for task in file.tasks] == ["one - two - [ ] three - a detail"]
    assert file.not_taken == (
        (1, "- two"),
        (2, "- [ ] three"),
        (4, "* four"),
        (5, "1. [x] five"),
        (6, "+ six"),
    )


def test_a_checkbox_makes_a_task_of_any_list_item():
    text = b"* [ ] one\n  and more\n+ [x] two\n- [~] three\n*[ ] no\n"
    assert shown(text) == [
        ("ungrouped", " ", "one and more"), ("ungrouped", "x", "two"), ("ungrouped", "~", "three"),
    ]  # fmt: skip
    assert with_marks(text, {0: "x", 1: "!", 2: " "}) == (
        b"* [x] one\n  and more\n+ [!] two\n- [ ] three\n*[ ] no\n"
    )
