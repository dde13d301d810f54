"""What can be done to a session of the browser: asked for where that matters, then done."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from textual.app import App

from tui.app.dialog_data import Picked
from tui.app.session_repository import Format, SessionRepository
from tui.core.formatting import plural
from tui.core.paths import shorten
from tui.core.text_cleaning import one_line
from tui.ui.widgets.choice_dialog import Way, WaysModal
from tui.ui.widgets.notice import Kind


@dataclass(frozen=True, slots=True)
class Said:
    """What came of it, for the person. `changed`: the list is to be read again."""

    text: str
    kind: Kind = "success"
    hint: str = ""
    changed: bool = False


@dataclass(frozen=True, slots=True)
class Actions:
    """Each takes what is under the cursor, says what came of it, and says nothing (None) where
    the person thought better of it. Raises HoldfastError.

    `current` is the file of the session that is open; `rename_current` gives it another title.
    """

    app: App[Any]
    shelf: SessionRepository
    current: Path | None = None
    rename_current: Callable[[str], object] | None = None

    async def rename(self, picked: Picked) -> Said | None:
        """Give it the title that the person types."""
        from tui.ui.widgets.ask_text import AskText  # noqa: PLC0415 - on demand

        row = picked.row
        if row.agent:
            return _foreign(row.agent, "renamed")
        ask = AskText("Rename the session", row.title)
        title = await self.app.push_screen_wait(ask)
        if title is None:
            return None
        if row.path == self.current and self.rename_current is not None:
            self.rename_current(title)
        else:
            await asyncio.to_thread(self.shelf.rename, row, title)
        return Said(f"It is called “{title}” now.", changed=True)

    async def fork(self, picked: Picked) -> Said | None:
        """A copy, up to the place that was found in a search, or whole."""
        if picked.row.agent:
            return _foreign(picked.row.agent, "forked")
        await asyncio.to_thread(self.shelf.fork, picked.row, picked.message)
        what = "A copy up to the place found is made." if picked.message else "A copy is made."
        return Said(what, changed=True)

    async def export(self, picked: Picked) -> Said | None:
        """Write it into the workspace, in the format that the person chooses."""
        where = shorten(self.shelf.workspace)
        modal = WaysModal(
            "Export the session",
            f"The document is written into {where}. Keys of known shapes are masked in it.",
            (
                Way("m", "Markdown", "md"),
                Way("h", "HTML, one file", "html"),
                Way("j", "JSON lines, every record", "jsonl"),
                Way("b", "Back", "back"),
            ),
        )
        chosen = await self.app.push_screen_wait(modal)
        if chosen not in {"md", "html", "jsonl"}:
            return None
        format_ = cast("Format", chosen)
        path, secrets = await asyncio.to_thread(self.shelf.export, picked.row, format_)
        masked = f"{plural(secrets, 'secret')} masked." if secrets else ""
        return Said(f"Written to {shorten(path)}.", hint=masked)

    async def delete(self, picked: Picked) -> Said | None:
        """Move it to the trash, if the person confirms that."""
        from tui.ui.widgets.confirmation import Confirmation, Question  # noqa: PLC0415 - on demand

        row = picked.row
        if row.agent:
            return _foreign(row.agent, "deleted")
        if row.path == self.current:
            return Said("This session is open here.", "warning", hint="/new leaves it.")
        question = Question(
            "Delete this session?",
            "It goes to the trash folder, from where it can be moved back.",
            yes="Delete it",
            no="Keep it",
            details=(one_line(row.title) or "(nothing asked)", shorten(row.path)),
        )
        if not await self.app.push_screen_wait(Confirmation(question)):
            return None
        await asyncio.to_thread(self.shelf.delete, row)
        trash = shorten(self.shelf.folders.data / "trash")
        return Said(f"It is in the trash: {trash}.", changed=True)


def _foreign(agent: str, what: str) -> Said:
    return Said(f"{agent}'s own files are never {what}.", "warning", hint="Enter makes a copy.")
