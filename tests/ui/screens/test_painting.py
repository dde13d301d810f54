"""What is painted, and when: a key's effect at once, and only what can be seen."""

from __future__ import annotations

from functools import partial
from typing import Any, TypeAlias, cast

import pytest
from textual._compositor import Compositor
from textual.geometry import Region
from textual.message import Message
from textual.messages import Update
from textual.screen import Screen
from textual.strip import Strip
from textual.timer import Timer

from tests.support.world import World
from tests.ui.screens.driving import begun, running, until
from tui.ui.toolkit import base_screen
from tui.ui.widgets.conversation.items import AssistantItem

Chops: TypeAlias = list[dict[int, Strip | None]]


async def test_a_key_is_painted_without_waiting_for_a_frame(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    shown: list[str] = []
    paint, resume = cast("Any", Screen)._compositor_refresh, Timer.resume

    async with running(World()) as (app, pilot):
        await pilot.press("a")

        def note(screen: Screen[None]) -> None:
            shown.append(app.chat.prompt.text)
            paint(screen)

        def no_frame(timer: Timer) -> None:
            if timer.name != "screen_update":
                resume(timer)

        with monkeypatch.context() as patched:
            patched.setattr(Screen, "_compositor_refresh", note)
            patched.setattr(Timer, "resume", no_frame)
            patched.setattr(base_screen, "UPDATE_PERIOD", 0)  # the key before was just echoed
            await pilot.press("b")
            assert shown == ["ab"]


@pytest.mark.parametrize(
    "crop",
    [Region(0, 5, 120, 1), Region(3, 2, 40, 30), Region(0, 0, 120, 40), Region(0, 34, 120, 6)],
)
async def test_what_lies_behind_a_widget_is_left_out_where_it_cannot_be_seen(crop: Region) -> None:
    async with running(World()) as (app, pilot):
        await begun(app, pilot)
        ours: Any = app.screen._compositor  # pyright: ignore[reportPrivateUsage]
        textual: Any = Compositor
        chops: Chops = ours._render_chops(crop, _every)
        ours._get_renders = partial(textual._get_renders, ours)
        behind: Chops = ours._render_chops(crop, _every)
        drawn = [_within(crop, y, row, ours.cuts[y]) for y, row in enumerate(chops)]
        assert drawn == [_within(crop, y, row, ours.cuts[y]) for y, row in enumerate(behind)]
        assert not any(None in pieces for pieces in drawn)


def _every(_: int) -> bool:
    return True


def _within(
    crop: Region, y: int, row: dict[int, Strip | None], cuts: list[int]
) -> list[Strip | None]:
    """The pieces of a row that are painted within the crop."""
    if y not in crop.line_range:
        return []
    ends = zip(row.items(), cuts[1:], strict=True)
    return [strip for (x, strip), end in ends if x < crop.right and end > crop.x]


WAKE_UPS_A_MINUTE = 30
"""Of an idle screen, by its timers: whether everything is saved, every two seconds. It may only
fall."""


async def test_an_idle_screen_wakes_for_what_may_have_changed_alone() -> None:
    async with running(World()) as (app, pilot):
        await begun(app, pilot)
        nodes: list[Any] = [app, *app.screen.walk_children(with_self=True)]
        timers: list[Any] = [timer for node in nodes for timer in node._timers]
        woken = sum(60 / one._interval for one in timers if one._active.is_set())
        assert 0 < woken <= WAKE_UPS_A_MINUTE


async def test_deltas_of_one_frame_are_drawn_once_without_a_message(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    frames: list[str] = []
    messages: list[str] = []
    textual = cast("Any", Screen)
    paint, post = textual._compositor_refresh, textual.post_message
    answer = AssistantItem()

    async with running(World()) as (app, pilot):
        await begun(app, pilot)
        view = app.chat.conversation
        view.append(answer)
        await pilot.pause()

        def note_frame(screen: Screen[None]) -> None:
            frames.append(answer.text)
            paint(screen)

        def note_message(screen: Screen[None], message: Message) -> bool:
            if isinstance(message, Update) and message.widget is view:
                messages.append("drawn by its own timer")
            return post(screen, message)

        monkeypatch.setattr(Screen, "_compositor_refresh", note_frame)
        monkeypatch.setattr(Screen, "post_message", note_message)
        for letter in "many deltas":
            view.stream(answer, letter)
        await until(pilot, lambda: answer.text == "many deltas")
        assert frames[0] == "many deltas"
        assert not messages
