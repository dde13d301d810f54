"""Changes in a file since the model last saw it, and the rule for editing it all the same.

An edit that was written for an older text is still made if its passages are as the model quoted
them and nothing in them has changed; then its result shows what changed elsewhere. Everything else
is refused with the difference. So the model has always been shown what it overwrites.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from tui.core.dataclass import dataclass
from tui.core.errors import ToolError
from tui.tools.diff import LineMatcher, unified
from tui.tools.file_access import in_thread
from tui.tools.file_ledger import SeenFile, Snapshot
from tui.tools.text_decoding import decode
from tui.tools.text_match import flatten

LINES_MAX: Final = 200
CHARS_MAX: Final = 8000
"""Limits of a difference that is shown. With a larger one, the file has to be read again."""

ELSEWHERE: Final = "changed elsewhere"


class StaleFileError(ToolError):
    """An edit was made for a text that has changed. `found` is the present file if the message
    names all changes in it, so that the model knows it from now on."""

    def __init__(self, message: str, *, hint: str, found: Snapshot | None) -> None:
        super().__init__(message, hint=hint)
        self.found = found


@dataclass(frozen=True, slots=True)
class Difference:
    """A text as the model last saw it, and as it is now. `text` is the unified diff, "" if it is
    too long to be shown."""

    shown: str
    old: str
    now: str
    text: str

    @property
    def note(self) -> str:
        """The line for the result of an edit that was made all the same."""
        return f"{self.shown} had changed elsewhere since you last saw it:\n{self.text}"

    def spares(self, after: str, passages: Iterable[str]) -> bool:
        """True if the change from `now` to `after` does not touch what has changed before it.

        `passages` are what it replaces. Those that the old text doesn't have at all were quoted
        from the new one, which the model has then seen in another way.
        """
        if not self.text:
            return False
        old = flatten(self.old)
        if not any(passage in old for passage in passages):
            return True
        before, now, then = (flatten(text).split("\n") for text in (self.old, self.now, after))
        changed = [op[3:] for op in LineMatcher(before, now).get_opcodes() if op[0] != "equal"]
        edited = [op[1:3] for op in LineMatcher(now, then).get_opcodes() if op[0] != "equal"]
        return not any(a < d and c < b for a, b in changed for c, d in edited)


def difference(seen: SeenFile, found: Snapshot, shown: str) -> Difference | None:
    """Return the changes in a text file; None if the old text is not kept, and for other files."""
    if seen.data is None or found.data is None:
        return None
    try:
        old, now = decode(seen.data, shown).text, decode(found.data, shown).text
    except ToolError:
        return None
    return Difference(shown, old, now, bounded(old, now, shown))


def bounded(old: str | None, now: str | None, shown: str) -> str:
    """Return the unified diff of two texts, None for no file; "" if it is too long to be shown."""
    if abs(len(old or "") - len(now or "")) > CHARS_MAX:
        return ""
    old, now = (_valid(text) if text is not None else None for text in (old, now))
    text = unified(old, now, shown, whole=True).text
    if text.count("\n") >= LINES_MAX or len(text) > CHARS_MAX:
        return ""
    return text or "(only its encoding or its byte order mark)"


def _valid(text: str) -> str:
    """Return a text that can be sent: bytes that are no UTF-8 become U+FFFD."""
    return text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def refused(change: Difference | None, found: Snapshot, shown: str) -> StaleFileError:
    """Return the error for an edit of a text that has changed."""
    message = f"{shown} changed since it was last read; nothing was written."
    if change is None or not change.text:
        return StaleFileError(message, hint="Read it again.", found=None)
    return StaleFileError(
        f"{message}\nWhat changed:\n{change.text}\n",
        hint="If the edit is still right, send it again for the file as it is now.",
        found=found,
    )


async def refusal(seen: SeenFile, found: Snapshot, shown: str) -> StaleFileError:
    """Return the error for a file that would be replaced as a whole and has changed."""
    return await in_thread(lambda _stop: refused(difference(seen, found, shown), found, shown))
