"""What the conversation in plain lines asks of a terminal; tests have one without any."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol


class Face(Protocol):
    """Where lines are said and read. Everything is called in the event loop's thread."""

    @property
    def gone(self) -> bool:
        """Whether the terminal went away."""
        ...

    @property
    def ended(self) -> bool:
        """Whether the program was told to end."""
        ...

    def say(self, *lines: str) -> None:
        """Print lines. Control characters in them are not printed."""

    async def prompt(self, text: str = "") -> str | None:
        """The next prompt that is typed; None where the person leaves. `text` stands in it to
        begin with."""
        ...

    async def answer(self, question: str, *, hidden: bool = False) -> str | None:
        """A line that was typed after `question` stood there; None where it was refused by
        Ctrl+C or Ctrl+D. What was typed before goes to the prompt. `hidden`: nobody sees it."""
        ...

    def listen(
        self,
        typed: Callable[[str], object],
        interrupt: Callable[[], object],
        leave: Callable[[], object],
    ) -> None:
        """Whom to call for what is typed while nothing is asked, for Ctrl+C, and at the end.
        `interrupt` returns False where there was nothing to stop: then the prompt is what Ctrl+C
        was for."""

    def begun(self) -> str:
        """What stands in the prompt and was not sent."""
        ...

    def bell(self) -> None:
        """Call whoever listens elsewhere."""
