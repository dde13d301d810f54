"""How much a command may do, read from its syntax.

safe < standard < high-risk < blocked; a line is as risky as its riskiest part. This classifies, it
does not confine: a program may do more than its name says. What cannot be read is high-risk, what
is not known is standard.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import dropwhile
from pathlib import Path

from tui.permissions import blocklist, safelist
from tui.permissions.parsed_command import Invocation, SimpleCommand, invocation
from tui.permissions.path_risk import Places, real_path
from tui.permissions.risk_tiers import EXACT_ONLY, INTERPRETERS, SHELLS, SUBCOMMANDS
from tui.permissions.shell import read
from tui.permissions.shell_words import ShellWord
from tui.permissions.syntax import RESERVED, TooMuchError
from tui.permissions.types import Risk
from tui.permissions.wrapper_commands import WRAPPERS, InnerCommands, inner_commands

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
    prefix: str | None = None
    """What a yes to this command may stand for (`git commit`), None if only for itself."""
    reads: bool = False
    """It shows what is in files."""


@dataclass(frozen=True, slots=True)
class RiskVerdict:
    """The risk of a line and why. `complete` is False where a part of it could not be read."""

    risk: Risk
    reason: str
    parts: tuple[CommandPart, ...] = ()
    complete: bool = True


def classify(
    command: str,
    *,
    workspace: Path,
    home: Path,
    allowed: Callable[[Path], bool] | None = None,
    config: Path | None = None,
    cwd: Path | None = None,
) -> RiskVerdict:
    """The risk of a command line run in `cwd` (the workspace if left out). Never raises.

    `allowed` says of a real path whether the file tools may reach it; left out, the workspace is
    what they reach. `config` is the program's own config folder, whose key no command may read.
    """
    if len(command) > LONGEST:
        return RiskVerdict("blocked", "it is too long for a command: write it to a file")
    root = real_path(workspace)
    places = Places(
        workspace=root,
        home=real_path(home),
        allowed=allowed or (lambda path: path == root or root in path.parents),
        config=real_path(config) if config else None,
    )
    judge = _Judge(places, home)
    if judge.names_key(command):
        return RiskVerdict("blocked", "it reaches the program's own key")
    try:
        parts = list(judge.text(command, cwd or workspace, (), {}))
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

    def __init__(self, places: Places, home: Path) -> None:
        self.complete = True
        self._places = places
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
        if len(around) > _DEEPEST:
            self.complete = False
            yield CommandPart(
                text, "high-risk", "it is nested too deeply to be read", around=around
            )
            return
        outputs = {"git rev-parse --show-toplevel": str(self._places.workspace)}
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
            injects = safelist.injects(simple)
            reason = f"it sets {', '.join(simple.assigned)}"
            risk: Risk = "standard" if injects else "safe"
            yield self._part(CommandPart(simple.text, risk, reason, around=around))
            return
        called = invocation(simple)
        within = inner_commands(simple, called.name)
        own = self._own(simple, called, within)
        yield self._part(replace(own, around=around))
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

    def _own(self, simple: SimpleCommand, called: Invocation, within: InnerCommands) -> CommandPart:
        """The command itself, without what it runs."""
        risk, reason = self._tier(simple, called, within)
        evaluated = " ".join(word.text for word in simple.words)
        return CommandPart(
            simple.text,
            risk,
            reason,
            spellings=(evaluated, called.command),
            prefix=_prefix(simple, called, within) if risk in {"safe", "standard"} else None,
            reads=safelist.shows_contents(called),
        )

    def _tier(
        self, simple: SimpleCommand, called: Invocation, within: InnerCommands
    ) -> tuple[Risk, str]:
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
            if safelist.injects(simple):
                return "standard", "it changes how programs are found or run"
            return "safe", "it runs another command"
        if safelist.is_read_only(simple, called, self._places):
            return "safe", "it only looks"
        return "standard", f"`{called.name}` may change something"

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


def _prefix(simple: SimpleCommand, called: Invocation, within: InnerCommands) -> str | None:
    """Program and subcommand, where a yes to one such command may count for the next."""
    raw = simple.text.split(" ")
    name = simple.words[0].text
    runs = within.commands or within.texts or within.unknown
    if runs or simple.assigned or raw[0] != name or name in EXACT_ONLY or name in SHELLS:
        return None
    if not re.fullmatch(r"[\w./+-]+", name) or called.name in WRAPPERS:
        return None
    second = raw[1] if len(raw) > 1 else ""
    word = bool(re.fullmatch(r"[A-Za-z][\w:.-]*", second))
    if INTERPRETERS.fullmatch(called.name):
        module = re.fullmatch(r"[A-Za-z_][\w.]*", raw[2]) if len(raw) > 2 else None
        return f"{name} -m {raw[2]}" if second == "-m" and module else None
    if name in SUBCOMMANDS:
        return f"{name} {second}" if word else None
    return name
