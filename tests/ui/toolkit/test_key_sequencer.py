"""Keys of one burst take effect in their order, whoever answers them."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import ClassVar

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from textual import events
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.pilot import Pilot
from textual.screen import Screen
from textual.widgets import Input, Static, TextArea

from tests.support.world import World
from tests.ui.screens.driving import running, until
from tui.ui.screens.sessions import SessionsScreen
from tui.ui.toolkit.key_sequencer import KeySequencer


class Other(Screen[None]):
    """A screen with a field that has the focus."""

    AUTO_FOCUS: ClassVar[str | None] = "#other"
    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "dismiss(None)")]

    def compose(self) -> ComposeResult:
        yield Input(id="other")


class Vanishing(Static, can_focus=True):
    """Goes away with the first key it gets, and with whatever was sent to it behind that."""

    def on_key(self) -> None:
        self.screen.set_focus(self.screen.query_one(TextArea))
        self.remove()


class Typing(KeySequencer):
    """Two fields, and keys that go from one place to another."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("f3", "other"),
        Binding("f8", "focus_on('field')"),
        Binding("f9", "focus_on('text')"),
        Binding("f10", "focus_on('vanishing')"),
    ]
    AUTO_FOCUS: ClassVar[str | None] = "#text"

    @property
    def settled(self) -> bool:
        """Whether no key is on its way, and none waits for its turn."""
        return self._key_ahead is None and not self._keys_behind

    def compose(self) -> ComposeResult:
        yield TextArea(id="text")
        yield Input(id="field")
        yield Vanishing(id="vanishing")

    def action_other(self) -> None:
        self.push_screen(Other())

    def action_focus_on(self, name: str) -> None:
        self.query_one(f"#{name}").focus()


def burst(app: KeySequencer, *keys: str) -> None:
    """All of these at once, as one read from the terminal gives them."""
    for key in keys:
        app.post_message(events.Key(key, key if len(key) == 1 else None))


def text(app: KeySequencer) -> str:
    return app.query_one("#text", TextArea).text


@pytest.mark.parametrize(
    ("keys", "left"),
    [
        (["a", "b", "ctrl+u", "c", "d"], "cd"),
        (["t", "e", "h", "backspace", "backspace", "h", "e"], "the"),
        (["b", "left", "a", "end", "c"], "abc"),
        (["f8", "x", "f9", "y", "f8", "z", "f9", "backspace", "w"], "w"),
        (["a", "f3", "b", "escape", "c"], "ac"),
    ],
)
async def test_no_letter_overtakes_a_key_before_it(keys: Sequence[str], left: str) -> None:
    app = Typing()
    async with app.run_test() as pilot:
        burst(app, *keys)
        await settled(app, pilot)
        assert text(app) == left


async def test_letters_behind_a_key_that_opens_a_screen_go_to_its_field() -> None:
    app = Typing()
    async with app.run_test() as pilot:
        burst(app, "f3", *"hello", "backspace", "p")
        await settled(app, pilot)
        assert app.screen.query_one("#other", Input).value == "hellp"
        assert app.screen_stack[0].query_one("#text", TextArea).text == ""


async def test_a_paste_waits_for_its_turn() -> None:
    app = Typing()
    async with app.run_test() as pilot:
        burst(app, *"abc", "ctrl+u")
        app.post_message(events.Paste("pasted"))
        burst(app, "backspace", "!")
        await settled(app, pilot)
        assert text(app) == "paste!"


async def test_a_key_that_is_lost_with_its_widget_holds_nobody_up() -> None:
    app = Typing()
    async with app.run_test() as pilot:
        burst(app, "f10", "x", *"abc")
        await until(pilot, lambda: text(app) == "abc")


_KEYS = st.sampled_from(["a", "b", "c", "backspace", "ctrl+u", "left", "right", "home", "end"])


@settings(
    max_examples=15,
    deadline=None,
    suppress_health_check=[HealthCheck.differing_executors, HealthCheck.too_slow],
)
@given(st.lists(_KEYS, max_size=40))
async def test_a_burst_leaves_what_the_same_keys_leave_one_by_one(keys: list[str]) -> None:
    app = Typing()
    async with app.run_test() as pilot:
        burst(app, *keys)
        await settled(app, pilot)
        assert text(app) == typed(keys)


def typed(keys: Sequence[str]) -> str:
    """What a line holds after these keys."""
    line, at = "", 0
    for key in keys:
        match key:
            case "backspace":
                line, at = line[: max(0, at - 1)] + line[at:], max(0, at - 1)
            case "ctrl+u":
                line, at = line[at:], 0
            case "left":
                at = max(0, at - 1)
            case "right":
                at = min(len(line), at + 1)
            case "home":
                at = 0
            case "end":
                at = len(line)
            case letter:
                line, at = line[:at] + letter + line[at:], at + 1
    return line


async def test_the_prompt_and_the_session_browser_get_what_was_typed_for_them() -> None:
    world = World()
    world.add_row("the old one", hours=2)
    async with running(world) as (app, pilot):
        burst(app, *"teh", "backspace", "backspace", *"he", "ctrl+u", *"new")
        await until(pilot, lambda: app.chat.prompt.text == "new")
        burst(app, "f3", *"olf", "backspace", "d")
        await until(pilot, lambda: isinstance(app.screen, SessionsScreen))
        await until(pilot, lambda: app.screen.query_one("#filter", Input).value == "old")
        assert app.chat.prompt.text == "new"


async def settled(app: Typing, pilot: Pilot[None]) -> None:
    """Until all that was typed has done what it does."""
    await until(pilot, lambda: app.settled)
    await pilot.pause()
    await asyncio.sleep(0)
