"""What a command line holds, once it is read: commands, redirections, problems.

A simple command can also be seen as a program with arguments, however it was spelled.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import dropwhile
from pathlib import Path

from tui.permissions.shell_words import UNKNOWN, ShellWord

_SEE_THROUGH = {"time", "command", "builtin", "nohup", "-p", "--"}

LONGEST_VALUE = 10_000
"""Variables and outputs that are longer count as not known: a line can make them grow."""


@dataclass(frozen=True, slots=True)
class Redirect:
    """A redirection to or from a file, in the folder `cwd` (None: not known)."""

    target: ShellWord
    writes: bool
    text: str
    cwd: Path | None


@dataclass(frozen=True, slots=True)
class SimpleCommand:
    """One simple command."""

    words: tuple[ShellWord, ...]
    """Empty for a bare assignment."""
    text: str
    """How it was written, without redirections and with single spaces."""
    cwd: Path | None
    """The folder that it is run in, None where that is not known."""
    assigned: tuple[str, ...] = ()
    """The variables that it sets."""
    stdin: str | None = None
    """A here document or here string."""
    feeds: tuple[SimpleCommand, ...] = ()
    """The commands before it in its pipeline."""


@dataclass(slots=True)
class ParsedLine:
    """What a command line holds. `problem` says what could not be read, "" when all was."""

    commands: list[SimpleCommand] = field(default_factory=list[SimpleCommand])
    redirects: list[Redirect] = field(default_factory=list[Redirect])
    problem: str = ""
    fork_bomb: bool = False


def known_output(simple: SimpleCommand, outputs: Mapping[str, str]) -> str:
    """What a command prints, where its words alone decide that; else UNKNOWN."""
    text = _output(simple, outputs)
    return text if len(text) <= LONGEST_VALUE else UNKNOWN


def _output(simple: SimpleCommand, outputs: Mapping[str, str]) -> str:
    words = list(dropwhile(_SEE_THROUGH.__contains__, (word.text for word in simple.words)))
    if " ".join(words) == "pwd" and simple.cwd is not None:
        return str(simple.cwd)
    if " ".join(words) in outputs:
        return outputs[" ".join(words)]
    if words == ["cat"] and simple.stdin is not None:
        return simple.stdin.rstrip("\n")
    if words[:1] == ["echo"]:
        return " ".join(w for n, w in enumerate(words) if n and not (n == 1 and w in {"-n", "-e"}))
    if words[:1] == ["printf"] and len(words) > 1:
        return " ".join([words[1].replace("%s", "").replace("\\n", "\n"), *words[2:]]).strip()
    return UNKNOWN


_GIT_VALUED = {"-C", "-c", "--git-dir", "--work-tree", "--namespace", "--config-env"}


@dataclass(frozen=True, slots=True)
class Invocation:
    """A program with its arguments; `python -m pip` is `pip`, `git -C x log` is `git log`."""

    name: str
    """Without its folder, in lower case."""
    args: tuple[ShellWord, ...]
    settings: tuple[ShellWord, ...] = ()
    """Git's options before the subcommand, which are not in `args`."""

    @property
    def operands(self) -> tuple[ShellWord, ...]:
        """The arguments that are no options. After `--` everything is one."""
        found: list[ShellWord] = []
        for n, word in enumerate(self.args):
            if word.text == "--":
                return (*found, *self.args[n + 1 :])
            if not word.text.startswith("-") or word.text == "-":
                found.append(word)
        return tuple(found)

    @property
    def command(self) -> str:
        """Name and arguments, as rules read them."""
        return " ".join([self.name, *(word.text for word in self.args)])

    def has(self, *options: str) -> bool:
        """Whether one of the options stands there: also abbreviated, `=value`, or in `-abc`.

        Errs on the side of yes: `-n1` is seen as having `-1`.
        """
        given = [word.text for word in self.args]
        if "--" in given:
            given = given[: given.index("--")]
        return any(is_option(text, option) for text in given for option in options)


def invocation(simple: SimpleCommand) -> Invocation:
    """The program of a command that has words."""
    name = simple.words[0].text.rsplit("/", 1)[-1].lower()
    args = simple.words[1:]
    if re.fullmatch(r"(python|pypy)[\d.]*", name) and len(args) > 1 and args[0].text == "-m":
        if args[1].text == "pip":
            return Invocation("pip", args[2:])
    elif re.fullmatch(r"pip[\d.]+", name):
        return Invocation("pip", args)
    elif name == "git":
        n = 0
        while n < len(args) and args[n].text.startswith("-"):
            n += 2 if args[n].text in _GIT_VALUED else 1
        return Invocation("git", args[n:], args[:n])
    return Invocation(name, args)


def is_option(text: str, option: str) -> bool:
    """Whether a word is an option: see `Invocation.has`."""
    if not option.startswith("-"):
        return text == option
    if option.startswith("--"):
        name = text.partition("=")[0]
        return len(name) > 3 and name.startswith("--") and option.startswith(name)
    if len(option) > 2 or option == "--":
        return text == option
    return len(text) > 1 and text[0] == "-" and text[1] != "-" and option[1] in text[1:]
