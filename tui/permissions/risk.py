"""How much a command may do, read from its syntax.

safe < standard < high-risk < blocked; a line is as risky as its riskiest part. This classifies, it
does not confine: a program may do more than its name says. What cannot be read is high-risk, what
is not known is standard. Only a line in plain words runs as safe, see `plain_command`.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import dropwhile
from pathlib import Path

from tui.permissions import blocklist
from tui.permissions.parsed_command import Invocation, SimpleCommand, invocation
from tui.permissions.path_risk import Places, real_path
from tui.permissions.plain_command import ReadableArea, objection
from tui.permissions.risk_tiers import SHELLS
from tui.permissions.shell import read
from tui.permissions.shell_words import ShellWord
from tui.permissions.syntax import RESERVED, TooMuchError
from tui.permissions.types import Risk
from tui.permissions.wrapper_commands import InnerCommands, inner_commands

ORDER: Mapping[Risk, int] = {"safe": 0, "standard": 1, "high-risk": 2, "blocked": 3}

LONGEST = 131_071
"""Characters. Linux takes no longer argument, and reading a longer line would hold up the rest."""

_DEEPEST = 8
_MOST_PARTS = 2000
_NEUTRAL = frozenset(
    {
        *("env", "xargs", "nohup", "setsid", "nice", "ionice", "stdbuf", "timeout", "gtimeout"),
        *("time", "gtime", "command", "builtin", "exec", "find", "fd", "eval", "trap", "coproc"),
        *("busybox", "toybox", "unbuffer", "caffeinate", "watch"),
    }
)
"""They do nothing but run what is inside."""

_NO_PROGRAM = frozenset({*RESERVED, "time", ""})
_RAW_DEVICE = re.compile(r">\|?\s*/dev/(sd|hd|vd|xvd|nvme|mmcblk|disk|rdisk|loop|dm-|mapper/)")


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


@dataclass(frozen=True, slots=True)
class RiskVerdict:
    """The risk of a line and why. `complete` is False where a part of it could not be read."""

    risk: Risk
    reason: str
    parts: tuple[CommandPart, ...] = ()
    complete: bool = True

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
    judge = _Judge(area, home)
    if judge.names_key(command):
        return RiskVerdict("blocked", "it reaches the program's own key")
    try:
        parts = list(judge.text(command, cwd or area.workspace.root, (), {}))
    except TooMuchError:
        parts = [CommandPart(command, "high-risk", "it holds too much to be read")]
        judge.complete = False
    if not parts:
        return RiskVerdict("safe", "it does nothing", (), judge.complete)
    worst = max(parts, key=lambda part: ORDER[part.risk])
    return RiskVerdict(worst.risk, worst.reason, tuple(parts), judge.complete)


class _Judge:
    """Judges a line and everything that it runs, down to `_DEEPEST` levels.

    `complete` turns False where something could not be read.
    """

    def __init__(self, area: ReadableArea, home: Path) -> None:
        config = area.private[0] if area.private else None
        self.complete = True
        self._area = area
        self._places = Places(area.workspace, real_path(home), config)
        self._home = home
        self._count = 0

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

    def text(
        self, text: str, cwd: Path | None, around: tuple[str, ...], variables: Mapping[str, str]
    ) -> Iterator[CommandPart]:
        """The parts of a line."""
        outputs = {"git rev-parse --show-toplevel": str(self._places.root)}
        script = read(text, cwd=cwd, home=self._home, variables=variables, outputs=outputs)
        for simple in script.commands:
            yield from self.simple(simple, around)
        for one in script.redirects:
            risk, reason = blocklist.redirect(one, self._places)
            yield self._part(CommandPart(one.text, risk, reason, around=around))
        if script.fork_bomb:
            yield CommandPart(text, "blocked", "it is a fork bomb", around=around)
        if script.problem:
            self.complete = False
            yield from self._unread(text, cwd, around)
            yield CommandPart(
                text, "high-risk", f"it cannot be read: {script.problem}", around=around
            )

    def simple(self, simple: SimpleCommand, around: tuple[str, ...]) -> Iterator[CommandPart]:
        """A simple command, then what it runs."""
        if not simple.words:
            risk = "standard" if simple.assigned else "safe"
            reason = f"it sets {', '.join(simple.assigned)}"
            yield self._part(CommandPart(simple.text, risk, reason, around=around))
            return
        called = invocation(simple)
        within = inner_commands(simple, called.name)
        risk, reason = self._tier(simple, called, within)
        spellings = " ".join(word.text for word in simple.words), called.command
        yield self._part(CommandPart(simple.text, risk, reason, spellings, around))
        deeper = (*around, simple.text)
        if len(deeper) > _DEEPEST:
            self.complete = False
            yield CommandPart(simple.text, "high-risk", "it is nested too deeply to be read")
            return
        for one in within.commands:
            yield from self.simple(one, deeper)
        variables = {str(n): text for n, text in enumerate(within.arguments)}
        variables |= dict.fromkeys("@*", " ".join(within.arguments[1:]))
        for text in within.texts:
            yield from self.text(text, simple.cwd, deeper, variables)

    def _part(self, part: CommandPart) -> CommandPart:
        self._count += 1
        if self._count > _MOST_PARTS:
            raise TooMuchError
        return part

    def _tier(
        self, simple: SimpleCommand, called: Invocation, within: InnerCommands
    ) -> tuple[Risk, str]:
        """The risk of the command itself, without what it runs, and why."""
        if not simple.words[0].known:
            as_rm = Invocation("rm", called.args)
            if reason := blocklist.blocked_reason(simple, as_rm, self._places):
                return "blocked", reason
            return "high-risk", "its program is only known when it runs"
        if reason := blocklist.blocked_reason(simple, called, self._places):
            return "blocked", reason
        if reason := blocklist.high_risk_reason(simple, called, self._places):
            return "high-risk", reason
        if within.unknown:
            return "high-risk", f"it {within.unknown}"
        runs = within.commands or within.texts
        if runs and (called.name in _NEUTRAL or called.name in SHELLS):
            why = ""
        elif simple.cwd is None or not all(word.known for word in simple.words):
            why = f"`{called.name}` may change something"
        else:
            words = tuple(word.text for word in simple.words)
            why = objection(words, simple.cwd, self._area)
        if not why and simple.assigned:
            why = f"it sets {', '.join(simple.assigned)}"
        if why:
            return "standard", why
        return "safe", "it runs another command" if runs else "it only looks"

    def _unread(
        self, text: str, cwd: Path | None, around: tuple[str, ...]
    ) -> Iterator[CommandPart]:
        """What is blocked in a line that the grammar does not understand, by rough reading."""
        if _RAW_DEVICE.search(text):
            yield CommandPart(text, "blocked", "it writes onto a device", around=around)
        for piece in re.split(r"[;&|\n(){}`]+", text):
            for spelled in dict.fromkeys((piece, piece.replace(",", " "))):
                try:
                    words = shlex.split(spelled, comments=False)
                except ValueError:
                    words = spelled.split()
                run = tuple(dropwhile(lambda w: w.strip("\"'$") in _NO_PROGRAM, words))
                if run:
                    rough = SimpleCommand(tuple(_rough(w, self._home) for w in run), piece, cwd)
                    found = self.simple(rough, around)
                    yield from (part for part in found if part.risk == "blocked")


def _rough(text: str, home: Path) -> ShellWord:
    text = re.sub(r"^(~|\$HOME|\$\{HOME\})(?=/|$)", lambda _: str(home), text)
    return ShellWord(text.replace("\0", "?"), glob=any(c in text for c in "*?["))
