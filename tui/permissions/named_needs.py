"""The needs that the words of a command show, once walls have stopped it: files that it writes,
places outside the workspace, settings of git.

An error's text can say anything, so a question about a place is never based on it alone.
"""

from __future__ import annotations

import re
from pathlib import Path

from tui.core.dataclass import dataclass, field
from tui.core.late_pattern import late_pattern
from tui.core.workspace import Workspace
from tui.permissions.parsed_command import (
    Invocation,
    ShellWord,
    SimpleCommand,
    TooMuchError,
    invocation,
)
from tui.permissions.path_risk import Places, real_path
from tui.permissions.risk_tiers import (
    DOWNLOADERS,
    GIT_REACHES,
    INTERPRETERS,
    SHELLS,
    WRITERS,
    names,
)
from tui.permissions.shell import read
from tui.permissions.wrapper_commands import inner_commands

_MOST = 1000
"""Maximum number of syntax nodes and commands that are examined."""

_GIT_WRITES = frozenset(
    names(
        "add am apply bisect branch checkout cherry-pick clean clone commit fetch gc init merge mv"
        " notes pull rebase reset restore revert rm stash submodule switch tag update-index"
        " worktree"
    )
)
_GIT_LOOKS = late_pattern(
    r"stash (?:list|show)|worktree list|submodule(?: (?:status|summary))?|notes(?: (?:list|show))?"
    r"|bisect (?:log|view|visualize)|clean (?:-\w*n\w*|--dry-run)|branch(?: -[alrv]+)?"
    r"|tag(?: (?:-[lv]|-n\d*))?|(?:branch|tag) --(?:list|all|remotes|show-current|contains"
    r"|no-contains|merged|no-merged|points-at|sort|format)(?:=.*)?"
)
"""Those of them that only read, with their first argument."""
_WRITE_THEIR_FILES = frozenset(
    names(
        "vi vim nvim ex ed sqlite3 cmake meson tar unzip zip cpio patch javac flex bison lex yacc"
    )
    + tuple(WRITERS)
)
"""Programs that mostly write; some of them print nothing about a read-only folder."""
_TO = late_pattern(
    r"-[oOCdDtP]|--(?:out|outdir|outfile|output|output-dir|output-document|dest|destination"
    r"|directory|prefix|target|target-dir|target-directory|root|user-install)"
)
"""Options whose value is a path that a program writes to."""
_READERS = frozenset(
    names(
        "ls grep egrep fgrep rg test [ cut diff cmp comm head tail wc stat file du df ps xargs find"
    )
)
"""Programs that write nowhere; their options of these names mean something else."""
_GIT_TO = late_pattern(r"-o|--output(?:-directory)?|--separate-git-dir")
_LAST_IS_WRITTEN = frozenset(names("cp mv install ln"))
_GLOBAL = {"--global": "~/.gitconfig", "--system": "/etc/gitconfig"}
_ADDRESS = late_pattern(r"https?://(?!localhost|127\.|\[::1\])", re.IGNORECASE)
_LOOKS_UP = late_pattern(r"--get.*|--list|-l")
_SIGNS = late_pattern(r"-S.*|--gpg-sign.*|-s|-u.*|--sign")


@dataclass(slots=True)
class NamedNeeds:
    """The needs that a command names. All paths are real ones."""

    files: dict[Path, None] = field(default_factory=dict[Path, None])
    """Files in the workspace that it is meant to write, in order."""
    outside: dict[Path, None] = field(default_factory=dict[Path, None])
    """Files elsewhere that it is meant to write."""
    mentioned: dict[str, Path] = field(default_factory=dict[str, Path])
    """Other places outside, by the words that name them: it may only read them."""
    git: set[str] = field(default_factory=set[str])
    """The subcommands of git."""
    writes: bool = False
    """True if one of its programs is known to write."""
    signs: bool = False
    """True if git is told to sign."""
    fetches: bool = False
    """True if a program that downloads gets the address of another machine."""

    def outside_in(self, line: str) -> Path | None:
        """A place outside that the command names for writing, or that both it and a line name."""
        for path in self.outside:
            return path
        for text, path in self.mentioned.items():
            if re.search(rf"(?<![\w./~-]){re.escape(text)}(?![\w/-])", line):
                return path
        return None


