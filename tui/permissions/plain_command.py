"""Plain commands: those whose effect can be known by reading them.

A plain command is a list of simple commands, joined by `|`, `&&`, `||` or `;`, in which every word
is a literal: nothing is left for the shell to find out. Rules match only such commands. Those that
also run a program in the table below, with known options and on paths that may be read, run without
a question. Everything here is a list of what is allowed; anything else asks.
"""

from __future__ import annotations

import re
import stat
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path

from tui.core.dataclass import dataclass, field
from tui.core.late_pattern import late_pattern
from tui.core.workspace import Workspace
from tui.permissions.parsed_command import is_option
from tui.permissions.path_risk import real_path
from tui.permissions.plain_environment import repository_objection
from tui.permissions.plain_programs import NEVER, PROGRAMS, SHOW_CONTENTS, PlainProgram
from tui.permissions.risk_tiers import names

MOST_CHARS = 2000

_TOKEN = late_pattern(
    r"""\ *(?:
      (?P<joint>\|\||&&|\||;)
    | (?P<redirection>2>&1|[12]?>\ ?/dev/null)(?=[\ ;|&]|$)
    | (?P<word>(?:
          [A-Za-z0-9_./,:=@%+-]
        | (?<=[A-Za-z0-9^~])[~^]                # HEAD~1, HEAD^: no shell expands it here
        | '[^'$`\\]*' | "[^"$`\\]*"
      )+)(?=[\ ;|&]|$)
    )""",
    re.VERBOSE,
)
_PROGRAM = late_pattern(r"[A-Za-z0-9_./:@%+-]+")
"""A program's name: no quotes, and no `=` of an assignment."""

_RESERVED = frozenset(
    names("if then elif else fi for in do done while until case esac select function time coproc")
)


@dataclass(frozen=True, slots=True)
class PlainCommand:
    """One simple command: its words without quotes, and its text with single spaces.

    `joint` is what joins it to the next one, "" at the end.
    """

    words: tuple[str, ...]
    text: str
    joint: str = ""


def parse(command: str) -> tuple[PlainCommand, ...] | None:
    """Parse the simple commands of a line in plain words; None for every other line."""
    if len(command) > MOST_CHARS or not command.isprintable():
        return None
    commands: list[PlainCommand] = []
    written: list[str] = []
    redirected, end = False, 0
    for token in _TOKEN.finditer(command.rstrip(" ")):
        if token.start() != end:
            return None
        end = token.end()
        if token["joint"]:
            commands.append(_plain_command(written, token["joint"]))
            written, redirected = [], False
        elif token["redirection"]:
            redirected = True
        elif redirected:
            return None  # words after a redirection are rare, and easily misread
        else:
            written.append(token["word"])
    commands.append(_plain_command(written, ""))
    firsts = [one.text.partition(" ")[0] for one in commands]
    can_be_run = all(_PROGRAM.fullmatch(first) and first not in _RESERVED for first in firsts)
    return tuple(commands) if can_be_run and end == len(command.rstrip(" ")) else None


def _plain_command(written: Sequence[str], joint: str) -> PlainCommand:
    return PlainCommand(tuple(map(_unquoted, written)), " ".join(written), joint)


def _unquoted(word: str) -> str:
    return re.sub(r"'([^']*)'|\"([^\"]*)\"", lambda m: m[1] or m[2] or "", word)


@dataclass(frozen=True, slots=True)
class ReadableArea:
    """The paths that a plain command may read: the workspace without the program's own `private`
    folders."""

    workspace: Workspace
    private: tuple[Path, ...] = ()

    def reads(self, path: Path) -> bool:
        return self.workspace.contains(path) and not any(
            private == path or private in path.parents for private in self.private
        )

    def walks(self, path: Path) -> bool:
        """True if everything below the path may be read, too."""
        return self.reads(path) and not any(path in private.parents for private in self.private)


