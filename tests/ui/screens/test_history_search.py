"""Ctrl+R and Ctrl+G: a prompt from the history, or from an editor."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest
from textual.app import App
from textual.pilot import Pilot

from tests.support.world import World
from tests.ui.screens.driving import running, until
from tui.ui.app import HoldfastApp
from tui.ui.widgets.search_bars import PromptSearch, matching


def test_the_newest_comes_first_and_each_once() -> None:
    entries = ["fix the test", "Fix it", "look", "fix the test"]
    assert matching(entries, "FIX") == ["fix the test", "Fix it"]
    assert matching(entries, "test the") == ["fix the test"]
    assert matching(entries, "zzz") == []


async def searching(app: HoldfastApp, pilot: Pilot[None], *entries: str) -> PromptSearch:
    for entry in entries:
        app.chat.prompt.past.add(entry)
    await pilot.press(*"draft", "ctrl+r")
    await until(pilot, lambda: bool(app.chat.query(PromptSearch)))
    search = app.chat.query_one(PromptSearch)
    assert search.opened
    return search


async def test_it_finds_while_typing_and_enter_takes_it() -> None:
    async with running(World()) as (app, pilot):
        search = await searching(app, pilot, "run the tests", "read it", "run it")
        await pilot.press(*"run")
        assert search.chosen == "run it"
        await pilot.press("ctrl+r")
        assert search.chosen == "run the tests"
        await pilot.press("down", "up", "enter")
        assert app.chat.prompt.text == "run the tests"
        assert app.focused is app.chat.prompt
        assert not search.opened


async def test_escape_keeps_what_was_typed() -> None:
    world = World()
    async with running(world) as (app, pilot):
        search = await searching(app, pilot, "run it")
        await pilot.press(*"nothing like it")
        assert search.chosen is None
        await pilot.press("escape")
        assert app.chat.prompt.text == "draft"
        assert app.focused is app.chat.prompt
        assert world.agent.sent == []


@pytest.fixture
def suspended(monkeypatch: pytest.MonkeyPatch) -> None:
    @contextmanager
    def suspend(_: App[None]) -> Generator[None]:
        yield

    monkeypatch.setattr(App, "suspend", suspend)


def editor(folder: Path, body: str) -> str:
    path = folder / "editor"
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(0o755)
    return str(path)


@pytest.mark.usefixtures("suspended")
async def test_the_editor_gets_what_is_typed_and_gives_it_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(
        "VISUAL", editor(tmp_path, 'printf "%s, world\\nsecond\\n" "$(cat $1)" > $1')
    )
    async with running(World()) as (app, pilot):
        await pilot.press(*"hello", "ctrl+g")
        await until(pilot, lambda: app.chat.prompt.text == "hello, world\nsecond")
        assert app.focused is app.chat.prompt


@pytest.mark.usefixtures("suspended")
async def test_an_editor_that_fails_changes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("VISUAL", editor(tmp_path, "echo lost > $1; exit 3"))
    async with running(World()) as (app, pilot):
        await pilot.press(*"hello", "ctrl+g")
        await until(pilot, lambda: "exit code 3" in app.chat.notice.text)
        assert app.chat.prompt.text == "hello"