def named_needs(command: str, folder: Path, workspace: Workspace, home: Path) -> NamedNeeds:
    """Collect what a command run in `folder` names; nothing if it cannot be read."""
    finder = _Finder(Places(workspace, real_path(home)), home)
    try:
        finder.text(command, folder)
    except TooMuchError:
        return NamedNeeds()
    return finder.needs


@dataclass(slots=True)
class _Finder:
    places: Places
    home: Path
    needs: NamedNeeds = field(default_factory=NamedNeeds)
    _left: int = _MOST

    def text(self, text: str, folder: Path | None) -> None:
        self._spend()
        line = read(text, cwd=folder, known={"HOME": str(self.home), "IFS": " "}, most=self._left)
        self._left -= line.nodes
        for one in line.redirects:
            if one.writes:
                for there in one.in_each_folder():
                    self._written(there.target, there.cwd)
        for simple in line.commands:
            for one in simple.in_each_folder():
                self._simple(one)

    def _spend(self) -> None:
        self._left -= 1
        if self._left < 0:
            raise TooMuchError

    def _simple(self, simple: SimpleCommand) -> None:
        self._spend()
        within = inner_commands(simple)
        for one in within.commands:
            self._simple(one)
        for text in within.texts:
            self.text(text, simple.cwd)
        if simple.words and not (within.commands or within.texts):
            self._program(simple, invocation(simple))

    def _program(self, simple: SimpleCommand, called: Invocation) -> None:
        name, cwd = called.name, simple.cwd
        in_place = name in {"sed", "perl"} and called.has("-i", "--in-place")
        self.needs.writes |= name in _WRITE_THEIR_FILES or in_place
        operands = called.operands
        if name in _LAST_IS_WRITTEN:
            operands = operands[-1:]
        if name in WRITERS or in_place:
            for word in operands:
                self._written(word, cwd)
        if name == "git" and called.args:
            self._git(called, cwd)
        if name in DOWNLOADERS or (called.args and called.args[0].text in GIT_REACHES):
            self.needs.fetches |= any(_ADDRESS.match(word.text) for word in called.args)
        # The first operand of an interpreter is a program's text or file, not a place.
        skipped = operands[:1] if name in SHELLS or INTERPRETERS.fullmatch(name) else ()
        before, to = "", _GIT_TO if name == "git" else _TO
        for word in called.args:
            if name in _READERS:
                self._mention(word.text, cwd)
                continue
            target, _, value = word.text.partition("=")
            if to.fullmatch(before):
                self._written(word, cwd)
            elif value and to.fullmatch(target):
                self._written(ShellWord(value), cwd)
            elif to.fullmatch(word.text[:2]) and word.text[2:3] in {"/", "~", "."}:
                self._written(ShellWord(word.text[2:]), cwd)
            elif word not in skipped:
                self._mention(word.text, cwd)
                self._mention(value, cwd)
            before = word.text

    def _git(self, called: Invocation, cwd: Path | None) -> None:
        subcommand, texts = called.args[0].text, [word.text for word in called.args[1:]]
        self.needs.git.add(subcommand)
        looks = _GIT_LOOKS.fullmatch(" ".join([subcommand, *texts[:1]]))
        self.needs.writes |= subcommand in _GIT_WRITES and not looks
        self.needs.signs |= any(map(_SIGNS.fullmatch, texts))
        if subcommand == "config" and not any(map(_LOOKS_UP.fullmatch, texts)):
            for text in texts:
                if place := _GLOBAL.get(text, "").replace("~", str(self.home)):
                    self._written(ShellWord(place), cwd)

    def _written(self, word: ShellWord, cwd: Path | None) -> None:
        path = self.places.path(word.text, cwd)
        if path is None or path.parts[:2] == ("/", "dev"):
            return
        real = real_path(path)
        if self.places.workspace.is_temporary(real):
            return  # every level writes there
        inside = self.places.workspace.contains(real)
        (self.needs.files if inside else self.needs.outside)[real] = None

    def _mention(self, text: str, cwd: Path | None) -> None:
        path = self.places.path(text, cwd) if "/" in text or text == ".." else None
        if path is not None and not self.places.workspace.contains(real := real_path(path)):
            self.needs.mentioned |= {text: real, str(real): real}
