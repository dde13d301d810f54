"""The risk of a command, read from its syntax.

safe < standard < high-risk < blocked; a line is as risky as its riskiest part. This classifies, it
does not confine: a program may do more than its name says. What cannot be read is high-risk, what
is not known is standard. Only a line in plain words runs as safe, see `plain_command`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import islice
from pathlib import Path

from tui.core.dataclass import dataclass, replace
from tui.core.late_pattern import late_pattern
from tui.permissions import blocklist
from tui.permissions.parsed_command import (
    UNKNOWN,
    Invocation,
    Redirect,
    ShellWord,
    SimpleCommand,
    TooMuchError,
    invocation,
)
from tui.permissions.path_risk import Places, RealPaths
from tui.permissions.plain_command import MOST_CHARS, ReadableArea, may_write, objection
from tui.permissions.risk_tiers import (
    BLOCKED_NAMES,
    BLOCKED_PROGRAMS,
    HIGH_PROGRAMS,
    HIGH_WORDS,
    RECURSIVE,
    SHELLS,
    WRITERS,
    names,
)
from tui.permissions.shell import KEYWORDS, ansi_c, read
from tui.permissions.types import Risk
from tui.permissions.unseen_programs import names_written, runs_written
from tui.permissions.wrapper_commands import InnerCommands, inner_commands

ORDER: Mapping[Risk, int] = {"safe": 0, "standard": 1, "high-risk": 2, "blocked": 3}

LONGEST = 131_071
"""Characters. Linux accepts no longer argument, and reading a longer line would delay
everything."""

_DEEPEST = 8
_MOST_WORDS = 1000
"""Words judged in one line, including all that it runs; and nodes of its syntax trees."""
_MOST_ROUGH_WORDS = 500
_WORDS_A_PART = 10
"""Judging a command costs as much as about this many words."""

_NEUTRAL = frozenset(
    {
        *("env", "xargs", "nohup", "setsid", "nice", "ionice", "stdbuf", "timeout", "gtimeout"),
        *("time", "gtime", "command", "builtin", "exec", "find", "fd", "eval", "trap", "coproc"),
        *("busybox", "toybox", "unbuffer", "caffeinate", "watch"),
    }
)
"""Programs that do nothing but run their arguments."""

_CLASSED = frozenset(
    {*HIGH_PROGRAMS, *HIGH_WORDS, *RECURSIVE, *BLOCKED_PROGRAMS, "git", "find", "curl", "wget"}
    | {"systemctl", "loginctl", "init"}
)
"""Programs that the tables of risks know by name."""
_ALSO_WORDS = frozenset(names("at batch service port snap pass security skill init mount pip go"))
"""Those whose names are common words: they count only where a command begins."""
_ANYWHERE = _CLASSED - _ALSO_WORDS

_HIDDEN_PROGRAM = "its program is only known when it runs"
_RUN_BY_SHELLS = frozenset(names("BASH_ENV PROMPT_COMMAND PS0 PS1 PS2 PS4"))
_SETS_CODE = "it sets what a shell runs by itself"
_HIDDEN = blocklist.HIDDEN | {_HIDDEN_PROGRAM, _SETS_CODE}
_UNSEEN = frozenset({_HIDDEN_PROGRAM, _SETS_CODE, blocklist.TEXT_ONLY_THEN})
_RUN_OTHERS = frozenset(names("git find fd alias script"))
"""Programs that run others by words which may not be known."""
_MAY_READ_KEY = "it may reach Holdfast's own key: what it reads is only known when it runs"
_RAW_DEVICE = late_pattern(r">\|?\s*/dev/(sd|hd|vd|xvd|nvme|mmcblk|disk|rdisk|loop|dm-|mapper/)")
_PIECES = late_pattern(r"[;&|\n(){}`]+")
_CODED = late_pattern(r"\$'((?:[^'\\]|\\.)*)'", re.DOTALL)
_DEFAULT = late_pattern(r"\$\{\w+:?[-=+?]([^{}]*)\}")
_CHOICES = late_pattern(r"\{([^{}\s]*)\}")
_SIMPLE_VALUE = late_pattern(r"(?<!\w)([A-Za-z_]\w*)=([\w./-]+)")
_VARIABLE = late_pattern(r"\$\{?([A-Za-z_]\w*)\}?")
_GIVEN = late_pattern(r"\$\{?[\d@*]\}?")
"""The arguments of a function's call."""
_BEFORE = late_pattern(
    r"\$*|\w+(\[.*\])?\+?=.*|\d*[<>].*|" + "|".join(KEYWORDS | {"time"}), re.DOTALL
)
"""Words that may precede a program's name."""
_PIP = late_pattern(r"pip[\d.]*")
_ROUGH_WORD = late_pattern(r"""(?:[^\s'"\\]|\\.|'[^']*'|"[^"]*"|['"\\])+""", re.DOTALL)


