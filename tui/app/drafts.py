"""Work that a crash would take is kept, and brought back: what is typed, what waits, and the answer
that streams."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING

from tui.app.attachments import PromptImages
from tui.app.frontend import Frontend
from tui.app.reports import Report
from tui.app.send_queue import SendQueue
from tui.core import facts
from tui.core.facts import Fact
from tui.session.drafts import UnsentWork

if TYPE_CHECKING:
    from tui.session.session import Session

TYPED_FOR_S = 1.0
"""Seconds between a change and its saving; what comes meanwhile is kept with it."""

CHARS_PER_S = 100_000
"""Characters saved per second: a longer prompt is kept less often, for the record must not grow by
a paste every second."""


class DraftSaver:
    """Writes drafts into the session that `follow` names. `answer` is what has been streamed of an
    answer that is not recorded yet."""

    def __init__(self, frontend: Frontend, queue: SendQueue, images: PromptImages) -> None:
        self._frontend = frontend
        self._queue = queue
        self._images = images
        self._texts: list[str] = []
        self._dialog: tuple[str, ...] = ()
        self._session: Session | None = None
        self._timer: asyncio.TimerHandle | None = None

    @property
    def answer(self) -> str:
        return "".join(self._texts)

    def see(self, event: Fact) -> None:
        """Keep up with the answer that streams."""
        match event:
            case facts.TextDelta(text):
                self._texts.append(text)
            case (
                facts.RequestSent()
                | facts.RetryScheduled()
                | facts.AssistantMessage()
                | facts.TurnFinished()
            ):
                self._texts.clear()
            case facts.ThinkingDelta() | facts.ToolInputDelta():
                if self._texts and self._texts[-1] != "\n\n":
                    self._texts.append("\n\n")
            case _:
                pass
        self.touch()

    def type_in_dialog(self, *commands: str) -> None:
        """Keep what is typed in a dialog, as the commands that would begin with it; none once it is
        answered or given up."""
        self._dialog = commands
        self.touch()

    async def restore(self, session: Session) -> None:
        """Show what an earlier run left behind, then follow the session.

        What was typed and queued goes back into the prompt, to be sent again. A command goes there
        alone or is only reported, as another line would be run with it; none is run by itself.
        """
        before, frontend = session.unsent, self._frontend
        await self._images.restore(before.images)
        if before.answer.strip():
            frontend.show_unfinished(before.answer)
        texts = [text for text in (*before.queue, before.prompt) if text.strip()]
        commands = before.commands
        if not texts and not frontend.prompt_text:
            texts, commands = list(commands[:1]), commands[1:]
        if texts:
            frontend.put_prompt("\n".join(texts))
        if commands:
            frontend.report(Report("Holdfast closed before this could run:", commands, "warning"))
        self.follow(session)
        self.touch()

    def follow(self, session: Session | None) -> None:
        """From now on in this session; None in none."""
        self._session = session
        self._texts.clear()
        self._dialog = ()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def touch(self) -> None:
        """Something has changed: it is kept in a moment."""
        if self._timer is None and self._session is not None:
            self._again(max(TYPED_FOR_S, len(self._frontend.prompt_text) / CHARS_PER_S))

    def queued(self) -> None:
        """The queue has changed: what was added to it is kept at once."""
        if self._timer is not None:
            self._timer.cancel()
        self._write()

    def leave(self, *, typed: bool = True) -> None:
        """Keep how things stand now, before the session is closed. Without `typed` nothing is
        typed there any more: the person takes it along."""
        if self._session is not None and not self._session.read_only:
            self._session.draft(replace(self._unsent(), answer="") if typed else UnsentWork())
        self.follow(None)

    def _unsent(self) -> UnsentWork:
        """Return the work that an end now would leave behind."""
        prompt, queue = self._frontend.prompt_text, self._queue.prompts
        images = self._images.files_of((prompt, *queue))
        commands = (*self._queue.commands, *self._dialog)
        return UnsentWork(prompt, queue, self.answer, images, commands)

    def _write(self) -> None:
        self._timer = None
        if self._session is None or self._session.read_only:
            return
        if wait := self._session.draft(self._unsent()):
            self._again(wait)

    def _again(self, seconds: float) -> None:
        self._timer = asyncio.get_running_loop().call_later(seconds, self._write)
