"""A simple command seen as a program with arguments, whatever way it was spelled."""

from __future__ import annotations

import re
from dataclasses import dataclass

from tui.permissions.parsed_command import Simple
from tui.permissions.shell_words import Word

_GIT_VALUED = {"-C", "-c", "--git-dir", "--work-tree", "--namespace", "--config-env"}


@dataclass(frozen=True, slots=True)
class Program:
    """`name` is the bare lower-case name; `python -m pip` is `pip`, `git -C x log` is `git log`.

    `settings` are git's options before the subcommand that were left out of `args`.
    """

    name: str
    args: tuple[Word, ...]
    settings: tuple[Word, ...] = ()

    @property
    def operands(self) -> tuple[Word, ...]:
        """The arguments that are no options. After `--` everything is one."""
        found: list[Word] = []
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
        return any(_is_option(text, option) for text in given for option in options)


def program(simple: Simple) -> Program:
    """The program of a command that has words."""
    name = simple.words[0].text.rsplit("/", 1)[-1].lower()
    args = simple.words[1:]
    if re.fullmatch(r"(python|pypy)[\d.]*", name) and len(args) > 1 and args[0].text == "-m":
        if args[1].text == "pip":
            return Program("pip", args[2:])
    elif re.fullmatch(r"pip[\d.]+", name):
        return Program("pip", args)
    elif name == "git":
        n = 0
        while n < len(args) and args[n].text.startswith("-"):
            n += 2 if args[n].text in _GIT_VALUED else 1
        return Program("git", args[n:], args[:n])
    return Program(name, args)


def _is_option(text: str, option: str) -> bool:
    if not option.startswith("-"):
        return text == option
    if option.startswith("--"):
        name = text.partition("=")[0]
        return len(name) > 3 and name.startswith("--") and option.startswith(name)
    if len(option) > 2 or option == "--":
        return text == option
    return len(text) > 1 and text[0] == "-" and text[1] != "-" and option[1] in text[1:]