@dataclass(frozen=True, slots=True)
class CommandPart:
    """One effect of a line: a simple command, or a redirection."""

    text: str
    """Its text as written."""
    risk: Risk
    reason: str
    spellings: tuple[str, ...] = ()
    """The same command with its words resolved, and with its program's bare name: for rules that
    forbid."""
    around: tuple[str, ...] = ()
    """The commands that run it (`sudo …`, `sh -c …`), outermost first."""
    hidden: bool = False
    """True if it is high-risk only because its words do not show what it does."""
    unseen: str = ""
    """The reason, in words, why it is unknown which programs it runs; "" if its words show them."""


@dataclass(frozen=True, slots=True)
class RiskVerdict:
    """The risk of a line and the reason. `complete` is False if a part of it could not be read."""

    risk: Risk
    reason: str
    parts: tuple[CommandPart, ...] = ()
    complete: bool = True

    @property
    def named(self) -> bool:
        """True if it is high-risk, or worse, for something that its words show."""
        return any(
            ORDER[part.risk] >= ORDER["high-risk"] and not part.hidden for part in self.parts
        )

    @property
    def worst(self) -> tuple[CommandPart, ...]:
        """The parts that make the line as risky as it is, if it is more than ordinary."""
        if ORDER[self.risk] < ORDER["high-risk"]:
            return ()
        return tuple(part for part in self.parts if part.risk == self.risk)


