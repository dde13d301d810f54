"""Terminal features beyond drawing: the title, progress in the tab, notifications.

A terminal that doesn't know a code may print it, so each code goes only to those that do.
"""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Final, Literal, TypeAlias

from tui.core.config import TerminalSettings
from tui.core.dataclass import dataclass, field
from tui.core.text_cleaning import one_line

State: TypeAlias = Literal["idle", "working", "waiting"]

SEND_AGAIN_S: Final = 10.0
"""Some terminals remove progress that isn't sent again within 15 s."""
_TITLE_MOST: Final = 80
_TMUX_S: Final = 2.0

# fmt: off
_KNOWN: Final[Mapping[str, tuple[tuple[int, ...] | None, str]]] = {
    "iterm2": ((3, 6, 6), "9"),
    "ghostty": ((1, 2), "9"),
    "wezterm": (None, "9"),
    "kitty": (None, "9"),
    "foot": (None, "777"),
    "rxvt": (None, "777"),
    "vscode": ((1, 97), ""),
    "vte": ((8000,), ""),
    "mintty": ((3, 4), ""),
    "windows-terminal": ((), ""),
    "conemu": ((), ""),
}
"""For each terminal, the first version that knows progress, and its code for notifications."""
_NAMES: Final = {"iterm.app": "iterm2", "xterm-kitty": "kitty", "xterm-ghostty": "ghostty"}
_TITLED: Final = re.compile(
    r"(xterm|screen|tmux|rxvt|alacritty|foot|st|konsole|vte|gnome|putty|mintty|contour|rio"
    r"|wezterm|ghostty|kitty|iterm2?)(?![a-z0-9])"
)
"""Kinds of terminals (TERM) that take a title."""
_MARKS: Final[Mapping[State, str]] = {"idle": "", "working": "… ", "waiting": "? "}
_PROGRESS: Final[Mapping[State, str]] = {"idle": "0", "working": "3", "waiting": "4;100"}
# fmt: on


@dataclass(frozen=True, slots=True)
class TerminalCodes:
    """A terminal and the codes that it understands.

    `program` is its name in `_KNOWN`, else "". With `passthrough`, codes have to get through tmux.
    """

    program: str = ""
    version: tuple[int, ...] = ()
    titles: bool = False
    passthrough: bool = False

    @staticmethod
    def of(env: Mapping[str, str]) -> TerminalCodes:
        """Return the terminal that the environment describes. Behind tmux or screen it is
        unknown."""
        titles = bool(_TITLED.match(env.get("TERM", ""))) and "INSIDE_EMACS" not in env
        if "TMUX" in env or "STY" in env or "INSIDE_EMACS" in env:
            return TerminalCodes(titles=titles)
        if "WT_SESSION" in env:
            return TerminalCodes("windows-terminal", titles=titles)
        if env.get("ConEmuANSI") == "ON":
            return TerminalCodes("conemu", titles=titles)
        for name, version in (("TERM_PROGRAM", "TERM_PROGRAM_VERSION"),
                              ("LC_TERMINAL", "LC_TERMINAL_VERSION"), ("TERM", "")):  # fmt: skip
            if program := _program(env.get(name, "")):
                return TerminalCodes(program, _version(env.get(version, "")), titles)
        vte = env.get("VTE_VERSION", "")
        return TerminalCodes("vte", _version(vte), titles) if vte else TerminalCodes(titles=titles)

    @staticmethod
    def behind_tmux(kind: str, type_: str, *, passthrough: str) -> TerminalCodes:
        """Return the terminal that tmux describes by its TERM, its own answer, and whether tmux
        lets codes through."""
        if passthrough not in {"on", "all", "1", "2"}:
            return TerminalCodes(titles=True)
        program = _program(type_) or _program(kind)
        return TerminalCodes(program, _version(type_), titles=True, passthrough=True)

    def title(self, text: str, how: str) -> str:
        """Return the code that sets the title; "" if it is not understood or not wanted."""
        wanted = how == "on" or (how == "auto" and self.titles)
        return f"\x1b]0;{one_line(text)}\x07" if wanted else ""

    def progress(self, state: State, how: str) -> str:
        """Return the code that shows progress in the tab or task bar."""
        since = _KNOWN.get(self.program, (None, ""))[0]
        known = since is not None and (not since or self.version >= since)
        wanted = how == "on" or (how == "auto" and known)
        return self._through(f"\x1b]9;4;{_PROGRESS[state]}\x07") if wanted else ""

    def notification(self, text: str, how: str) -> str:
        """Return the code that shows a notification."""
        code = _KNOWN.get(self.program, (None, ""))[1] if how == "auto" else how.removeprefix("osc")
        line = one_line(text)
        if code == "9":
            return self._through(f"\x1b]9;holdfast: {line}\x07")
        if code == "777":
            return self._through(f"\x1b]777;notify;holdfast;{line}\x07")
        return ""

    def _through(self, code: str) -> str:
        if not self.passthrough:
            return code
        doubled = code.replace("\x1b", "\x1b\x1b")
        return f"\x1bPtmux;{doubled}\x1b\\"


