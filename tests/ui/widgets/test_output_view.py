"""The output pane: lines as a terminal would show them, bounded, scrolled, copied."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.color import Color
from rich.style import Style
from textual.geometry import Offset
from textual.selection import Selection

from tests.ui.screens.driving import until
from tests.ui.widgets.stage import Stage
from tui.ui.widgets import output_lines, text_view
from tui.ui.widgets.diff import draw_diff
from tui.ui.widgets.line_view import key
from tui.ui.widgets.output_lines import LINE_MAX, OutputLines
from tui.ui.widgets.output_view import CELLS_MAX, OutputView
from tui.ui.widgets.text_view import coloured, plain

SIZE = (40, 8)


def style_at(view: OutputView, row: int, x: int) -> Style:
    (segment,) = view.render_line(row).crop(x, x + 1)
    return segment.style or Style()


PLAIN = Style()


class Pane(Stage):
    def __init__(self) -> None:
        self.view = OutputView()
        super().__init__(self.view)


TEXTS = st.lists(
    st.sampled_from(["a", "bc", "\n", "\r", "\r\n", "\t", "\x1b[31m", "x" * 50, "漢"]), max_size=30
).map("".join)


@settings(max_examples=300, deadline=None)
@given(TEXTS, st.lists(st.integers(0, 60), max_size=12))
def test_any_pieces_give_the_same_lines(text: str, cuts: list[int]) -> None:
    whole, pieces = OutputLines(), OutputLines()
    whole.write(text)
    marks = sorted(min(cut, len(text)) for cut in cuts)
    for start, end in zip([0, *marks], [*marks, len(text)], strict=True):
        pieces.write(text[start:end])
    assert list(pieces) == list(whole) == [pieces[n] for n in range(len(whole))]


def added(count: int) -> str:
    """A diff of so many added lines, each far wider than the pane."""
    return f"--- a/x\n+++ b/x\n@@ -0,0 +1,{count} @@\n" + f"+{'abcdefghij' * 6}\n" * count


async def test_text_is_laid_out_beside_the_scroll_bar_as_it_comes_and_goes() -> None:
    app = Pane()
    async with app.run_test(size=SIZE) as pilot:
        for lines, room in ((2, 40), (30, 39), (2, 40), (30, 39)):
            app.view.show("x", added(lines), diff=True)
            await until(pilot, lambda room=room: app.view.scrollable_content_region.width == room)
            assert max(len(row) for row in app.rows()) == room


async def test_the_last_line_stands_above_the_bar_that_scrolls_sideways() -> None:
    app = Pane()
    async with app.run_test(size=SIZE) as pilot:
        app.view.show("x", "\n".join("abcdefgh"))
        await pilot.pause()
        app.view.write("\n" + "y" * 200)
        await until(pilot, lambda: app.view.show_horizontal_scrollbar)
        assert app.rows()[6].startswith("yyy")


async def test_wrapped_there_is_nothing_to_scroll_sideways() -> None:
    app = Pane()
    async with app.run_test(size=SIZE) as pilot:
        app.view.show("x", "y" * 5_000)
        await pilot.pause()
        await pilot.pause()
        assert app.view.show_horizontal_scrollbar
        await pilot.press("w")
        await pilot.pause()
        assert app.view.show_vertical_scrollbar
        assert not app.view.show_horizontal_scrollbar


async def test_the_bar_below_says_how_far_sideways_it_is() -> None:
    app = Pane()
    async with app.run_test(size=SIZE) as pilot:
        app.view.show("x", "y" * 80)
        await pilot.pause()
        await pilot.pause()
        bar = app.view.horizontal_scrollbar
        width = bar.size.width

        def drawn() -> str:
            (strip,) = bar.render_lines(bar.size.region)
            return strip.text

        assert drawn() == "━" * (width // 2) + " " * (width - width // 2)
        app.view.scroll_to(x=80, animate=False)
        await pilot.pause()
        assert drawn().endswith("━")
        assert drawn().startswith(" ")


def test_a_carriage_return_starts_the_line_again() -> None:
    output = OutputLines()
    for piece in ("10 %\r", "20 %\r", "30 %", "\rdone\nnext\r\n", "end"):
        output.write(piece)
    assert list(output) == ["done", "next", "end"]


def test_one_endless_line_is_bounded_and_counted() -> None:
    output = OutputLines()
    for _ in range(100):
        output.write("x" * 10_000)
    assert len(output[0]) == LINE_MAX
    assert output.over(0) == 1_000_000 - LINE_MAX
    output.write("\nafter\n")
    assert list(output)[1:] == ["after"]
    assert output.over(0) == 1_000_000 - LINE_MAX


def test_memory_is_bounded_and_the_line_that_says_so_counts_right(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(output_lines, "BYTES_MAX", 100_000)
    monkeypatch.setattr(output_lines, "HEAD_LINES", 10)
    output = OutputLines()
    for number in range(50_000):
        output.write(f"line {number}\n")
    lines = list(output)
    assert sum(map(len, lines)) <= 100_000
    assert lines[:10] == [f"line {n}" for n in range(10)]
    assert lines[-1] == "line 49999"
    assert output.gap == 10
    assert len(lines) - 1 + output.dropped_lines == 50_000
    assert lines[11] == f"line {10 + output.dropped_lines}"


def test_few_long_lines_are_bounded_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(output_lines, "BYTES_MAX", 1_000_000)
    monkeypatch.setattr(output_lines, "HEAD_LINES", 500)
    output = OutputLines()
    for number in range(400):
        output.write(f"{number} {'x' * 10_000}\n")
    gap = output.gap
    assert gap is not None
    lines = list(output)
    assert sum(map(len, lines)) <= 1_000_000
    assert [line.split()[0] for line in lines[:gap]] == [str(n) for n in range(gap)]
    assert lines[gap] == ""
    assert [line.split()[0] for line in lines[gap + 1 :]] == [
        str(n) for n in range(gap + output.dropped_lines, 400)
    ]


def test_lines_keep_what_no_encoding_knows() -> None:
    output = OutputLines()
    output.write("a\udc80b\nc")
    assert list(output) == ["a\udc80b", "c"]


def test_colours_are_kept_and_other_controls_removed() -> None:
    spans = text_view.coloured(
        "a\x1b[1;31mred\x1b[0m\x1b[2K \x1b]0;title\x07b\x1b[38;5;200mx\x1b[48;2;1;2;3my", PLAIN
    )
    assert "".join(text for text, _ in spans) == "ared bxy"
    styles = dict(spans)
    assert styles["red"] == Style(bold=True, color=Color.from_ansi(1))
    assert styles["x"] == Style(color=Color.from_ansi(200))
    assert styles["y"] == Style(color=Color.from_ansi(200), bgcolor=Color.from_rgb(1, 2, 3))


def test_a_reset_goes_back_to_the_ground() -> None:
    base = Style(color=Color.from_ansi(7), bgcolor=Color.from_ansi(0))
    assert text_view.coloured("\x1b[31;41ma\x1b[39mb\x1b[49mc\x1b[md", base)[1:] == [
        ("b", base + Style(bgcolor=Color.from_ansi(1))),
        ("c", base),
        ("d", base),
    ]


@settings(max_examples=200, deadline=None)
@given(st.text(alphabet="\x1b[];0123456789mKx\x07\t \x00\x9b漢", max_size=60))
def test_no_sequence_survives(text: str) -> None:
    shown = "".join(part for part, _ in text_view.coloured(text, PLAIN))
    assert not any(ord(char) < 32 or 127 <= ord(char) < 160 for char in shown)


async def test_it_follows_the_end_unless_one_reads() -> None:
    app = Pane()
    async with app.run_test(size=SIZE) as pilot:
        app.view.show("title", "".join(f"{n}\n" for n in range(50)))
        await pilot.pause()
        assert app.rows() == [str(n) for n in range(42, 50)]
        app.view.write("50\n51")
        await pilot.pause()
        assert app.rows()[-1] == "51"
        await pilot.press("pageup")
        before = app.rows()
        app.view.write("\n52\n")
        await pilot.pause()
        assert app.rows() == before
        await pilot.press("end")
        assert app.rows()[-1] == "52"
        app.view.write("53\n")
        await pilot.pause()
        assert app.rows()[-1] == "53"


async def test_an_unfinished_line_grows_in_place() -> None:
    app = Pane()
    async with app.run_test(size=SIZE) as pilot:
        for piece in ("com", "pil", "ing\n", "lin", "king"):
            app.view.write(piece)
        await pilot.pause()
        assert app.rows()[:3] == ["compiling", "linking", ""]


async def test_a_long_line_is_clipped_and_scrolls_sideways() -> None:
    app = Pane()
    async with app.run_test(size=SIZE) as pilot:
        app.view.show("t", "x" * 10_000 + "\nab[b]cd[/b]\n")
        await pilot.pause()
        assert app.rows()[0] == "x" * 40
        assert app.rows()[1] == "ab[b]cd[/b]"
        await pilot.press("right")
        assert app.rows()[1] == "/b]"
        app.view.scroll_to(x=CELLS_MAX + 60, animate=False)
        assert app.rows()[0].endswith("… +6,000")


async def test_w_wraps_long_lines_and_copies_them_whole() -> None:
    app = Pane()
    async with app.run_test(size=SIZE) as pilot:
        app.view.show("t", "x" * 50 + "\nend\n")
        await pilot.pause()
        assert app.rows()[:2] == ["x" * 40, "end"]
        await pilot.press("right", "w")
        assert app.rows()[:3] == ["x" * 40, "x" * 10, "end"]
        assert app.view.text == "x" * 50 + "\nend"
        await pilot.press("w")
        assert app.rows()[:2] == ["x" * 40, "end"]


async def test_the_selection_is_the_text_under_it_also_sideways() -> None:
    app = Pane()
    async with app.run_test(size=SIZE) as pilot:
        app.view.show("t", "\x1b[32m0123456789" + "漢" * 30 + "\x1b[0m\nsecond line\n")
        await pilot.pause()
        await pilot.press("right")
        await pilot.mouse_down(OutputView, offset=(1, 0))
        await pilot.hover(OutputView, offset=(3, 1))
        await pilot.mouse_up(OutputView, offset=(3, 1))
        assert app.screen.get_selected_text() == "9" + "漢" * 30 + "\nsecond line"
        assert app.view.text == "0123456789" + "漢" * 30 + "\nsecond line"


async def test_all_of_it_is_the_selection_without_bounds() -> None:
    app = Pane()
    async with app.run_test(size=SIZE) as pilot:
        app.view.show("t", "a\nb\nc")
        await pilot.pause()
        assert app.view.get_selection(Selection(None, None)) == ("a\nb\nc", "\n")
        assert app.view.get_selection(Selection(Offset(0, key(1, 0)), Offset(1, key(1, 0)))) == (
            "b",
            "\n",
        )


async def test_the_title_is_never_markup() -> None:
    app = Pane()
    async with app.run_test(size=SIZE):
        app.view.show("[bold]x\x1b[31m\ny", "")
        assert app.view.title == "[bold]x\x1b[31m\ny"


async def test_clear_takes_all_away() -> None:
    app = Pane()
    async with app.run_test(size=SIZE) as pilot:
        app.view.show("t", "a\n" * 100)
        await pilot.pause()
        app.view.clear()
        await pilot.pause()
        assert app.rows() == [""] * 8
        assert app.view.text == ""


DIFF = "--- a\n+++ b\n@@ -8,3 +8,3 @@\n-old = 1\n+new = 1\n same\n"


async def test_a_diff_is_drawn_as_in_the_conversation_from_its_beginning() -> None:
    app = Pane()
    rows = "".join(f" {n}\n" for n in range(20))
    async with app.run_test(size=SIZE) as pilot:
        app.view.show("t", "x\n" * 50)
        await pilot.pause()
        app.view.show("t", DIFF.replace(",3", ",23") + rows, diff=True)
        await pilot.pause()
        drawn = draw_diff(DIFF.replace(",3", ",23") + rows, SIZE[0] - 1, app.view._look)  # pyright: ignore[reportPrivateUsage]
        assert app.rows() == [line.text.rstrip() for line in drawn[:8]]
        assert app.rows()[:3] == [" 8 − old = 1", " 8 + new = 1", " 9   same"]
        looks = {app.view.render_line(row).text[3]: style_at(app.view, row, 3) for row in range(3)}
        assert len({(look.color, look.bgcolor) for look in looks.values()}) == 3


async def test_long_lines_of_a_diff_are_broken_and_copied_whole() -> None:
    app, long = Pane(), "value = " + "word " * 20 + "end"
    async with app.run_test(size=SIZE) as pilot:
        app.view.show("t", f"--- a\n+++ b\n@@ -1 +1,2 @@\n same\n+{long}\n", diff=True)
        await pilot.pause()
        assert app.view.max_scroll_x == 0
        assert sum("↪" in row for row in app.rows()) > 1
        end = Selection(Offset(0, key(0, 0)), Offset(1 << 20, key(1, 99)))
        assert app.view.get_selection(end) == (f" same\n+{long}", "\n")
        everything = app.view.get_selection(Selection(None, None))
        assert everything is not None
        assert everything[0].startswith("--- a\n+++ b\n@@ ")
        app.view.show("t", "y" * 5_000)
        await pilot.press("w", "w", "end")
        assert app.view.max_scroll_x > 0


async def test_where_nothing_was_printed_that_is_said_and_not_copied() -> None:
    app = Pane()
    async with app.run_test(size=SIZE) as pilot:
        await pilot.pause()
        assert app.rows() == [""] * 8
        app.view.show("t", "")
        await pilot.pause()
        assert app.rows() == ["No output yet", *[""] * 7]
        assert app.view.get_selection(Selection(None, None)) == ("", "\n")
        assert app.view.text == ""
        app.view.write("one\ntwo\n")
        await pilot.pause()
        assert app.rows()[:3] == ["one", "two", ""]
        app.view.clear()
        await pilot.pause()
        assert app.rows() == [""] * 8


async def test_text_is_selected_by_keys_and_the_sequences_are_not() -> None:
    app = Pane()
    async with app.run_test(size=SIZE) as pilot:
        app.view.show("t", "one \x1b[31mred\x1b[0m\ntwo\n漢字 three\n")
        await pilot.pause()
        await pilot.press("shift+down", "shift+down", "shift+right")
        assert app.view.selected_text == "one red\ntwo\n漢"
        await pilot.press("shift+left", "shift+left")
        assert app.view.selected_text == "one red\ntwo"
        await pilot.press("shift+up")
        assert app.view.selected_text == "one"
        await pilot.press("escape")
        assert app.view.selected_text == ""


async def test_a_selection_by_keys_goes_on_out_of_sight() -> None:
    app = Pane()
    async with app.run_test(size=SIZE) as pilot:
        app.view.show("t", "".join(f"{n}\n" for n in range(50)))
        await pilot.pause()
        await pilot.press(*["shift+up"] * 12)
        chosen = app.view.selected_text.split("\n")
        assert app.rows()[0] == "37"
        assert chosen == ["", *(str(n) for n in range(38, 50))]
        await pilot.press("home")
        assert app.view.selected_text.split("\n") == chosen
        await pilot.press("end", *["shift+up"] * 60)
        assert app.rows()[0] == "0"
        assert app.view.selected_text.split("\n") == [str(n) for n in range(50)]


async def test_keys_go_on_from_what_the_mouse_selected() -> None:
    app = Pane()
    async with app.run_test(size=SIZE) as pilot:
        app.view.show("t", "first line\nsecond line\n")
        await pilot.pause()
        await pilot.mouse_down(OutputView, offset=(2, 0))
        await pilot.hover(OutputView, offset=(5, 0))
        await pilot.mouse_up(OutputView, offset=(5, 0))
        before = app.view.selected_text
        await pilot.press("shift+right", "shift+right")
        assert len(app.view.selected_text) == len(before) + 2
        assert app.view.selected_text.startswith(before)


async def test_it_wraps_from_the_beginning_where_that_is_said() -> None:
    app = Pane()
    app.view.wrap = True
    async with app.run_test(size=SIZE) as pilot:
        app.view.show("t", "x" * 50 + "\nend\n")
        await pilot.pause()
        assert app.rows()[:3] == ["x" * 40, "x" * 10, "end"]


async def test_it_is_scrolled_between_other_styles_and_the_next_frame() -> None:
    app = Pane()
    async with app.run_test(size=SIZE) as pilot:
        app.view.show("x", "".join(f"line {number}\n" for number in range(200)))
        await pilot.pause()
        app.view.notify_style_update()
        app.view.scroll_y = 0
        assert app.view.render_line(0).text.startswith("line 0")


def test_a_url_in_output_can_be_opened() -> None:
    spans = coloured("\x1b[32mReady\x1b[0m on http://127.0.0.1:8000/ (quit with ^C)", Style())
    (url,) = [(text, style) for text, style in spans if style.link]
    assert url[0] == url[1].link == "http://127.0.0.1:8000/"
    assert url[1].underline
    assert plain(["at http://a.org."]) == "at http://a.org."
    text = "http://a.org/" + ")" * 100_000
    assert coloured(text, Style()) == [(text, Style())]


async def test_it_scrolls_when_its_styles_have_changed_and_nothing_was_laid_out_since() -> None:
    app = Pane()
    async with app.run_test(size=SIZE) as pilot:
        app.view.show("x", "\n".join(map(str, range(100))))
        await pilot.pause()
        app.view.notify_style_update()
        app.view.write("\nlast")
        app.view.action_edge(-1)
        await pilot.pause()
        assert app.rows()[0].startswith("0")
