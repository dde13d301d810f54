"""The full copy on the screen: paged, wrapped, to the side, searched; wild bytes are harmless."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from textual.pilot import Pilot

from tests.ui.widgets.stage import Stage, search_status
from tui.ui.widgets.file_viewer import line_file
from tui.ui.widgets.file_viewer.line_file import WINDOW, LineFile
from tui.ui.widgets.file_viewer.pane import FilePane
from tui.ui.widgets.file_viewer.view import FileView

SIZE = (40, 8)


class Shown(Stage):
    def __init__(self, data: bytes | Path) -> None:
        self.pane = FilePane()
        self.data = data
        super().__init__(self.pane)

    @property
    def view(self) -> FileView:
        return self.pane.view

    def on_mount(self) -> None:
        super().on_mount()
        self.widget = self.view
        self.view.focus()
        self.pane.show(LineFile(self.data))


async def settled(pilot: Pilot[None], app: Shown) -> None:
    """All is counted and drawn."""
    for _ in range(400):
        await pilot.pause(0.005)
        if not app.view.file.lines.unfinished:
            await pilot.pause(0.1)
            return
    pytest.fail("it is not counted to the end")


async def test_pages_edges_and_the_scroll_bar() -> None:
    app = Shown(b"".join(b"%d\n" % n for n in range(100_000)))
    async with app.run_test(size=SIZE) as pilot:
        await settled(pilot, app)
        assert app.rows() == [str(n) for n in range(8)]
        await pilot.press("pagedown")
        assert app.rows()[0] == "7"
        await pilot.press("G")
        assert app.rows() == [str(n) for n in range(99_992, 100_000)]
        assert app.view.scroll_y == app.view.max_scroll_y == 99_992
        await pilot.press("pageup", "k")
        assert app.rows()[0] == "99984"
        app.view.scroll_to(y=50_000, animate=False)
        await pilot.pause()
        assert app.rows()[0] == "50000"
        await pilot.press("g")
        assert app.rows()[0] == "0"


async def test_the_end_is_shown_before_the_lines_are_counted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def nothing(_counts: object, _seconds: float) -> bool:
        return False

    monkeypatch.setattr(line_file.MatchCounts, "go_on", nothing)
    app = Shown(b"".join(b"%d\n" % n for n in range(200_000)))
    async with app.run_test(size=SIZE) as pilot:
        await pilot.pause()
        await pilot.press("G")
        assert app.rows()[-1] == "199999"
        await pilot.press("pageup", "pagedown", "j")
        assert app.rows()[-1] == "199999"


async def test_a_huge_line_is_clipped_and_paged_to_the_side() -> None:
    line = "".join(f"{n:07d} " for n in range(100_000))
    app = Shown(f"{line}\nafter\n".encode())
    async with app.run_test(size=SIZE) as pilot:
        await settled(pilot, app)
        assert app.rows()[1] == "after"
        app.view.scroll_to(x=100_000, animate=False)
        await pilot.pause()
        assert app.rows()[0].endswith(f"… +{len(line) - WINDOW:,}")
        await pilot.press("l")
        assert "+ … " in app.rows()[0]
        await pilot.press("h")
        await pilot.press("w")
        assert app.rows()[0].startswith("0000000 0000001")
        await pilot.press("l", "l")
        assert "+ … " in app.rows()[0]


async def test_wrapping_shows_all_of_a_line_and_goes_row_by_row() -> None:
    app = Shown(b"a" * 100 + b"\n" + b"b" * 100 + b"\nend\n")
    async with app.run_test(size=SIZE) as pilot:
        await settled(pilot, app)
        await pilot.press("w")
        assert app.rows() == ["a" * 40, "a" * 40, "a" * 20, "b" * 40, "b" * 40, "b" * 20, "end", ""]
        await pilot.resize_terminal(40, 4)
        await pilot.press("g", "j")  # the scroll bar takes a column
        assert app.rows() == ["a" * 39, "a" * 22, "b" * 39, "b" * 39]
        await pilot.press("k")
        assert app.rows()[0] == "a" * 39
        await pilot.press("G")
        assert app.rows() == ["b" * 39, "b" * 39, "b" * 22, "end"]


async def test_carriage_returns_leave_what_was_written_last() -> None:
    app = Shown(b"10 %\r20 %\r30 %\r\ndone\r\n" + b"\rx" * 60_000 + b"\rlast")
    async with app.run_test(size=SIZE) as pilot:
        await settled(pilot, app)
        assert app.rows()[:3] == ["30 %", "done", "last"]


@pytest.mark.parametrize("seed", range(6))
async def test_any_bytes_are_harmless(seed: int) -> None:
    rnd = random.Random(seed)
    kinds = [b"\x00" * 300, b"\xff\xfe", b"\x1b[31m", b"\x1b]0;t\x07", b"\r", "漢\u202e".encode()]
    data = b"".join(rnd.choice([rnd.randbytes(900), *kinds]) for _ in range(300))
    app = Shown(data)
    async with app.run_test(size=SIZE) as pilot:
        await settled(pilot, app)
        for key in ("G", "w", "pageup", "l", "g", "w", "l", "l", "pagedown", "h"):
            await pilot.press(key)
            assert not any(ord(char) < 32 for row in app.rows() for char in row)


async def test_colours_are_kept() -> None:
    app = Shown(b"\x1b[31mred\x1b[0m plain\n")
    async with app.run_test(size=SIZE) as pilot:
        await settled(pilot, app)
        red, plain = list(app.view.render_line(0))[:2]
        assert (red.text, plain.text) == ("red", " plain")
        assert red.style != plain.style


async def test_the_search_goes_round_and_marks_the_place() -> None:
    rows = [f"row {n}" for n in range(5000)]
    rows[4000] = "here is an ERROR, and an error"
    app = Shown("\n".join(rows).encode())
    async with app.run_test(size=SIZE) as pilot:
        await settled(pilot, app)

        async def said(text: str) -> None:
            for _ in range(400):
                await pilot.pause(0.005)
                if text in search_status(app.pane):
                    return
            pytest.fail(f"{search_status(app.pane)!r} is not {text!r}")

        await pilot.press("slash", *"error", "enter")
        await said("1 of 2")
        assert rows[4000] in app.rows()
        await pilot.press("n")
        await said("2 of 2")
        await pilot.press("n")
        await said("1 of 2 · from the start")
        y = app.rows().index(rows[4000])
        looks = {part.text: part.style for part in app.view.render_lines(app.view.size.region)[y]}
        assert looks["ERROR"] != looks["error"] != looks["here is an "]
        await pilot.press("escape")
        assert not app.pane.has_class("-search")
        await pilot.press("slash", *"nowhere", "enter")
        await said("not found")
        await pilot.press("slash", *"ERROR", "enter")
        await said("1 of 1")


async def test_a_find_far_to_the_side_is_brought_into_sight() -> None:
    app = Shown(b"x" * 900_000 + b"needle" + b"y" * 900_000 + b"\n")
    async with app.run_test(size=SIZE) as pilot:
        await settled(pilot, app)
        for _ in range(2):
            await pilot.press("slash", *"needle", "enter")
            for _ in range(200):
                await pilot.pause(0.005)
                if "1 of 1" in search_status(app.pane):
                    break
            assert any("needle" in row for row in app.rows())
            await pilot.press("escape", "w")


async def test_what_is_selected_is_what_stands_there() -> None:
    app = Shown(b"first line\nsecond line\nthird\n")
    async with app.run_test(size=SIZE) as pilot:
        await settled(pilot, app)
        await pilot.mouse_down(FileView, offset=(6, 0))
        await pilot.hover(FileView, offset=(5, 1))
        await pilot.mouse_up(FileView, offset=(5, 1))
        assert app.screen.get_selected_text() == "line\nsecond"


async def test_text_is_selected_by_keys_also_out_of_sight() -> None:
    app = Shown(b"".join(b"line %d\n" % n for n in range(50)))
    async with app.run_test(size=SIZE) as pilot:
        await settled(pilot, app)
        await pilot.press(*["shift+down"] * 12, *["shift+right"] * 4)
        assert app.view.selected_text.split("\n") == [*(f"line {n}" for n in range(12)), "line"]
        await pilot.press("escape")
        assert app.view.selected_text == ""
