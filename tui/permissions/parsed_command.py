"""The content of a parsed command line: words, commands, redirections, problems.

A simple command can also be seen as a program with arguments, however it was spelled.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path

from tui.core.dataclass import dataclass, field, replace

UNKNOWN = "\0"
"""Placeholder in a word for text that only the shell will know. No command line can contain it."""


class TooMuchError(Exception):
    """A command line that would take too long to read."""


@dataclass(frozen=True, slots=True)
class ShellWord:
    """One word after expansion. `glob` is True if it has an unquoted pattern."""

    text: str
    glob: bool = False

    @property
    def known(self) -> bool:
        return UNKNOWN not in self.text

    @property
    def open(self) -> bool:
        """True if it may be any option, or any name."""
        return re.match(rf"(-.*|[\w.]*){UNKNOWN}", self.text, re.DOTALL) is not None


@dataclass(frozen=True, slots=True)
class Redirect:
    """A redirection to or from a file, in the folder `cwd` (None: not known)."""

    target: ShellWord
    writes: bool
    text: str
    cwd: Path | None
    elsewhere: tuple[Path | None, ...] = ()
    """The other folders that it may be in, if a `cd` before it fails."""

    def in_each_folder(self) -> Iterator[Redirect]:
        """Yield it once for each folder that it may be in."""
        for cwd in (self.cwd, *self.elsewhere):
            yield replace(self, cwd=cwd, elsewhere=())


@dataclass(frozen=True)
class SimpleCommand:
    """One simple command."""

    words: tuple[ShellWord, ...]
    """The words; empty for a bare assignment."""
    text: str
    """The text as written, without redirections and with single spaces."""
    cwd: Path | None
    """The folder that it is run in, None if not known."""
    assigned: tuple[tuple[str, str], ...] = ()
    """The variables that it sets, and their values."""
    downloaded: bool = False
    """True if a command before it in its pipeline downloads something."""
    fed: bool = False
    """True if the line gives it input: from a pipe, a file, a here-document."""
    elsewhere: tuple[Path | None, ...] = ()
    """The other folders that it may be run in, if a `cd` before it fails."""

    def in_each_folder(self) -> Iterator[SimpleCommand]:
        """Yield it once for each folder that it may be run in."""
        for cwd in (self.cwd, *self.elsewhere):
            yield replace(self, cwd=cwd, elsewhere=()) if self.elsewhere else self

    @property
    def sets(self) -> tuple[str, ...]:
        """The names of the variables that it sets."""
        return tuple(name for name, _ in self.assigned)

    @cached_property
    def program(self) -> str:
        """The program's name without its folder, in lower case."""
        return self.words[0].text.rpartition("/")[2].lower() if self.words else ""


@dataclass(slots=True)
class ParsedLine:
    """A parsed command line. `problem` says what could not be read, "" if everything was."""

    commands: list[SimpleCommand] = field(default_factory=list[SimpleCommand])
    redirects: list[Redirect] = field(default_factory=list[Redirect])
    problem: str = ""
    fork_bomb: bool = False
    unseen: bool = False
    """True if the text has code that the syntax tree does not show, or may not show."""
    nodes: int = 0
    """The size of its syntax tree."""


_GIT_VALUED = {
    "-C", "-c", "--git-dir", "--work-tree", "--namespace", "--config-env", "--attr-source",
}  # fmt: skip


@dataclass(frozen=True)
class Invocation:
    """A program with its arguments; `python -m pip` is `pip`, `git -C x log` is `git log`."""

    name: str
    args: tuple[ShellWord, ...]
    settings: tuple[ShellWord, ...] = ()
    """Git's options before the subcommand, which are not in `args`."""

    @cached_property
    def operands(self) -> tuple[ShellWord, ...]:
        """The arguments that are not options. After `--` all are operands."""
        texts = [word.text for word in self.args]
        end = texts.index("--") if "--" in texts else len(texts)
        before = (word for word in self.args[:end] if word.text == "-" or word.text[:1] != "-")
        return (*before, *self.args[end + 1 :])

    @property
    def command(self) -> str:
        """Name and arguments, as rules read them."""
        return " ".join([self.name, *(word.text for word in self.args)])

    @property
    def open(self) -> bool:
        """True if only the shell will know which options it is run with."""
        return any(word.open for word in self.args)

    def has(self, *options: str) -> bool:
        """True if it has one of the options: also abbreviated, with `=value`, or in `-abc`.

        Errs on the side of True: `-n1` is seen as having `-1`.
        """
        given = dict.fromkeys(word.text for word in self.args)
        for text in given:
            if text == "--":
                break
            if any(is_option(text, option) for option in options):
                return True
        return False


def invocation(simple: SimpleCommand) -> Invocation:
    """Return the program of a command that has words."""
    name, args = simple.program, simple.words[1:]
    if re.fullmatch(r"(python|pypy)[\d.]*", name) and [w.text for w in args[:2]] == ["-m", "pip"]:
        return Invocation("pip", args[2:])
    if re.fullmatch(r"pip[\d.]+", name):
        return Invocation("pip", args)
    n = 0
    while name == "git" and n < len(args) and args[n].text.startswith("-"):
        n += 2 if args[n].text in _GIT_VALUED else 1
    return Invocation(name, args[n:], args[:n])


def is_option(text: str, option: str) -> bool:
    """True if a word is this option: see `Invocation.has`."""
    if not option.startswith("-"):
        return text == option
    if option.startswith("--"):
        name = text.partition("=")[0]
        return len(name) > 3 and name.startswith("--") and option.startswith(name)
    if len(option) > 2 or option == "--":
        return text == option
    return len(text) > 1 and text[0] == "-" and text[1] != "-" and option[1] in text[1:]
