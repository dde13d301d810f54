"""What a typed letter takes in counts that do not vary: calls of functions, and messages."""

from __future__ import annotations

import asyncio
import sys
from collections import Counter
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any, cast

import pytest
import textual
from textual import events

import tui
from tests.support.world import World
from tests.ui.screens.driving import running
from tui.ui.toolkit import base_screen

LETTERS, WARM = "holdfast", 4
CALLS = 900
"""Of functions of Textual and of the program, until a letter is drawn and all who follow what is
typed have heard of it. It may only fall."""
MESSAGES = 6.5
TURNS = 50
"""Turns of the loop in which all that is over."""
OWN = tuple(str(Path(str(package.__file__)).parent) for package in (textual, tui))


@contextmanager
def counted(calls: Counter[str]) -> Generator[None]:
    """Counts calls of functions of these packages, by name."""

    def look(frame: FrameType, event: str, _: object) -> None:
        if event == "call" and frame.f_code.co_filename.startswith(OWN):
            calls[frame.f_code.co_name] += 1

    sys.setprofile(look)
    try:
        yield
    finally:
        sys.setprofile(None)


async def test_a_letter_takes_few_calls_and_messages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(base_screen, "UPDATE_PERIOD", 0)  # a hand takes longer than a frame
    calls = Counter[str]()
    async with running(World()) as (app, _):
        prompt, chat = app.chat.prompt, cast("Any", app.chat)

        async def type_(letters: str) -> None:
            for letter in letters:
                app.post_message(events.Key(letter, letter))
                for _ in range(TURNS):
                    await asyncio.sleep(0)
                assert not chat._dirty_widgets

        await type_(LETTERS[:WARM])
        with counted(calls):
            await type_(LETTERS[WARM:])
        assert prompt.text == LETTERS
    many = len(LETTERS) - WARM
    assert calls["_dispatch_message"] / many <= MESSAGES
    assert calls.total() / many <= CALLS
