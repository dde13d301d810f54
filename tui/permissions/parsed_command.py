"""What a command line holds, once it is read: commands, redirections, problems."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from tui.permissions.shell_words import UNKNOWN, Word

_SEE_THROUGH = {"time", "command", "builtin", "nohup", "-p", "--"}

LONGEST_VALUE = 10_000
"""Variables and outputs that are longer count as not known: a line can make them grow."""


@dataclass(frozen=True, slots=True)
class Redirect:
    """A redirection to or from a file, in the folder `cwd` (None: not known)."""

    target: Word
    writes: bool
    text: str
    cwd: Path | None


@dataclass(frozen=True, slots=True)
class Simple:
    """One simple command.

    `words` are empty for a bare assignment. `text` is how it was written, redirections left out
    and spaces evened. `feeds` are the commands before it in its pipeline, `stdin` a here
    document or string. `assigned` are the variables it sets.
    """

    words: tuple[Word, ...]
    text: str
    cwd: Path | None
    assigned: tuple[str, ...] = ()
    stdin: str | None = None
    feeds: tuple[Simple, ...] = ()


@dataclass(slots=True)
class Script:
    """What a command line holds. `problem` says what could not be read, "" when all was."""

    commands: list[Simple] = field(default_factory=list[Simple])
    redirects: list[Redirect] = field(default_factory=list[Redirect])
    problem: str = ""
    fork_bomb: bool = False


def known_output(simple: Simple, outputs: Mapping[str, str]) -> str:
    """What a command prints, where its words alone decide that; else UNKNOWN."""
    text = _output(simple, outputs)
    return text if len(text) <= LONGEST_VALUE else UNKNOWN


def _output(simple: Simple, outputs: Mapping[str, str]) -> str:
    words = [word.text for word in simple.words]
    while words and words[0] in _SEE_THROUGH:
        words = words[1:]
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