def _program(name: str) -> str:
    """Return the name in `_KNOWN` for what a terminal calls itself, such as `foot-extra` or
    `kitty(0.32.1)`."""
    spelling = name.lower()
    if spelling in _NAMES:
        return _NAMES[spelling]
    word = re.split(r"[-( ]", spelling, maxsplit=1)[0]
    return word if word in _KNOWN else ""


def _version(text: str) -> tuple[int, ...]:
    """Return the numbers of a version."""
    match = re.search(r"\d[\d.]*", text)
    return tuple(int(part[:9]) for part in match[0].split(".") if part) if match else ()


async def terminal_behind_tmux() -> TerminalCodes:
    """Ask tmux which terminal it is shown on now."""
    fields = "#{allow-passthrough}\t#{client_termname}\t#{client_termtype}"
    answer = b""
    with suppress(OSError, TimeoutError):
        process = await asyncio.create_subprocess_exec(
            *("tmux", "display-message", "-p", fields),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
        )
        try:
            async with asyncio.timeout(_TMUX_S):
                answer, _ = await process.communicate()
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()
    words = [*answer.decode("utf-8", "replace").rstrip("\n").split("\t"), "", ""]
    return TerminalCodes.behind_tmux(words[1], words[2], passthrough=words[0])


@dataclass(slots=True)
class TerminalStatus:
    """Shows in the title and the tab what the program is doing. All changes go out in one write.

    Between `leave`, which returns the codes that restore both, and `resume`, another program has
    the terminal and nothing is written.
    """

    write: Callable[[str], object]
    settings: TerminalSettings = field(default_factory=TerminalSettings)
    terminal: TerminalCodes = field(default_factory=lambda: TerminalCodes.of(os.environ))
    name: str = ""
    state: State = "idle"
    waiting: int = 0
    """How many sessions wait for the person, of a program that shows several."""
    _title: str = ""
    _progress: str = ""
    _away: bool = False

    def show(
        self, *, name: str | None = None, state: State | None = None, waiting: int | None = None
    ) -> None:
        """Show the session's name, what the program is doing, and how many sessions wait for the
        person; None leaves each as it is."""
        self.waiting = self.waiting if waiting is None else waiting
        self.name = one_line(self.name if name is None else name)[:_TITLE_MOST]
        self.state = state or self.state
        if self._away:
            return
        subject = f" · {self.name}" if self.name else ""
        mark = f"({self.waiting}) " if self.waiting else _MARKS[self.state]
        text = f"{mark}holdfast{subject}"
        title = self.terminal.title(text, self.settings.title)
        progress = self.terminal.progress(self.state, self.settings.progress)
        codes = ""
        if title != self._title:
            codes += title if self._title else f"\x1b[22;0t{title}"  # saves the title before ours
        if progress != self._progress and (self._progress or self.state != "idle"):
            codes += progress
            self._progress = "" if self.state == "idle" else progress
        self._title = title
        if codes:
            self.write(codes)

    async def ask_tmux(self) -> None:
        """Find out which terminal is behind tmux, if tmux is in between."""
        if "TMUX" in os.environ:
            self.terminal = await terminal_behind_tmux()
            self.show()

    def notification(self, text: str) -> str:
        """Return the codes that show a notification."""
        return self.terminal.notification(text, self.settings.notifications)

    def say_again(self) -> None:
        """Send the progress again to keep it alive."""
        if self._progress and self.state != "idle":
            self.write(self._progress)

    def use(self, settings: TerminalSettings) -> None:
        """Apply changed settings."""
        if settings != self.settings:
            if codes := self.leave():
                self.write(codes)
            self.settings = settings
            self.resume()

    def leave(self) -> str:
        """Return the codes that restore title and progress, and write nothing until `resume`."""
        codes = self.terminal.progress("idle", "on") if self._progress else ""
        codes += "\x1b[23;0t" if self._title else ""
        self._title = self._progress = ""
        self._away = True
        return codes

    def resume(self) -> None:
        """Write again: the terminal is ours."""
        self._away = False
        self.show()
