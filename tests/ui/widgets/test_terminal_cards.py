"""Cards of steps in a terminal: named alike live and again, with the end of the screen."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from tui.core.facts import ToolFinished
from tui.tools.terminal import TerminalParams, TerminalTool
from tui.ui.widgets.conversation.item_renderer import joins
from tui.ui.widgets.conversation.items import TERMINAL, ToolItem, terminal_of
from tui.ui.widgets.record_items import fill, screen_in, terminal_label

RESULT = """[2 lines scrolled by]
one
[screen of the day]
[screen 24×80 · cursor at row 3, column 5]
>>> print(1)
1
>>> [0, 1]
>>>
[job-2 · running python3]"""


@pytest.mark.parametrize(
    "input_",
    [
        {"action": "start", "command": "python3 -i\n# more"},
        {"action": "send", "terminal": "job-2", "text": "print(1)", "keys": ["enter"]},
        {"action": "send", "terminal": "job-2", "keys": ["ctrl+c", "enter"]},
        {"action": "wait", "terminal": "job-2", "until": ["done"]},
        {"action": "close", "terminal": "job-2"},
    ],
)
def test_a_step_has_the_same_label_live_and_again(input_: dict[str, Any]) -> None:
    params = msgspec.convert(input_, TerminalParams)
    assert terminal_label(input_) == TerminalTool(1).label(params)


def test_the_card_gets_the_screen_of_the_result() -> None:
    assert screen_in(RESULT) == ">>> print(1)\n1\n>>> [0, 1]\n>>>"
    assert not screen_in("job-9 isn't known.")
    item = ToolItem("t1", TERMINAL, input={"action": "send", "terminal": "job-2"})
    fill(item, ToolFinished("t1", TERMINAL, False, 0.4, None, "job-2 running python3", RESULT))
    assert item.tail.endswith(">>> [0, 1]\n>>>")
    assert terminal_of(item) == "job-2"


def step(terminal: str, *, action: str = "send", name: str = TERMINAL) -> ToolItem:
    input_ = {"action": action} | ({"terminal": terminal} if action != "start" else {})
    return ToolItem("t", name, state="ok", input=input_, summary=f"{terminal} running")


def test_steps_in_one_terminal_share_a_row() -> None:
    assert joins(step("job-2"), step("job-2", action="read"))
    assert not joins(step("job-2"), step("job-3"))
    assert not joins(step("job-2", action="start"), step("job-2"))
    assert not joins(step("job-2"), step("job-2", name="run_command"))
    assert terminal_of(step("job-2", action="start")) == "job-2"
    failed = step("job-2")
    failed.state = "error"
    assert not joins(step("job-2"), failed)
