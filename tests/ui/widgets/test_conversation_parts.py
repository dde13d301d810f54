"""The parts of the conversation that need no screen: heights, the viewport, diffs, badges."""

from __future__ import annotations

from collections.abc import Sequence
from unittest.mock import Mock

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.style import Style

from tui.ui.widgets.conversation import item_renderer
from tui.ui.widgets.conversation.items import (
    AssistantItem,
    AttemptItem,
    NoticeItem,
    ToolItem,
    UserItem,
)
from tui.ui.widgets.conversation.style import STYLE_RULES
from tui.ui.widgets.diff import draw_diff
from tui.ui.widgets.line_view.viewport import Heights, Viewport
from tui.ui.widgets.markdown import code
from tui.ui.widgets.markdown.text import RULES as MARKDOWN_RULES
from tui.ui.widgets.markdown.text import Line
from tui.ui.widgets.record_items import warm, warm_turn

STYLES = {name: Style() for name in MARKDOWN_RULES} | {f"c-{name}": Style() for name in STYLE_RULES}


@given(st.lists(st.integers(0, 9)), st.data())
def test_heights_are_sums(values: list[int], data: st.DataObject) -> None:
    heights = Heights()
    heights.extend(values)
    for _ in range(5):
        if values and data.draw(st.booleans()):
            index = data.draw(st.integers(0, len(values) - 1))
            heights[index] = values[index] = data.draw(st.integers(0, 9))
        elif values and data.draw(st.booleans()):
            index = data.draw(st.integers(0, len(values) - 1))
            heights.delete(index)
            del values[index]
        else:
            more = data.draw(st.lists(st.integers(0, 9), max_size=5))
            values += more
            heights.extend(more)
        assert heights.total == sum(values)
        assert [heights.offset(i) for i in range(len(values))] == [
            sum(values[:i]) for i in range(len(values))
        ]
        rows = [(item, row) for item, size in enumerate(values) for row in range(size)]
        assert [heights.find(row) for row in range(len(rows))] == rows


class Model:
    """Items whose true heights are known, and estimates that are wrong."""

    def __init__(self, true: list[int], guessed: list[int], height: int) -> None:
        self.true = true
        self.asked = 0
        self.view = Viewport(self.measure)
        self.view.height = height
        self.view.extend(guessed)
        self.view.settle()

    def measure(self, index: int) -> int:
        self.asked += 1
        return self.true[index]

    def check(self) -> None:
        """What is in sight is a run of true rows that fills the screen where it can."""
        rows = [(item, row) for item, size in enumerate(self.true) for row in range(size)]
        seen = self.view.rows
        assert len(seen) == min(self.view.height, len(rows))
        if seen:
            start = rows.index(seen[0])
            assert seen == rows[start : start + len(seen)]
        if self.view.following and rows:
            assert seen[-1] == rows[-1]


SIZES = st.lists(st.integers(1, 12), min_size=1, max_size=40)


@settings(max_examples=200, deadline=None)
@given(SIZES, SIZES, st.integers(1, 15), st.data())
def test_the_viewport_shows_true_rows_whatever_was_guessed(
    true: list[int], guessed: list[int], height: int, data: st.DataObject
) -> None:
    guessed = (guessed * len(true))[: len(true)]
    model = Model(true, guessed, height)
    model.check()
    for _ in range(6):
        match data.draw(
            st.sampled_from(["scroll", "grow", "append", "delete", "resize", "forget"])
        ):
            case "scroll":
                model.view.scroll(data.draw(st.integers(-5, model.view.total + 5)))
            case "grow":
                index = data.draw(st.integers(0, len(true) - 1))
                true[index] = data.draw(st.integers(1, 20))
                model.view.forget(index)
                model.view.settle()
            case "append":
                true.append(data.draw(st.integers(1, 12)))
                model.view.extend([3])
                model.view.settle()
            case "delete" if len(true) > 1:
                index = data.draw(st.integers(0, len(true) - 1))
                del true[index]
                model.view.delete(index)
                model.view.settle()
            case "resize":
                model.view.height = data.draw(st.integers(1, 15))
                model.view.settle()
            case _:
                model.view.forget()
                model.view.settle()
        model.check()


