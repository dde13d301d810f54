"""The terminal of plain lines, without one: what is typed before anybody listens."""

from __future__ import annotations

from tui.app.prompt_history import PromptHistory
from tui.plain.editor import Editor
from tui.plain.terminal import Terminal


async def test_lines_that_are_typed_before_anybody_listens_are_heard_in_their_order() -> None:
    terminal = Terminal(Editor(PromptHistory()))
    for text in ("one", "two"):
        terminal._hear(text)  # pyright: ignore[reportPrivateUsage] - what the main thread reads
    heard: list[str] = []
    terminal.listen(heard.append, lambda: None, lambda: None)
    assert heard == ["one", "two"]
