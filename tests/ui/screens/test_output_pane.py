"""The output pane: what was cut, in full; diffs; and what running calls show of time."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from rich.color import Color
from textual.pilot import Pilot

from tests.support.script import MODEL, Ask, Hold
from tests.support.world import World
from tests.ui.screens.driving import ROOMY, items, running, say, turn, until
from tests.ui.widgets.stage import search_status
from tui.core import facts
from tui.core.workspace import Workspace
from tui.permissions.types import Call, Decision
from tui.ui.app import HoldfastApp
from tui.ui.screens.output_side import OutputSide
from tui.ui.widgets.conversation.item_renderer import source
from tui.ui.widgets.conversation.items import ToolItem

DIFF = "--- a\n+++ b\n@@ -1 +1 @@\n-old\n+new\n"


def kept(folder: Path) -> tuple[World, Path]:
    """A world in a folder, and where a full output of it would lie."""
    results = Workspace.at(folder).tool_results
    results.mkdir(parents=True)
    return World(folder), results / "full.txt"


def receipt(path: Path) -> dict[str, Any]:
    return {"stages": ["spill"], "bytes_total": 482_300, "bytes_shown": 3100, "path": str(path)}


def badge(app: HoldfastApp) -> str:
    return str(app.chat.query_one("#output-badge").render())


def script(path: Path, diff: str = "") -> list[Any]:
    done = facts.ToolFinished("t", "run_command", False, 2, receipt(path), "done", "the cut", diff)
    return turn(facts.ToolStarted("t", "run_command", {"command": "x"}, "x"), done)


async def test_opening_the_card_of_a_cut_output_shows_all_of_it(tmp_path: Path) -> None:
    world, copy = kept(tmp_path)
    copy.write_text("".join(f"line {n}\n" for n in range(30_000)))
    world.scripts.append(script(copy))
    async with running(world) as (app, pilot):
        await say(pilot, "go")
        await until(pilot, lambda: app.chat.status.state.turns == 1)
        assert app.chat.output.text == "the cut"
        assert badge(app) == "✂ 471 KB → 3.0 KB · full copy kept"
        app.frontend.renderer.open_output(items(app, ToolItem)[0])
        await until(pilot, lambda: "this is the full copy" in badge(app))
        side = app.chat.side
        await until(pilot, lambda: bool(side.copy.view.file.size))
        assert side.copy.view.text() == copy.read_text().rstrip("\n")
        assert side.copy.display
        assert not side.output.display


async def test_a_full_copy_that_is_gone_leaves_what_is_known(tmp_path: Path) -> None:
    world, copy = kept(tmp_path)
    world.scripts.append(script(copy))
    async with running(world) as (app, pilot):
        await say(pilot, "go")
        await until(pilot, lambda: app.chat.status.state.turns == 1)
        app.frontend.renderer.open_output(items(app, ToolItem)[0])
        await until(pilot, lambda: "the full copy is gone" in badge(app))
        assert app.chat.output.text == "the cut"


@pytest.mark.parametrize(
    ("where", "why"),
    [("secret", "wasn't opened"), ("dots", "wasn't opened"), ("link", "can't read the full copy")],
)
async def test_what_a_receipt_names_elsewhere_is_not_opened(
    where: str, why: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    secret, seen = tmp_path / "id_rsa", tmp_path / "seen"
    secret.write_text("do not tell")
    secret.chmod(0o600)
    (tmp_path / "w").mkdir()
    world, copy = kept(tmp_path / "w")
    copy.with_name("linked.txt").symlink_to(secret)
    editor = tmp_path / "editor"
    editor.write_text(f'#!/bin/sh\ncat "$1" >> {seen}\n')
    editor.chmod(0o755)
    monkeypatch.setenv("VISUAL", str(editor))
    named = {
        "secret": secret,
        "dots": copy.parent / "../../../id_rsa",
        "link": copy.with_name("linked.txt"),
    }
    world.scripts.append(script(named[where]))
    async with running(world, ROOMY) as (app, pilot):
        side = await opened(world, copy, pilot, app)
        await pilot.press("o")
        await until(pilot, lambda: why in badge(app))
        assert not side.whole
        await side.action_search()
        assert side.copy.view.text() == "the cut"
        await side.action_outside("editor")
    assert "do not tell" not in (seen.read_text() if seen.exists() else "")


async def opened(world: World, path: Path, pilot: Pilot[None], app: HoldfastApp) -> OutputSide:
    """The pane with a cut output, focused."""
    await say(pilot, "go")
    await until(pilot, lambda: app.chat.status.state.turns == 1)
    app.chat.output.focus()
    await pilot.pause()
    return app.chat.side


def keys(app: HoldfastApp) -> str:
    return str(app.chat.query_one("#output-keys").render())


async def test_o_opens_all_over_the_conversation_and_esc_goes_back(tmp_path: Path) -> None:
    world, copy = kept(tmp_path)
    copy.write_text("".join(f"line {n}\n" for n in range(3000)))
    world.scripts.append(script(copy))
    async with running(world, ROOMY) as (app, pilot):
        side = await opened(world, copy, pilot, app)
        assert keys(app).startswith("o open   p pin   m hide   y copy")
        await pilot.press("o")
        await until(pilot, lambda: side.whole and side.copy.view.file.size > 0)
        assert side.size.width == app.size.width
        assert "this is the full copy" in badge(app)
        assert side.copy.view.has_focus
        await pilot.press("G")
        shown = side.copy.view.render_lines(side.copy.view.size.region)
        assert shown[-1].text.strip() == "line 2999"
        await pilot.press("escape")
        await until(pilot, lambda: side.size.width < app.size.width)
        assert side.whole


async def test_slash_searches_the_whole_copy(tmp_path: Path) -> None:
    world, copy = kept(tmp_path)
    copy.write_text("".join(f"line {n}\n" for n in range(3000)))
    world.scripts.append(script(copy))
    async with running(world, ROOMY) as (app, pilot):
        side = await opened(world, copy, pilot, app)
        await pilot.press("slash")
        await until(pilot, lambda: side.whole and not side.copy.view.has_focus)
        await pilot.press(*"299", "enter")
        await until(pilot, lambda: "1 of 13" in search_status(side.copy))  # 299, 1299, 2299, 2990 …
        await pilot.press("n")
        await until(pilot, lambda: "2 of 13" in search_status(side.copy))
        await pilot.press("N", "N")
        await until(pilot, lambda: "13 of 13 · from the end" in search_status(side.copy))
        await pilot.press("escape")
        await until(pilot, lambda: not side.copy.has_class("-search"))
        assert side.display


async def test_slash_searches_what_was_not_cut_too() -> None:
    world = World()
    done = facts.ToolFinished("t", "run_command", False, 2, None, "done", "one\ntwo\nthree")
    world.scripts.append(turn(facts.ToolStarted("t", "run_command", {}, "x"), done))
    async with running(world, ROOMY) as (app, pilot):
        side = await opened(world, Path(), pilot, app)
        await pilot.press("slash", *"two", "enter")
        await until(pilot, lambda: "1 of 1" in search_status(side.copy))


async def test_y_copies_what_is_shown_and_says_so(tmp_path: Path) -> None:
    world, copy = kept(tmp_path)
    copy.write_text("\x1b[31mred\x1b[0m\n")
    world.scripts.append(script(copy))
    async with running(world, ROOMY) as (app, pilot):
        side = await opened(world, copy, pilot, app)
        await pilot.press("y")
        assert app.clipboard == "the cut"
        await pilot.press("o")
        await until(pilot, lambda: side.whole and side.copy.view.file.size > 0)
        await pilot.press("y")
        assert app.clipboard == "red"
        assert "Copied 3 characters." in keys(app)


async def test_a_pipe_in_the_place_of_the_copy_is_not_read(tmp_path: Path) -> None:
    world, copy = kept(tmp_path)
    os.mkfifo(copy)
    world.scripts.append(script(copy))
    async with running(world) as (app, pilot):
        side = await opened(world, copy, pilot, app)
        await pilot.press("o")
        await until(pilot, lambda: "isn't a regular file" in badge(app))
        assert not side.whole
        assert side.output.text == "the cut"


async def test_an_edit_shows_its_diff_and_no_badge() -> None:
    world = World()
    done = facts.ToolFinished("t", "edit_file", False, 2, None, "+1 −1", "ok", DIFF)
    world.scripts.append(turn(facts.ToolStarted("t", "edit_file", {}, "a.py"), done))
    async with running(world) as (app, pilot):
        await say(pilot, "go")
        await until(pilot, lambda: app.chat.status.state.turns == 1)
        assert app.chat.output.text == DIFF.rstrip("\n")
        assert not app.chat.query_one("#output-badge").display


async def test_seconds_of_a_running_call_and_of_silence_are_counted() -> None:
    world, wait, run = World(), Hold(), Hold()
    world.scripts.append(
        turn(
            wait,
            facts.TextDelta("I"),
            facts.ToolStarted("t", "run_command", {"command": "x"}, "x"),
            run,
            facts.ToolFinished("t", "run_command", False, 7.04, None, "done", ""),
        )
    )
    async with running(world) as (app, pilot):
        title = app.chat.prompt_rule
        await say(pilot, "go")
        await until(pilot, lambda: f"waiting for {MODEL}" in title.title.plain)
        world.clock.elapsed += 4.5
        await until(pilot, lambda: " 4 s" in title.title.plain)
        assert "nothing received" not in title.title.plain
        world.clock.elapsed += 2
        await until(pilot, lambda: "nothing received for 6 s" in title.title.plain)
        wait.release()
        await until(pilot, lambda: bool(items(app, ToolItem)))
        (item,) = items(app, ToolItem)
        world.clock.elapsed += 7.9
        await until(pilot, lambda: item.seconds == 7)
        assert "nothing received" not in title.title.plain
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


async def test_a_commands_colours_are_seen_in_the_pane_and_on_its_card() -> None:
    """The model gets none; the result of `!` was drawn in colours all along."""
    red, world, hold = "\x1b[31mE  boom\x1b[0m here\n", World(), Hold()
    ended = facts.ToolFinished("t", "run_command", True, 2, None, "exit 1", "E  boom here\n")
    began = facts.ToolStarted("t", "run_command", {"command": "make"}, "make")
    world.scripts.append(turn(began, facts.ToolOutputChunk("t", red), hold, ended))
    async with running(world, ROOMY) as (app, pilot):
        await say(pilot, "go")
        await until(pilot, lambda: "boom" in app.chat.output.text)
        assert app.chat.output.raw.startswith(red.rstrip("\n"))
        hold.release()
        await until(pilot, lambda: app.chat.status.state.turns == 1)
        (item,) = items(app, ToolItem)
        talk = app.chat.conversation
        for folded in (True, False):
            item.folded = folded
            talk.changed(item)
            await pilot.pause()
            rows = [talk.render_line(y) for y in range(talk.size.height)]
            (boom,) = [part for row in rows for part in row if "boom" in part.text]
            assert boom.text == "E  boom"
            assert boom.style
            assert boom.style.color == Color.from_ansi(1)
        assert source(item).endswith("E  boom here")
        app.frontend.renderer.open_output(item)
        assert app.chat.output.raw.startswith("\x1b[31mE")


@pytest.mark.parametrize("declined", [True, False])
async def test_why_a_call_did_not_run_is_read_whole_in_the_pane(declined: bool) -> None:
    """A sentence goes on in the next row, at a word; a command's line goes out of sight."""
    why = "Declined by the user; it didn't run. Ask what to do instead, or continue without it."
    if not declined:
        why = "Wrong arguments for run_command: " + why
    world = World()
    call = Call("t", "run_command", "run", "make")
    asked = Ask(call, Decision("ask", "why", "default"))
    summary = "denied" if declined else "Wrong arguments for run_command"
    ended = facts.ToolFinished("t", "run_command", True, 0.1, None, summary, why)
    began = facts.ToolStarted("t", "run_command", {"command": "make"}, "make")
    world.scripts.append(turn(began, *([asked] if declined else []), ended))
    async with running(world, ROOMY) as (app, pilot):
        await say(pilot, "go")
        if declined:
            await until(pilot, lambda: len(app.screen_stack) > 1)
            world.clock.elapsed += 1
            await pilot.press("escape")
        await until(pilot, lambda: app.chat.status.state.turns == 1)
        (item,) = items(app, ToolItem)
        app.frontend.renderer.open_output(item)
        if not app.chat.side.in_sight:
            app.chat.panes.toggle()
        view = app.chat.output

        def rows() -> str:
            lines = [view.render_line(y).text.rstrip() for y in range(view.size.height)]
            return " ".join(filter(None, lines))

        await until(pilot, lambda: rows() == view.text != "")
        assert view.size.width < len(why)
        assert view.text.endswith("continue without it.")
        assert not view.wrap
        view.show("x", "w " * 200)
        await until(pilot, lambda: rows().startswith("w w"))
        assert len(rows()) <= view.size.width


async def test_what_a_card_cuts_is_whole_in_the_pane() -> None:
    """Events have the beginning of a result; its end is on the card, and all of it in the pane."""
    text = "".join(f"line {n}\n" for n in range(1_500))
    world = World()
    began = facts.ToolStarted("t", "read_file", {"path": "big"}, "big")
    world.scripts.append(
        turn(began, facts.ToolFinished("t", "read_file", False, 0.1, None, "", text))
    )
    async with running(world) as (app, pilot):
        await say(pilot, "go")
        await until(pilot, lambda: app.chat.status.state.turns == 1)
        (item,) = items(app, ToolItem)
        assert "… +1,488 lines · F4 shows all\nline 1494" in item.preview
        assert app.chat.output.text == text.rstrip("\n")
        app.chat.side.clear()
        app.frontend.renderer.open_output(item)
        assert app.chat.output.text == text.rstrip("\n")