@settings(max_examples=200, deadline=None)
@given(SIZES, st.integers(1, 9), st.integers(5, 15), st.lists(st.integers(-4, 4), max_size=12))
def test_what_stays_in_sight_moves_by_what_was_scrolled(
    true: list[int], guess: int, height: int, steps: list[int]
) -> None:
    model = Model(true, [guess] * len(true), height)
    for step in steps:
        before = {place: line for line, place in enumerate(model.view.rows)}
        target = model.view.y + step
        at_edge = target <= 0 or target >= model.view.end
        model.view.scroll(target)
        if not at_edge and model.view.y not in {0, model.view.end}:
            moved = {before[p] - line for line, p in enumerate(model.view.rows) if p in before}
            assert moved <= {step}


def test_only_what_is_in_sight_is_measured() -> None:
    model = Model([3] * 50_000, [2] * 50_000, 40)
    assert model.asked < 60
    model.view.scroll(model.view.total // 2)
    assert model.asked < 120


def test_items_that_arrive_do_not_move_what_is_read() -> None:
    true = [3] * 100
    model = Model(true, [1] * 100, 20)
    model.view.scroll(50)
    seen = list(model.view.rows)
    true += [5] * 10
    model.view.extend([1] * 10)
    model.view.settle()
    assert model.view.rows == seen
    assert not model.view.following


def shown(lines: Sequence[Line]) -> list[str]:
    return [line.text.rstrip() for line in lines]


DIFF = """--- a/x.py
+++ b/x.py
@@ -9,3 +9,4 @@ class A:
 def f():
--- not a header
+\treturn 1
+    [red]markup[/red]
 end
@@ -40 +41 @@
-old
+new
"""


def test_a_diff_has_numbers_signs_and_quiet_hunks() -> None:
    assert shown(draw_diff(DIFF, 60, STYLES)) == [
        " 9   def f():",
        "10 − -- not a header",
        "10 +     return 1",
        "11 +     [red]markup[/red]",
        "12   end",
        " ⋯",
        "40 − old",
        "41 + new",
    ]


def test_a_diff_of_several_files_names_them_and_a_long_one_is_cut() -> None:
    two = DIFF + DIFF.replace("x.py", "y.py")
    assert [row for row in shown(draw_diff(two, 60, STYLES)) if row.endswith(".py")] == [
        "x.py",
        "y.py",
    ]
    long = "--- a\n+++ b\n@@ -0,0 +1,5000 @@\n" + "+x\n" * 5_000
    assert shown(draw_diff(long, 60, STYLES))[-1] == "… +4,003 lines"


def test_a_card_is_one_line_and_gives_up_what_is_least_needed() -> None:
    item = ToolItem(
        "1",
        "run_command",
        "pytest -q tests/widgets/test_conversation.py",
        state="ok",
        seconds=12.34,
        summary="23 passed",
        receipt={"bytes_total": 482_312, "bytes_shown": 3_055, "path": "a.txt"},
    )
    (wide,) = item_renderer.draw(item, 100, STYLES)
    assert wide.text == (
        " ✓ Run pytest -q tests/widgets/test_conversation.py  23 passed  ✂ 471→3.0 KB"
        "                   12 s"
    )
    (narrow,) = item_renderer.draw(item, 50, STYLES)
    assert narrow.text == " ✓ Run pytest -q tests/widg…  ✂ 471→3.0 KB   12 s"
    (tiny,) = item_renderer.draw(item, 24, STYLES)
    assert tiny.cells <= 24
    assert "✓" in tiny.text


def test_a_path_keeps_its_end_and_the_state_stays_near_the_name() -> None:
    item = ToolItem("1", "read_file", "src/main/java/internal/Writer.java", state="ok")
    assert " …/java/internal/Writer.java" in item_renderer.draw(item, 40, STYLES)[0].text
    assert item_renderer.draw(item, 40, STYLES)[0].cells <= 40
    assert item_renderer.draw(item, 190, STYLES)[0].cells <= 120


def test_only_a_short_error_is_red() -> None:
    item = ToolItem("1", "run_command", "x", state="error", preview="no such file", folded=False)
    styles = STYLES | {"c-error": Style(color="red"), "c-detail": Style(color="blue")}

    def last() -> Style | None:
        return item_renderer.draw(item, 60, styles)[-1].segments[-1].style

    assert last() == Style(color="red")
    item.preview = "one\ntwo\nthree\nfour"
    assert last() == Style(color="blue")


def test_a_long_prompt_counts_what_is_not_in_sight() -> None:
    item = UserItem("\n".join(f"{n} " + "word " * 12 for n in range(30)))
    rows = [line.text for line in item_renderer.draw(item, 40, STYLES)]
    assert len(rows) <= 10
    whole = sum(f" {n} word" in row for n in range(30) for row in rows)
    assert rows[-1].endswith(f"… +{30 - whole} lines")


def test_what_is_known_of_an_interruption_stands_in_the_place_of_the_word() -> None:
    item = ToolItem("1", "edit_file", "a.py", state="interrupted", summary="never started")
    assert item_renderer.draw(item, 60, STYLES)[0].text.startswith(" ■ Edit a.py  never started")
    item.seconds, item.summary, item.preview = 9.0, "2 lines printed", "..\n.."
    row = item_renderer.draw(item, 60, STYLES)[0].text
    assert row.startswith(" ■ Edit a.py  interrupted · 2 lines printed")
    assert row.endswith("  9 s")


def test_what_was_denied_is_said_once() -> None:
    item = ToolItem("1", "edit_file", "a.py", state="denied", summary="denied")
    assert item_renderer.draw(item, 60, STYLES)[0].text == " ⊘ Edit a.py  denied"


def test_the_reason_of_a_no_is_on_its_row() -> None:
    reason = "the tests first,\nplease: without them nobody can say if it works"
    item = ToolItem("1", "edit_file", "a.py", state="denied", summary=reason)
    assert item_renderer.draw(item, 120, STYLES)[0].text.endswith(
        "Edit a.py  denied · the tests first, please: without them nobody can say if it works"
    )
    item.summary = "Denied by the rule run_command(rm *)."
    row = item_renderer.draw(item, 80, STYLES)[0].text
    assert row == " ⊘ Edit a.py  Denied by the rule run_command(rm *)."


def test_cards_in_a_row_stand_together_and_so_do_notes() -> None:
    card, note, failed = ToolItem("1", "x"), NoticeItem("a"), AttemptItem(1, "network", 2.0)
    assert not item_renderer.gap(card, card)
    assert not item_renderer.gap(note, failed)
    assert item_renderer.gap(card, note)
    assert item_renderer.gap(note, UserItem("x"))


def test_nothing_that_comes_from_outside_can_break_a_line() -> None:
    nasty = "a\x1b[31mb\nc\td\r\n\x00e\u202e"
    for item in (
        UserItem(nasty),
        ToolItem("1", nasty, nasty, summary=nasty, preview=nasty, diff=nasty, folded=False),
        NoticeItem(nasty, detail=nasty, folded=False),
        AssistantItem(nasty),
    ):
        for line in item_renderer.draw(item, 40, STYLES):
            assert line.text.isprintable()
            assert line.cells <= 40


def test_a_long_paste_is_folded_without_looking_at_all_of_it() -> None:
    item = UserItem("\n".join(f"line {n}" for n in range(100)))
    folded = shown(item_renderer.draw(item, 60, STYLES))
    assert folded[0] == " ▌ line 0"
    assert folded[-1] == " ▌ … +92 lines"
    assert len(folded) == 9
    item.folded = False
    assert shown(item_renderer.draw(item, 60, STYLES))[-1] == " ▌ line 99"
    one_line = shown(item_renderer.draw(UserItem("x" * 1_000_000), 60, STYLES))
    assert len(one_line) == 9
    assert one_line[-1].startswith(" ▌ … +99")


def test_a_label_is_cut_only_where_there_is_no_room() -> None:
    item = ToolItem("1", "run_command", "pytest -q", state="error", seconds=12.3)
    item.summary = "exit code 1"
    item.receipt = {"bytes_total": 482_300, "bytes_shown": 3100, "path": "a.txt"}
    for width in range(54, 120):
        (row,) = item_renderer.draw(item, width, STYLES)
        assert "pytest -q" in row.text, width
    assert "exit code 1" in item_renderer.draw(item, 80, STYLES)[0].text


def test_a_card_that_is_open_shows_what_its_line_does_not() -> None:
    item = ToolItem(
        "1",
        "run_command",
        "make",
        state="error",
        preview="boom",
        folded=False,
        input={"command": "make", "timeout": 30},
        receipt={"bytes_total": 482_312, "bytes_shown": 3_055, "path": "/p/full.txt"},
    )
    assert shown(item_renderer.draw(item, 70, STYLES))[1:] == [
        "   │ timeout  30",
        "   │ boom",
        "   │ ✂ 471 KB → 3.0 KB · F4 shows all · copy: /p/full.txt",
    ]


def test_what_a_card_leaves_out_is_counted_and_found() -> None:
    diff = "--- a\n+++ b\n@@ -0,0 +1,3000 @@\n" + "".join(f"+line {n}\n" for n in range(3_000))
    item = ToolItem("1", "edit_file", "a", state="ok", diff=diff, folded=False)
    rows = shown(item_renderer.draw(item, 80, STYLES))
    assert len(rows) == 401
    last = int(rows[-2].rpartition(" ")[2])  # "line N"
    more = int(rows[-1].partition("+")[2].partition(" ")[0].replace(",", ""))
    assert abs(last + 1 + more - 3_000) <= 4  # give or take the head of the diff
    assert rows[-1].endswith(" lines · F4 shows all")
    item = ToolItem("1", "write_file", "a", folded=False, input={"text": "x\n" * 5_000})
    assert shown(item_renderer.draw(item, 80, STYLES))[-1].strip("│ ") == "… +4,995 lines"


def test_a_failed_attempt_is_a_line_that_unfolds_to_what_was_said() -> None:
    item = AttemptItem(2, "overloaded", 2.4, "Try later.", 529, "req_7", 312, "Half an\nanswer")
    head = "attempt 2 failed: overloaded (529) · next after 3 s · req_7 · 312 characters received"
    assert shown(item_renderer.draw(item, 120, STYLES)) == [f" ! {head} ▸"]
    item.folded = False
    assert shown(item_renderer.draw(item, 120, STYLES)) == [
        f" ! {head} ▾",
        "   │ Try later.",
        "   │ Half an",
        "   │ answer",
    ]
    bare = AttemptItem(1, "network", 0.0)
    assert not item_renderer.foldable(bare)
    assert shown(item_renderer.draw(bare, 60, STYLES)) == [
        " ! attempt 1 failed: no connection · next at once"
    ]


def test_what_to_do_about_an_error_is_plain_what_happened_is_not():
    red, plain = Style(color="red"), Style(color="white")
    styles = STYLES | {"c-error": red, "text": plain}
    item = NoticeItem("No connection.", "error", hint="Check it, then /retry.")
    (row,) = item_renderer.draw(item, 80, styles)
    looks = {text.strip(): style for text, style, _ in row.segments if text.strip()}
    assert looks == {"✗": red, "No connection.": red, "Check it, then /retry.": plain}
    assert item_renderer.source(item) == "No connection. Check it, then /retry."


def test_a_line_of_details_that_is_wrapped_stays_as_far_in() -> None:
    detail = "plain and long enough to be wrapped here\n  “quoted and long enough to be wrapped”"
    item = NoticeItem("Checked.", detail=detail, folded=False)
    assert shown(item_renderer.draw(item, 30, STYLES))[1:] == [
        "   │ plain and long enough to",
        "   │ be wrapped here",
        "   │   “quoted and long",
        "   │   enough to be wrapped”",
    ]


def test_a_command_that_failed_shows_its_last_lines() -> None:
    item = ToolItem("1", "run_command", "make", state="error", summary="exit 2", seconds=1.5)
    item.tail = "\n".join(f"line {n}" for n in range(9)) + "\n"
    rows = shown(item_renderer.draw(item, 60, STYLES))
    assert rows[0].startswith(" ✗ Run make  exit 2")
    assert rows[0].endswith("  1 s")
    assert rows[1:] == [f"   │ line {n}" for n in range(4, 9)]
    item.state = "ok"
    assert len(item_renderer.draw(item, 60, STYLES)) == 1


def test_a_command_that_runs_shows_what_it_prints_after_a_second() -> None:
    item = ToolItem("1", "run_command", "make", state="running", tail="a\n10 %\r20 %\n")
    assert len(item_renderer.draw(item, 60, STYLES)) == 1
    item.seconds = 1.0
    assert shown(item_renderer.draw(item, 60, STYLES))[1:] == ["   │ a", "   │ 20 %"]


def test_only_calls_alike_share_a_row() -> None:
    a, b = (ToolItem(name, "read_file", f"src/{name}.py", state="ok") for name in "ab")
    assert item_renderer.joins(a, b)
    assert shown(item_renderer.draw(a, 60, STYLES, along=(b,))) == [" ✓ Read 2 files  a.py, b.py"]
    for change in ({"state": "error"}, {"folded": False}, {"masked": True}, {"alone": True}):
        other = ToolItem("c", "read_file", "c.py", **({"state": "ok"} | change))  # pyright: ignore[reportArgumentType]
        assert not item_renderer.joins(a, other)
    assert not item_renderer.joins(a, ToolItem("d", "run_command", "ls", state="ok"))


def test_attempts_that_failed_one_after_the_other_share_a_row() -> None:
    tries = [AttemptItem(n, "overloaded", 2.0, status=529) for n in (1, 2, 3)]
    assert all(map(item_renderer.joins, tries, tries[1:]))
    assert not item_renderer.joins(tries[2], AttemptItem(1, "network", 1.0))
    rows = shown(item_renderer.draw(tries[0], 60, STYLES, along=tries[1:]))
    assert rows == [" ! retried 3× · overloaded (529)"]
    mixed = [*tries[:1], *(AttemptItem(n, "rate_limit", 1.0, status=429) for n in (2, 3))]
    rows = shown(item_renderer.draw(mixed[0], 60, STYLES, along=mixed[1:]))
    assert rows == [" ! retried 3× · 1× overloaded, 2× rate limited"]


@pytest.mark.parametrize("width", [40, 80])
@pytest.mark.parametrize(
    ("level", "mark"),
    [
        ("", ""),
        ("read-only", ""),
        ("workspace", ""),
        ("workspace + network", "network"),
        ("outside", "outside"),
    ],
)
def test_only_a_command_that_reaches_further_than_usual_is_marked(
    width: int, level: str, mark: str
) -> None:
    call = ToolItem("a", "run_command", "make " + 60 * "x", "ok", summary="exit 0", level=level)
    call.seconds = 3.0
    (row,) = shown(item_renderer.draw(call, width, STYLES))
    assert row.endswith((f"{mark}    3 s",) if mark else ("x    3 s", "…    3 s"))
    assert len(row) < width


def test_how_a_command_failed_stays_longer_than_that_its_output_was_cut() -> None:
    receipt = {"bytes_total": 121, "bytes_shown": 121}
    call = ToolItem("a", "run_command", "make " + 60 * "x", "error", 6.0, "exit 3", receipt=receipt)
    (wide, *_), (narrow, *_) = (
        shown(item_renderer.draw(call, width, STYLES)) for width in (80, 40)
    )
    assert "exit 3  ✂ 121 B" in wide
    assert "exit 3" in narrow
    assert "✂" not in narrow


def test_warming_loads_what_colors_the_code_that_will_be_seen() -> None:
    code.lexer.cache_clear()
    told = "1. So:\n   ```rust\n   fn a() {}\n   ```\n\n~~~ toml\na = 1\n~~~\n\n```\nplain\n```\n"
    warm([AssistantItem(told), UserItem("```go\nno answer\n```")])
    assert code.lexer.cache_info().currsize == 2
    assert code.languages(told) == {"rust", "toml"}


def test_warming_loads_what_colors_code(monkeypatch: pytest.MonkeyPatch) -> None:
    color = Mock(wraps=code.draw_rows)
    monkeypatch.setattr(code, "draw_rows", color)
    warm_turn()
    assert color.call_count == 1
