"""The output pane: what was cut, in full; diffs; and what running calls show of time."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.screens.driving import items, running, say, turn, until
from tests.support.fake_agent import MODEL, Hold, World
from tui.agent import events
from tui.app import HoldfastApp
from tui.widgets.conversation.items import ToolItem
from tui.widgets.full_copy import pieces

DIFF = "--- a\n+++ b\n@@ -1 +1 @@\n-old\n+new\n"


def receipt(path: Path) -> dict[str, Any]:
    return {"stages": ["spill"], "bytes_total": 482_300, "bytes_shown": 3100, "path": str(path)}


def badge(app: HoldfastApp) -> str:
    return str(app.chat.query_one("#output-badge").render())


def script(path: Path, diff: str = "") -> list[Any]:
    done = events.ToolFinished("t", "run_command", False, 2, receipt(path), "done", "the cut", diff)
    return turn(events.ToolStarted("t", "run_command", {"command": "x"}, "x"), done)


async def test_opening_the_card_of_a_cut_output_shows_all_of_it(tmp_path: Path) -> None:
    world, copy = World(), tmp_path / "full.txt"
    copy.write_text("".join(f"line {n}\n" for n in range(30_000)))
    world.scripts.append(script(copy))
    async with running(world) as (app, pilot):
        await say(pilot, "go")
        await until(pilot, lambda: app.chat.status.state.turns == 1)
        assert app.chat.output.text == "the cut"
        assert badge(app) == "✂ 471 KB → 3.0 KB · full copy kept"
        app.bridge.presenter.open_output(items(app, ToolItem)[0])
        await until(pilot, lambda: "this is the full copy" in badge(app))
        assert app.chat.output.text == copy.read_text().rstrip("\n")


async def test_a_full_copy_that_is_gone_leaves_what_is_known(tmp_path: Path) -> None:
    world = World()
    world.scripts.append(script(tmp_path / "gone.txt"))
    async with running(world) as (app, pilot):
        await say(pilot, "go")
        await until(pilot, lambda: app.chat.status.state.turns == 1)
        app.bridge.presenter.open_output(items(app, ToolItem)[0])
        await until(pilot, lambda: "is gone" in badge(app))
        assert app.chat.output.text == "the cut"


async def test_an_edit_shows_its_diff_and_no_badge() -> None:
    world = World()
    done = events.ToolFinished("t", "edit_file", False, 2, None, "+1 −1", "ok", DIFF)
    world.scripts.append(turn(events.ToolStarted("t", "edit_file", {}, "a.py"), done))
    async with running(world) as (app, pilot):
        await say(pilot, "go")
        await until(pilot, lambda: app.chat.status.state.turns == 1)
        assert app.chat.output.text == DIFF.rstrip("\n")
        assert not app.chat.query_one("#output-badge").display


def test_the_middle_of_a_huge_copy_is_left_out_and_said(tmp_path: Path) -> None:
    file = tmp_path / "huge.txt"
    file.write_text("a" * 600 + "é" * 600 + "z" * 600)
    text = "".join(pieces(file, most=1000))
    assert text.startswith("a" * 500 + "\n… 1,400 bytes are not shown")
    assert text.endswith("z" * 500)
    assert "".join(pieces(file, most=10_000)) == file.read_text()


def test_only_a_file_is_read(tmp_path: Path) -> None:
    for path in (tmp_path, Path("/dev/zero"), tmp_path / "missing"):
        with pytest.raises(OSError, match=r"."):
            next(pieces(path))


async def test_seconds_of_a_running_call_and_of_silence_are_counted() -> None:
    world, wait, run = World(), Hold(), Hold()
    world.scripts.append(
        turn(
            wait,
            events.TextDelta("I"),
            events.ToolStarted("t", "run_command", {"command": "x"}, "x"),
            run,
            events.ToolFinished("t", "run_command", False, 7.04, None, "done", ""),
        )
    )
    async with running(world) as (app, pilot):
        title = app.chat.prompt_rule
        await say(pilot, "go")
        await until(pilot, lambda: f"waiting for {MODEL}" in title.title.plain)
        world.clock.elapsed += 4
        await until(pilot, lambda: " 4 s" in title.title.plain)
        assert "nothing heard" not in title.title.plain
        world.clock.elapsed += 2
        await until(pilot, lambda: "nothing heard for 6 s" in title.title.plain)
        wait.release()
        await until(pilot, lambda: bool(items(app, ToolItem)))
        (item,) = items(app, ToolItem)
        world.clock.elapsed += 7.9
        await until(pilot, lambda: item.seconds == 7)
        assert "nothing heard" not in title.title.plain
        run.release()
        await until(pilot, lambda: item.state == "ok")
        assert item.seconds == 7.04


async def test_ctrl_o_opens_every_call_and_closes_them_again() -> None:
    async with running(World()) as (app, pilot):
        cards = [ToolItem(str(n), "read_file", state="ok", preview="x") for n in range(3)]
        for card in cards[:2]:
            app.chat.add(card)
        await pilot.press("ctrl+o")
        app.chat.add(cards[2])
        assert not any(card.folded for card in cards)
        await pilot.press("ctrl+o")
        assert all(card.folded for card in cards)