def classify(
    command: str, area: ReadableArea, *, home: Path, cwd: Path | None = None
) -> RiskVerdict:
    """Classify a command line run in `cwd` (the workspace if left out). Never raises.

    The first of the area's private folders has the program's key, which no command may read.
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

    `complete` becomes False if something could not be read.
    """

    def __init__(self, command: str, area: ReadableArea, home: Path, *, most: int) -> None:
        config = area.private[0] if area.private else None
        self.complete = True
        self._area = area
        self._home = home
        real = RealPaths()
        self._places = Places(area.workspace, real.of(home), config, real)
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
        self._written: frozenset[str] = frozenset()
        """The names of the files that the line writes."""

    def names_key(self, command: str) -> bool:
        """True if the text names the file with the key, in whatever program's language."""
        config = self._places.config
        if config is None:
            return False
        return any(name in command for name in _names_of_key(config, self._home, self._places.home))

    def text(
        self, text: str, cwd: Path | None, around: tuple[str, ...], *, fed: bool = False
    ) -> Iterator[CommandPart]:
        """Yield the parts of a line. Raises TooMuchError if there are too many."""
        line = read(text, cwd=cwd, known=self._known, most=self._nodes, fed=fed)
        self._nodes -= line.nodes
        self._written |= set(names_written(line.commands, line.redirects))
        parts: list[CommandPart] = []
        for simple in line.commands:
            ways = [[*self._simple(one, around)] for one in simple.in_each_folder()]
            parts += max(ways, key=_worst)
        for one in line.redirects:
            ways_there = [self._redirect(there) for there in one.in_each_folder()]
            risk, reason = max(ways_there, key=lambda way: ORDER[way[0]])
            hidden = reason in blocklist.HIDDEN
            parts.append(CommandPart(one.text, risk, reason, around=around, hidden=hidden))
        yield from parts
        if line.fork_bomb:
            yield CommandPart(text, "blocked", "it is a fork bomb", around=around)
        if line.problem:
            yield from self.unread(text, cwd, around, line.problem)
        elif line.unseen:
            yield from self.unread(text, cwd, around, "part of it is code within a word")
        # Where the tree hides commands, the text itself is searched for dangerous ones.
        elif any(part.hidden for part in parts):
            shown = {part.text for part in parts}
            for part in self._named_in(text, cwd, around):
                if part.text not in shown:
                    yield replace(part, risk="high-risk")

    def unread(
        self, text: str, cwd: Path | None, around: tuple[str, ...], problem: str
    ) -> list[CommandPart]:
        """Judge a line that was not understood: high-risk, or blocked by rough reading."""
        self.complete = False
        rough_parts: list[CommandPart] = []
        if _RAW_DEVICE.search(text):
            rough_parts.append(
                CommandPart(text, "blocked", "it writes onto a device", around=around)
            )
        rough_parts += self._named_in(text, cwd, around)
        why = f"it can't be read: {problem}"
        whole = CommandPart(text, "high-risk", why, around=around, hidden=True, unseen=why)
        return [*rough_parts, whole]

    def _named_in(
        self, text: str, cwd: Path | None, around: tuple[str, ...]
    ) -> Iterator[CommandPart]:
        """Yield the high-risk and blocked commands that a text names, wherever a shell may run
        them: the text decides if the syntax tree does not show all commands."""
        most = _MOST_ROUGH_WORDS
        for simple in _rough(text, cwd, self._home):
            most -= len(simple.words) + _WORDS_A_PART
            if most < 0:
                why = "it contains too much to read"
                yield CommandPart(text, "high-risk", why, around=around, unseen=why)
                return
            called = invocation(simple)
            if reason := blocklist.blocked_reason(simple, called, self._places):
                yield CommandPart(simple.text, "blocked", reason, around=around)
            elif reason := blocklist.named_risk(simple, called):
                yield CommandPart(simple.text, "high-risk", reason, around=around)

    def _spend(self, words: int) -> None:
        self._words -= words + _WORDS_A_PART
        if self._words < 0:
            raise TooMuchError

    def _simple(self, simple: SimpleCommand, around: tuple[str, ...]) -> Iterator[CommandPart]:
        """Yield a simple command, then the commands that it runs."""
        self._spend(len(simple.words))
        within = inner_commands(simple)
        if not simple.words:
            yield from self._assignment(simple, within, around)
            return
        called = invocation(simple)
        risk, reason = self._tier(simple, called, within)
        spellings = " ".join(word.text for word in simple.words), called.command
        hidden = risk == "high-risk" and (reason in _HIDDEN or reason == f"it {within.unknown}")
        unseen = _unseen(called, within, reason) or _reason_sentence(
            runs_written(simple, self._written)
        )
        yield CommandPart(simple.text, risk, reason, spellings, around, hidden, unseen)
        deeper = (*around, simple.text)
        # Deeper levels are not read, so they could do anything.
        if len(deeper) > _DEEPEST:
            self.complete = False
            why = "it is nested too deeply to read"
            yield CommandPart(simple.text, "high-risk", why, hidden=True, unseen=why)
            return
        for one in within.commands:
            yield from self._simple(one, deeper)
        for text in within.texts:
            yield from self.text(text, simple.cwd, deeper, fed=simple.fed)

    def _assignment(
        self, simple: SimpleCommand, within: InnerCommands, around: tuple[str, ...]
    ) -> Iterator[CommandPart]:
        """Yield an assignment of variables, then what programs run by their values."""
        reason = f"it sets {', '.join(simple.sets)}"
        runs = not _RUN_BY_SHELLS.isdisjoint(simple.sets)
        risk = "high-risk" if runs else "standard" if simple.assigned else "safe"
        unseen = _SETS_CODE if runs else _reason_sentence(within.unseen)
        yield CommandPart(simple.text, risk, reason, (), around, runs, unseen)
        for text in within.texts:
            yield from self.text(text, simple.cwd, (*around, simple.text))

    def _redirect(self, one: Redirect) -> tuple[Risk, str]:
        self._spend(0)
        risk, reason = blocklist.redirect(one, self._places)
        if risk != "blocked" and self._near_key and not one.target.known:
            return "high-risk", _MAY_READ_KEY
        return risk, reason

    def _tier(
        self, simple: SimpleCommand, called: Invocation, within: InnerCommands
    ) -> tuple[Risk, str]:
        """The risk of the command itself, without what it runs, and the reason."""
        if not simple.words[0].known:
            # An unknown program might be rm, so it is blocked if that would be.
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
        if not _RUN_BY_SHELLS.isdisjoint(simple.sets):
            return "high-risk", _SETS_CODE
        # Unknown words may name the key if the line mentions anything near it.
        known = simple.cwd is not None and all(word.known for word in simple.words)
        near_key = self._near_key and not known
        if near_key or any(self._places.may_be_secret(w, simple.cwd) for w in simple.words[1:]):
            return "high-risk", _MAY_READ_KEY
        runs = within.commands or within.texts
        why = ""
        if not (runs and (called.name in _NEUTRAL or called.name in SHELLS)):
            words = tuple(word.text for word in simple.words)
            unknown = may_write(called.name)
            plain = simple.cwd if known and self._short else None
            why = objection(words, plain, self._area) if plain else unknown
        if not why and simple.assigned:
            why = f"it sets {', '.join(simple.sets)}"
        if why:
            return "standard", why
        return "safe", "it runs another command" if runs else "it is read-only"


