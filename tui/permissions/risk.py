"""How much a command may do, read from its syntax.

safe < standard < high-risk < blocked; a line is as risky as its riskiest part. This classifies, it
does not confine: a program may do more than its name says. What cannot be read is high-risk, what
is not known is standard. Only a line in plain words runs as safe, see `plain_command`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from itertools import dropwhile, islice
from pathlib import Path

from tui.permissions import blocklist
from tui.permissions.parsed_command import (
    Invocation,
    Redirect,
    ShellWord,
    SimpleCommand,
    TooMuchError,
    invocation,
)
from tui.permissions.path_risk import Places, real_path
from tui.permissions.plain_command import MOST_CHARS, ReadableArea, objection
from tui.permissions.risk_tiers import SHELLS
from tui.permissions.shell import KEYWORDS, read
from tui.permissions.types import Risk
from tui.permissions.wrapper_commands import InnerCommands, inner_commands

ORDER: Mapping[Risk, int] = {"safe": 0, "standard": 1, "high-risk": 2, "blocked": 3}

LONGEST = 131_071
"""Characters. Linux takes no longer argument, and reading a longer line would hold up the rest."""

_DEEPEST = 8
_MOST_WORDS = 1000
"""Words that are judged of one line, in all that it runs; and nodes of its syntax trees."""
_MOST_ROUGH_WORDS = 500
_WORDS_A_PART = 10
"""A command costs as much to judge as about this many words."""

_NEUTRAL = frozenset(
    {
        *("env", "xargs", "nohup", "setsid", "nice", "ionice", "stdbuf", "timeout", "gtimeout"),
        *("time", "gtime", "command", "builtin", "exec", "find", "fd", "eval", "trap", "coproc"),
        *("busybox", "toybox", "unbuffer", "caffeinate", "watch"),
    }
)
"""They do nothing but run what is inside."""

_HIDDEN_PROGRAM = "its program is only known when it runs"
_MAY_READ_KEY = "it may reach Holdfast's own key: what it reads is only known when it runs"
_NO_PROGRAM = KEYWORDS | {"time", ""}
_RAW_DEVICE = re.compile(r">\|?\s*/dev/(sd|hd|vd|xvd|nvme|mmcblk|disk|rdisk|loop|dm-|mapper/)")
_ROUGH_WORD = re.compile(r"""(?:[^\s'"\\]|\\.|'[^']*'|"[^"]*"|['"\\])+""", re.DOTALL)


@dataclass(frozen=True, slots=True)
class CommandPart:
    """One thing that a line does: a simple command, or a redirection."""

    text: str
    """How it was written."""
    risk: Risk
    reason: str
    spellings: tuple[str, ...] = ()
    """The same command with its words resolved, and with its program's bare name: for rules that
    forbid."""
    around: tuple[str, ...] = ()
    """The commands that run it (`sudo …`, `sh -c …`), outermost first."""
    hidden: bool = False
    """Whether it is high-risk only since its words do not show what it does."""


@dataclass(frozen=True, slots=True)
class RiskVerdict:
    """The risk of a line and why. `complete` is False where a part of it could not be read."""

    risk: Risk
    reason: str
    parts: tuple[CommandPart, ...] = ()
    complete: bool = True

    @property
    def named(self) -> bool:
        """Whether it is high-risk, or worse, for something that its words show."""
        return any(
            ORDER[part.risk] >= ORDER["high-risk"] and not part.hidden for part in self.parts
        )

    @property
    def worst(self) -> tuple[CommandPart, ...]:
        """The parts that make the line as risky as it is, where it is more than ordinary."""
        if ORDER[self.risk] < ORDER["high-risk"]:
            return ()
        return tuple(part for part in self.parts if part.risk == self.risk)


def classify(
    command: str, area: ReadableArea, *, home: Path, cwd: Path | None = None
) -> RiskVerdict:
    """The risk of a command line run in `cwd` (the workspace if left out). Never raises.

    The first of the area's private folders holds the program's key, which no command may read.
    """
    if len(command) > LONGEST:
        return RiskVerdict("blocked", "it is too long for a command: write it to a file")
    judge = _Judge(command, area, home, most=_MOST_WORDS)
    if judge.names_key(command):
        return RiskVerdict("blocked", "it reaches Holdfast's own key")
    cwd = cwd or area.workspace.root
    try:
        parts = list(judge.text(command, cwd, ()))
    except TooMuchError:
        judge = _Judge(command, area, home, most=_MOST_ROUGH_WORDS)
        parts = judge.unread(command, cwd, (), "it contains too much")
    if not parts:
        return RiskVerdict("safe", "it does nothing", (), judge.complete)
    worst = max(parts, key=lambda part: ORDER[part.risk])
    return RiskVerdict(worst.risk, worst.reason, tuple(parts), judge.complete)


class _Judge:
    """Judges a line and everything that it runs, down to `_DEEPEST` levels.

    `complete` turns False where something could not be read.
    """

    def __init__(self, command: str, area: ReadableArea, home: Path, *, most: int) -> None:
        config = area.private[0] if area.private else None
        self.complete = True
        self._area = area
        self._home = home
        self._places = Places(area.workspace, real_path(home), config)
        self._known = {
            "HOME": str(home),
            "IFS": " ",
            "$(git rev-parse --show-toplevel)": str(self._places.root),
            "$(nproc)": "1",
        }
        near = re.escape(config.parent.name if config else "credentials")
        self._near_key = (
            re.search(rf"/proc/|environ|credentials|(?<!\w){near}", command) is not None
        )
        self._short = len(command) <= MOST_CHARS
        self._nodes = self._words = most

    def names_key(self, command: str) -> bool:
        """Whether the text names the file with the key, in whatever program's language."""
        config = self._places.config
        if config is None:
            return False
        names = [str(config)]
        for home in {self._home, self._places.home}:
            if home in config.parents:
                below = config.relative_to(home)
                names += [f"~/{below}", f"$HOME/{below}", f"${{HOME}}/{below}"]
        return any(f"{name}/credentials" in command for name in names)

    def text(self, text: str, cwd: Path | None, around: tuple[str, ...]) -> Iterator[CommandPart]:
        """The parts of a line. Raises TooMuchError where they are too many."""
        line = read(text, cwd=cwd, known=self._known, most=self._nodes)
        self._nodes -= line.nodes
        for simple in line.commands:
            yield from self._simple(simple, around)
        for one in line.redirects:
            self._spend(0)
            risk, reason = self._redirect(one)
            yield CommandPart(one.text, risk, reason, around=around)
        if line.fork_bomb:
            yield CommandPart(text, "blocked", "it is a fork bomb", around=around)
        if line.problem:
            yield from self.unread(text, cwd, around, line.problem)

    def unread(
        self, text: str, cwd: Path | None, around: tuple[str, ...], problem: str
    ) -> list[CommandPart]:
        """A line that was not understood is high-risk, or blocked by rough reading."""
        self.complete = False
        found: list[CommandPart] = []
        if _RAW_DEVICE.search(text):
            found.append(CommandPart(text, "blocked", "it writes onto a device", around=around))
        with suppress(TooMuchError):
            for simple in _rough(text, cwd, self._home):
                parts = self._simple(simple, around)
                found += (part for part in parts if part.risk == "blocked")
        why = f"it can't be read: {problem}"
        return [*found, CommandPart(text, "high-risk", why, around=around, hidden=True)]

    def _spend(self, words: int) -> None:
        self._words -= words + _WORDS_A_PART
        if self._words < 0:
            raise TooMuchError

    def _simple(self, simple: SimpleCommand, around: tuple[str, ...]) -> Iterator[CommandPart]:
        """A simple command, then what it runs."""
        self._spend(len(simple.words))
        if not simple.words:
            risk = "standard" if simple.assigned else "safe"
            reason = f"it sets {', '.join(simple.assigned)}"
            yield CommandPart(simple.text, risk, reason, around=around)
            return
        called = invocation(simple)
        within = inner_commands(simple)
        risk, reason = self._tier(simple, called, within)
        spellings = " ".join(word.text for word in simple.words), called.command
        hidden = risk == "high-risk" and (
            reason in {*blocklist.HIDDEN, _HIDDEN_PROGRAM} or reason == f"it {within.unknown}"
        )
        yield CommandPart(simple.text, risk, reason, spellings, around, hidden)
        deeper = (*around, simple.text)
        if len(deeper) > _DEEPEST:
            self.complete = False
            why = "it is nested too deeply to read"
            yield CommandPart(simple.text, "high-risk", why, hidden=True)
            return
        for one in within.commands:
            yield from self._simple(one, deeper)
        for text in within.texts:
            yield from self.text(text, simple.cwd, deeper)

    def _redirect(self, one: Redirect) -> tuple[Risk, str]:
        risk, reason = blocklist.redirect(one, self._places)
        if risk != "blocked" and self._near_key and not one.target.known:
            return "high-risk", _MAY_READ_KEY
        return risk, reason

    def _tier(
        self, simple: SimpleCommand, called: Invocation, within: InnerCommands
    ) -> tuple[Risk, str]:
        """The risk of the command itself, without what it runs, and why."""
        if not simple.words[0].known:
            as_rm = Invocation("rm", called.args)
            if reason := blocklist.blocked_reason(simple, as_rm, self._places):
                return "blocked", reason
            return "high-risk", _HIDDEN_PROGRAM
        if reason := blocklist.blocked_reason(simple, called, self._places):
            return "blocked", reason
        if reason := blocklist.high_risk_reason(simple, called, self._places):
            return "high-risk", reason
        if within.unknown:
            return "high-risk", f"it {within.unknown}"
        known = simple.cwd is not None and all(word.known for word in simple.words)
        near_key = self._near_key and not known
        if near_key or any(self._places.may_be_secret(w, simple.cwd) for w in simple.words[1:]):
            return "high-risk", _MAY_READ_KEY
        runs = within.commands or within.texts
        why = ""
        if not (runs and (called.name in _NEUTRAL or called.name in SHELLS)):
            words = tuple(word.text for word in simple.words)
            unknown = f"`{called.name}` isn't on the read-only list"
            plain = simple.cwd if known and self._short else None
            why = objection(words, plain, self._area) if plain else unknown
        if not why and simple.assigned:
            why = f"it sets {', '.join(simple.assigned)}"
        if why:
            return "standard", why
        return "safe", "it runs another command" if runs else "it is read-only"


def _rough(text: str, cwd: Path | None, home: Path) -> Iterator[SimpleCommand]:
    """What may be the simple commands of a text with errors in it."""
    pieces = dict.fromkeys(re.split(r"[;&|\n(){}`]+", text))
    for piece in islice(pieces, _MOST_ROUGH_WORDS):
        for spelled in dict.fromkeys((piece, piece.replace(",", " "))):
            found = islice(_ROUGH_WORD.finditer(spelled), _MOST_ROUGH_WORDS)
            words = (re.sub(r"[\"'\\]", "", word[0]) for word in found)
            run = tuple(dropwhile(lambda word: word.strip("$") in _NO_PROGRAM, words))
            if run:
                yield SimpleCommand(tuple(_rough_word(word, home) for word in run), piece, cwd)


def _rough_word(text: str, home: Path) -> ShellWord:
    text = re.sub(r"^(~|\$HOME|\$\{HOME\})(?=/|$)", lambda _: str(home), text)
    return ShellWord(text.replace("\0", "?"), glob=any(c in text for c in "*?["))
