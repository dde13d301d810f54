"""The terminal of plain lines, without one: what is typed before anybody listens."""

from __future__ import annotations

from types import SimpleNamespace
from typing import cast

from tui.app.prompt_history import PromptHistory
from tui.plain.editor import Editor
from tui.plain.terminal import Listener, Terminal


async def test_lines_that_are_typed_before_anybody_listens_are_heard_in_their_order() -> None:
    terminal = Terminal(Editor(PromptHistory()))
    for text in ("one", "two"):
        terminal.hear(text)
    heard: list[str] = []
    listener = SimpleNamespace(typed=heard.append, interrupt=bool, leave=lambda: None)
    terminal.listen(cast("Listener", listener))
    assert heard == ["one", "two"]