def reasons_to_ask(
    line: Sequence[PlainCommand], folder: Path, reach: ReadableArea
) -> tuple[str, ...]:
    """Explain for each command of a line run in `folder` why it asks; "" if it only reads."""
    reasons: list[str] = []
    folders: tuple[Path, ...] = (folder,)
    for number, one in enumerate(line):
        if one.words[0] in _MOVES:
            why = _moves(one, folder, reach) if number == 0 else "it changes folders later on"
            fails = any(other.joint in {"||", ";"} for other in line)
            folders = (
                () if why else (real_path(folder / one.words[-1]), *((folder,) if fails else ()))
            )
        elif not folders:
            why = "the folder it runs in is unknown"
        else:
            why = next((w for where in folders if (w := _in_folder(one, where, reach))), "")
        reasons.append(why)
    return tuple(reasons)


_MOVES = frozenset({"cd", "pushd", "popd", "builtin", "command", "eval", "source", "."})
"""Shell builtins that may change the folder in which later commands run."""


def _moves(one: PlainCommand, folder: Path, reach: ReadableArea) -> str:
    """Object to changing folders except by `cd` at the start of a line, before `&&`."""
    if one.words[0] != "cd" or len(one.words) != 2 or one.joint != "&&":
        return f"`{one.words[0]}` may change folders in more than one way"
    target = one.words[1]
    if target.startswith("-") or ".." in target.split("/") or not target:
        return f"`cd {target}` goes where the shell decides"
    inside = reach.reads(real_path(folder / target))
    return "" if inside else f"it goes to {target}, outside the workspace"


_WALKS = frozenset({"rg", "grep", "find", "tree", "du"})
_NO_PATTERN = frozenset({"-e", "--regexp", "--files", "--type-list"})
"""Options that make the first operand of grep and rg a path."""

_RUNS_GPG = late_pattern(r"%[-+ ]?G")


def _in_folder(one: PlainCommand, folder: Path, reach: ReadableArea) -> str:
    why = objection(one.words, folder, reach)
    if not why and one.words[0] == "git" and len(_name(one.words)) > 1:
        return repository_objection(folder, reach.reads)
    return why


def _seen(words: tuple[str, ...]) -> tuple[str, ...]:
    return ("git", *words[2:]) if words[:2] == ("git", "--no-pager") else words


def _name(words: tuple[str, ...]) -> tuple[str, ...]:
    """The longest name in the table that a command begins with, () if there is none."""
    seen = _seen(words)
    return next((seen[:n] for n in (3, 2, 1) if seen[:n] in PROGRAMS), ())


def shows_contents(one: PlainCommand) -> bool:
    """True if a command of the table shows file contents, not only which files exist."""
    seen = _seen(one.words)
    return seen[:1] in SHOW_CONTENTS or seen[:2] in SHOW_CONTENTS


def may_write(program: str) -> str:
    """Say that a program isn't known to only read."""
    return f"`{program}` may do more than read, as far as Holdfast knows"


def objection(words: tuple[str, ...], folder: Path, reach: ReadableArea) -> str:
    """Explain why a command of literal words may do more than read in the area; "" if it does
    not."""
    name = _name(words)
    unknown = may_write(words[0].rpartition("/")[2].lower())
    if not name:
        return unknown
    program = PROGRAMS[name]
    if program.options == "*":
        return ""
    arguments = _seen(words)[len(name) :]
    read = _read(arguments, _options(program.options))
    if read is None or len(read.words) > program.most:
        return unknown
    # Not even the value of an option may look like one that writes or runs something.
    if any(is_option(word, never) for word in arguments for never in NEVER.get(name[0], ())):
        return unknown
    texts = _texts(read, program)
    if not re.fullmatch(program.like, " ".join(read.operands[:texts])):
        return unknown
    may_read = reach.walks if name[0] in _WALKS else reach.reads
    for word in _paths(read, texts, walks=name[0] in _WALKS):
        real = real_path(folder / word)
        if not may_read(real):
            return f"it reads {word}, outside the workspace"
        if _loses_what_is_read(real):
            return f"it reads {word}, a pipe, socket or device"
    return "it may run gpg" if name[0] == "git" and _RUNS_GPG.search(" ".join(words)) else ""


def _loses_what_is_read(path: Path) -> bool:
    """True if reading removes something, so that the command must run exactly once."""
    try:
        mode = path.stat().st_mode
    except OSError:
        return False
    return not (stat.S_ISREG(mode) or stat.S_ISDIR(mode))


