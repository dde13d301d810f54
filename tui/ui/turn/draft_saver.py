"""What a crash would take is kept, and brought back: what is typed, what waits, and the answer that
streams."""

from __future__ import annotations

from collections.abc import Callable

from textual.timer import Timer

from tui.app.ports import Session
from tui.app.send_queue import Outbox
from tui.session.drafts import UnsentWork
from tui.ui.screens.chat import ChatScreen
from tui.ui.turn.attachments import Attaching
from tui.ui.widgets.conversation.items import AssistantItem, NoticeItem

TYPED_FOR_S = 1.0
"""How long after a change it is kept; what comes meanwhile is kept with it."""

CHARS_PER_S = 100_000
"""Of a prompt that is longer, less often: the record must not grow by a paste every second."""


class Drafting:
    """Writes drafts into the session that `follow` names. `answer` is what streams now."""

    def __init__(
        self,
        chat: ChatScreen,
        outbox: Outbox,
        attaching: Attaching,
        answer: Callable[[], str],
    ) -> None:
        self._chat = chat
        self._outbox = outbox
        self._attaching = attaching
        self._answer = answer
        self._session: Session | None = None
        self._timer: Timer | None = None

    async def bring_back(self, session: Session) -> None:
        """Show what an earlier run left behind, then follow the session.

        What was typed and queued stands in the prompt, to be sent again. A command stands there
        alone or is only told of, as another line would be run with it; none is run by itself.
        """
        left, chat = session.unsent, self._chat
        await self._attaching.bring_back(left.images)
        if left.answer.strip():
            chat.add(AssistantItem(left.answer))
            said = "The program ended here, before the answer did."
            chat.add(NoticeItem(f"{said} The model does not know this part.", "warning"))
        texts = [text for text in (*left.queue, left.prompt) if text.strip()]
        commands = left.commands
        if not texts and not chat.prompt.text:
            texts, commands = list(commands[:1]), commands[1:]
        if texts:
            chat.prompt.put_back("\n".join(texts))
        if commands:
            said = "The program ended before this could run:"
            chat.add(NoticeItem(said, "warning", "\n".join(commands), folded=False))
        self.follow(session)
        self.touch()

    def follow(self, session: Session | None) -> None:
        """From now on in this session; None in none."""
        self._session = session
        self._stop()

    def touch(self) -> None:
        """Something has changed: it is kept in a moment."""
        if self._timer is None and self._session is not None:
            self._again(max(TYPED_FOR_S, len(self._chat.prompt.value) / CHARS_PER_S))

    def leave(self, *, typed: bool = True) -> None:
        """Keep how things stand now, before the session is closed. Without `typed` nothing is
        typed there any more: the person takes it along."""
        if self._session is not None and not self._session.read_only:
            now = self._unsent() if typed else UnsentWork()
            self._session.draft(now.prompt, now.queue, images=now.images, commands=now.commands)
        self.follow(None)

    def _unsent(self) -> UnsentWork:
        """How things stand: what an end now would leave behind."""
        prompt, queue = self._chat.prompt.value, self._outbox.prompts
        images = self._attaching.kept((prompt, *queue))
        return UnsentWork(prompt, queue, self._answer(), images, self._outbox.commands)

    def _note(self) -> None:
        self._timer = None
        if self._session is None or self._session.read_only:
            return
        now = self._unsent()
        wait = self._session.draft(
            now.prompt, now.queue, now.answer, now.images, commands=now.commands
        )
        if wait:
            self._again(wait)

    def _again(self, seconds: float) -> None:
        self._timer = self._chat.app.set_timer(seconds, self._note)  # pyright: ignore[reportUnknownMemberType]

    def _stop(self) -> None:
        if self._timer is not None:
            self._timer.stop()
            self._timer = None
