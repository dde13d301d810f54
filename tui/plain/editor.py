"""The line editor: readline if there is one, with a terminal type that can do nothing.

Set up like that, it echoes, edits and recalls without a single escape sequence. In a shell of
Emacs, which edits lines itself, the terminal's own line is read.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Final

from tui.app.prompt_history import PromptHistory
from tui.core.text_cleaning import clean

_READ: Final = 65_536
_SETTINGS: Final = (
    "set enable-bracketed-paste off",
    "set enable-meta-key off",
    "set bell-style none",
    "set show-all-if-ambiguous on",
    "set page-completions off",
    "set completion-query-items 0",
    "tab: complete",
)

Complete = Callable[[str], Sequence[str]]


class Editor:
    """Reads one line at a time, in the main thread. `complete` returns what may replace the last
    word of a line."""

    def __init__(self, history: PromptHistory) -> None:
        self._history = history
        self.complete: Complete = lambda _: ()
        self._found: Sequence[str] = ()
        self._readline = None if os.environ.get("INSIDE_EMACS") else _readline()
        if self._readline is not None:
            self._prepare(self._readline)

    def read(self, prompt: str, prefill: str, into: list[str]) -> None:
        """Read a line into a list.

        Raises EOFError at Ctrl+D, and what a signal's handler raises, even when the line has come:
        then it is in the list.
        """
        lib = self._readline
        if lib is None:
            notice = f"Not sent: {prefill}\n" if prefill else ""
            os.write(1, clean(f"{notice}{prompt}").encode(errors="replace"))
            _read_terminal(into)
            return
        if prefill:
            lib.set_startup_hook(lambda: lib.insert_text(prefill))
        try:
            into.extend(map(input, (prompt,)))  # in C to the list: no handler comes between
        finally:
            lib.set_startup_hook(None)

    @property
    def edits(self) -> bool:
        """True if the line is edited here, key by key, and not by the terminal."""
        return self._readline is not None

    def begun(self) -> str:
        """Return what is typed of the line that is being read."""
        return self._readline.get_line_buffer() if self._readline else ""

    def remember(self, text: str) -> None:
        """Keep a prompt that was sent, for this program and the full screen's."""
        entries = self._history.entries
        if self._readline and not (entries and entries[-1] == text):
            self._readline.add_history(text)
        self._history.add(text)

    def _prepare(self, lib: ModuleType) -> None:
        lib.set_auto_history(False)
        for entry in self._history.entries:
            lib.add_history(entry)
        if "libedit" in (lib.__doc__ or ""):
            lib.parse_and_bind("bind ^I rl_complete")
        else:
            for setting in _SETTINGS:
                lib.parse_and_bind(setting)
        lib.set_completer_delims(" \t\n")
        lib.set_completer(self._completed)

    def _completed(self, _: str, number: int) -> str | None:
        lib = self._readline
        if lib is None:
            return None
        if number == 0:
            self._found = self.complete(lib.get_line_buffer()[: lib.get_endidx()])
        return self._found[number] if number < len(self._found) else None


def _readline() -> ModuleType | None:
    """Return the library, initialised for a terminal that moves no cursor."""
    term = os.environ.get("TERM")
    os.environ["TERM"] = "dumb"
    try:
        import readline  # noqa: PLC0415 - it looks at TERM as it is loaded
    except ImportError:
        return None
    finally:
        if term is None:
            del os.environ["TERM"]
        else:
            os.environ["TERM"] = term
    return readline


def _read_terminal(into: list[str]) -> None:
    """Read the terminal's own line. Raises EOFError at Ctrl+D, and if the terminal has gone."""
    read: list[bytes] = []
    try:
        read.extend(map(os.read, (0,), (_READ,)))
    except OSError:
        raise EOFError from None
    finally:
        into.extend(data.decode("utf-8", "replace").rstrip("\r\n") for data in read if data)
    if not into:
        raise EOFError