@dataclass(frozen=True, slots=True)
class ReadPlace:
    """A path that a command reads, from where it runs. `below`: everything below it is read, too;
    `git`: git reads a whole repository there."""

    path: Path
    below: bool = False
    git: bool = False


def places_read(line: Sequence[PlainCommand], folder: Path) -> Iterator[ReadPlace]:
    """Yield the paths that a line which only reads may read; the folder it runs in is the first."""
    folders = [Path()]
    yield ReadPlace(folders[0])
    for one in line:
        name = _name(one.words)
        if one.words[0] == "cd":
            folders.append(Path(one.words[-1]))
            yield ReadPlace(folder / one.words[-1])  # the shell makes it a full path
        elif name and PROGRAMS[name].options != "*":
            arguments = _seen(one.words)[len(name) :]
            read = _read(arguments, _options(PROGRAMS[name].options)) or _Arguments()
            below = name[0] in _WALKS or "-R" in read.used or "--recursive" in read.used
            for where in folders:
                if name[0] == "git":
                    yield ReadPlace(where, below=True, git=True)
                for word in _paths(read, _texts(read, PROGRAMS[name]), walks=name[0] in _WALKS):
                    yield ReadPlace(where / word, below)


def _texts(read: _Arguments, program: PlainProgram) -> int:
    """The number of first operands that are not paths."""
    return 0 if read.used & _NO_PATTERN else program.texts


def _paths(read: _Arguments, texts: int, *, walks: bool) -> Sequence[str]:
    """The words of a command that may be paths."""
    paths = read.operands[texts:] or (["."] if walks else [])
    words = dict.fromkeys((*read.values, *paths, *read.words[texts:]))
    return [word for word in words if word not in {"-", "/dev/null"}]


@dataclass(frozen=True, slots=True)
class _Arguments:
    """Arguments as a program reads them."""

    used: set[str] = field(default_factory=set[str])
    values: list[str] = field(default_factory=list[str])
    operands: list[str] = field(default_factory=list[str])
    words: list[str] = field(default_factory=list[str])
    """The operands, and the values that are words of their own: another version of the program may
    take one for the other."""

    def take_value(self, pending: list[str]) -> None:
        value = pending.pop(0) if pending else ""
        self.values.append(value)
        self.words.append(value)

    def take_operands(self, operands: Sequence[str]) -> None:
        self.operands.extend(operands)
        self.words.extend(operands)


def _read(words: Sequence[str], options: Mapping[str, str]) -> _Arguments | None:
    """Read arguments by the known options; None if a word begins with `-` and is not one of
    them."""
    read = _Arguments()
    pending = list(words)
    while pending:
        word = pending.pop(0)
        name, equals, value = word.partition("=")
        if word == "--":
            read.take_operands(pending)
            break
        if not word.startswith("-") or word == "-":
            read.take_operands([word])
        elif word in options:
            read.used.add(word)
            if options[word] == "=":
                read.take_value(pending)
        elif word.startswith("--") and equals and options.get(name):
            read.used.add(name)
            read.values.append(value)
        elif not ("-#" in options and re.fullmatch(r"-[0-9]+", word)):
            # Several short options may share one word.
            known = _joined(word, options, read)
            if known is None:
                return None
            if known == "=":
                read.take_value(pending)
    return read


def _joined(word: str, options: Mapping[str, str], read: _Arguments) -> str | None:
    """Read `-la` or `-n20`: "" if all is known, "=" if the value is the next word, else None."""
    for n, letter in enumerate(word[1:], start=2):
        option = f"-{letter}"
        if option not in options or letter == "#":
            return None
        read.used.add(option)
        if options[option] == "=":
            value = word[n:]
            read.values.extend([value] if value else [])
            return None if "/" in value else "" if value else "="
    return ""


@cache
def _options(text: str) -> dict[str, str]:
    """Map each option to "", "=" or "[=]", the way it takes a value."""
    matches = (re.fullmatch(r"(-[^=\[]*)(\[?=?\]?)", word) for word in text.split())
    return {match[1]: match[2] for match in matches if match}