@lru_cache(maxsize=8)
def _names_of_key(config: Path, *homes: Path) -> tuple[str, ...]:
    """The beginnings of the name of the file with the key, in all spellings."""
    folders = [str(config)]
    for home in {*homes}:
        if home in config.parents:
            below = config.relative_to(home)
            folders += [f"~/{below}", f"$HOME/{below}", f"${{HOME}}/{below}"]
    return tuple(f"{folder}/credentials" for folder in folders)


def _unseen(called: Invocation, within: InnerCommands, reason: str) -> str:
    """Explain why the words of a command do not show which programs it runs; "" if they do."""
    if inner := within.unknown or within.unseen:
        return _reason_sentence(inner)
    decides = reason == blocklist.ONLY_THEN and called.name in _RUN_OTHERS
    return reason if decides or reason in _UNSEEN else ""


def _worst(parts: Sequence[CommandPart]) -> int:
    return max((ORDER[part.risk] for part in parts), default=0)


def _reason_sentence(why: str) -> str:
    return f"it {why}" if why else ""


def _rough(text: str, cwd: Path | None, home: Path) -> Iterator[SimpleCommand]:
    """Yield the possible commands of a text, of the programs that the tables know by name."""
    bare = _CODED.sub(lambda match: ansi_c(match[1]), text.replace("\\\n", ""))
    values = {match[1]: match[2] for match in _SIMPLE_VALUE.finditer(bare)}
    opened = _DEFAULT.sub(r" \1 ", bare)
    opened = _CHOICES.sub(lambda match: match[1].replace(",", " "), opened)
    opened = _VARIABLE.sub(lambda match: values.get(match[1], match[0]), opened)
    # The text is read in every spelling that a shell could make of it.
    spellings = (text, bare, re.sub(r"['\"]", ";", bare), opened, opened.replace(",", " "))
    for piece in dict.fromkeys(one for each in spellings for one in _PIECES.split(each)):
        rough_words = islice(_ROUGH_WORD.finditer(piece), _MOST_ROUGH_WORDS)
        texts = [re.sub(r"\$?[\"']|\\", "", word[0]) for word in rough_words]
        begins = next((n for n, word in enumerate(texts) if not _BEFORE.fullmatch(word)), 0)
        for at, word in enumerate(texts):
            name = word.rpartition("/")[2].lower()
            first = at == begins and (name in WRITERS or name in _ALSO_WORDS)
            known = name in _ANYWHERE or BLOCKED_NAMES.fullmatch(name)
            if first or known or _PIP.fullmatch(name):
                words = texts[at : at + _MOST_ROUGH_WORDS // 10]
                yield SimpleCommand(
                    tuple(_rough_word(one, home) for one in words), " ".join(words), cwd
                )


def _rough_word(text: str, home: Path) -> ShellWord:
    text = re.sub(r"^(~|\$HOME|\$\{HOME\})(?=/|$)", lambda _: str(home), text)
    text = _GIVEN.sub(UNKNOWN, text.replace(UNKNOWN, "?"))
    return ShellWord(text, glob=any(c in text for c in "*?["))
