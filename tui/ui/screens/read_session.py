"""A session to read, from one of its prompts on, beside the one that is open."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from textual.binding import BindingType

from tui.app.commands.why import fork_before
from tui.app.services import SessionChoice
from tui.context.blame import RecordedStep, fork_command
from tui.core.clock import SystemClock
from tui.core.dataclass import dataclass
from tui.core.errors import HoldfastError
from tui.core.gc_pause import gc_pause
from tui.core.paths import Folders
from tui.core.text_cleaning import one_line
from tui.session import catalog
from tui.session.branches import branch_with
from tui.session.reader import read
from tui.session.session import Session
from tui.ui.screens.conversation_reader import ConversationReader
from tui.ui.toolkit.base_screen import uncovered
from tui.ui.widgets.conversation.items import Item
from tui.ui.widgets.keys import READ_SESSION_KEYS, Keys, bindings
from tui.ui.widgets.record_items import entry_of, restored

if TYPE_CHECKING:
    from tui.ui.frontend import ScreenFrontend


@dataclass(frozen=True, slots=True)
class RecordedConversation:
    """A session's items, on the branch that has a prompt; `entry` shows that."""

    path: Path
    title: str
    items: Sequence[Item]
    entry: Item | None
    damaged: bool


def recorded(folders: Folders, step: RecordedStep) -> RecordedConversation:
    """Read the session of a step. Blocks; raises SessionError where it is gone."""
    path = catalog.resolve(step.session, folders)
    loaded = read(path)
    records = branch_with(loaded, step.prompt)
    items = restored(records).items
    return RecordedConversation(
        path,
        Session.of(loaded, clock=SystemClock()).title,
        items,
        entry_of(records, step.prompt, items) if step.prompt else None,
        bool(loaded.findings),
    )


class ReadSessionScreen(ConversationReader):
    """The conversation of a session that isn't open, with the cursor on a prompt."""

    BINDINGS: ClassVar[list[BindingType]] = [*bindings(READ_SESSION_KEYS[:2])]

    def __init__(
        self, frontend: ScreenFrontend, step: RecordedStep, read: RecordedConversation
    ) -> None:
        super().__init__()
        self._frontend, self._step, self._read = frontend, step, read

    @classmethod
    async def of(cls, frontend: ScreenFrontend, step: RecordedStep) -> ReadSessionScreen:
        """Read the session of a step. Raises SessionError where it is gone."""
        with gc_pause(loading=True):
            read = await asyncio.to_thread(recorded, frontend.services.folders, step)
        return cls(frontend, step, read)

    def on_mount(self) -> None:
        self.view.extend(self._read.items)
        self.call_after_refresh(self._go)

    def _go(self) -> None:
        if self._read.entry is not None:
            self.view.go_to(self._read.entry)

    def head(self) -> tuple[str, str, Keys]:
        read = self._read
        facts = ["damaged"] if read.damaged else []
        facts += ["without the prompt"] if read.entry is None else []
        facts += [f"session {one_line(self._step.session)}", "read-only here"]
        keys: Keys = (
            ("r", "resume"),
            *((("f", "fork"),) if fork_command(self._step) else ()),
            *((("B", "why"),) if self.view.has_lines else ()),
            ("enter", "fold"),
            ("esc", "back"),
        )
        return read.title or "untitled", " · ".join(facts), keys

    def action_resume(self) -> None:
        """Open the session in the chat, at the prompt."""
        frontend = self._frontend
        if why := _busy(frontend):
            self.notify(why, markup=False)
            return
        uncovered(frontend.app, frontend.chat)
        frontend.switch_session(SessionChoice(self._read.path, message=self._step.prompt))

    def action_fork(self) -> None:
        """Continue in a copy of the session that ends before the prompt."""
        if why := fork_step(self._frontend, self._step):
            self.notify(why, markup=False)


def fork_step(frontend: ScreenFrontend, step: RecordedStep) -> str:
    """Begin to continue in a copy that ends before a step's prompt, in the chat. Returns why not,
    "" if it does."""
    if step.parent:
        return "A sub-agent wrote it: its session can't be forked."
    if not step.before:
        return "Nothing comes before this prompt: /new begins a session."
    if why := _busy(frontend):
        return why
    uncovered(frontend.app, frontend.chat)
    frontend.app.run_worker(_forked(frontend, step), group="session")
    return ""


async def _forked(frontend: ScreenFrontend, step: RecordedStep) -> None:
    try:
        await fork_before(frontend.conversation, step)
    except HoldfastError as error:
        frontend.say(error.message, "error", hint=error.hint)


def _busy(frontend: ScreenFrontend) -> str:
    """Say why no other session can be opened now; "" if it can."""
    return "Stop the agent first (Esc in the chat)." if frontend.conversation.busy else ""
