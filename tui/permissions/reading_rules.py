"""The person's rules on reading a file, for everything that reads: each file tool, the results of a
search, commands in plain words, and the walls around all others.

A rule that names `read_file` denies a path, not a tool. Every way to the same file counts as that
file: a link, a hard link, another spelling.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from tui.core.dataclass import dataclass, replace
from tui.core.errors import ToolError
from tui.core.workspace import Workspace
from tui.permissions.rules import READS_FILES, Rule, path_forms

if TYPE_CHECKING:
    from tui.permissions.plain_command import PlainCommand

_READERS = (READS_FILES, "grep_search")


def rules_on_reading(rules: Iterable[Rule]) -> tuple[Rule, ...]:
    """The rules that concern reading files."""
    return tuple(rule for rule in rules if any(map(rule.names, _READERS)))


def is_in(path: Path, folders: Iterable[Path]) -> bool:
    """True if a real path is one of the folders, or inside one."""
    return any(path == folder or folder in path.parents for folder in folders)


def is_opened(path: Path, workspace: Workspace) -> bool:
    """True if a real path may be read although it is in the program's own folders: in commands'
    `/tmp`, in a skill, or a result of which the model was given the path."""
    shown_result = workspace.tool_results in path.parents
    return shown_result or workspace.is_temporary(path) or workspace.opens(path)


@dataclass(frozen=True, slots=True)
class ReadingRules:
    """The rules on reading, with the identities of the files that they name. Creating and querying
    it accesses the file system."""

    deny: tuple[Rule, ...]
    ask: tuple[Rule, ...]
    workspace: Workspace
    home: Path
    private: tuple[Path, ...]
    same: tuple[tuple[tuple[int, int], Rule], ...]

    @classmethod
    def of(
        cls,
        *,
        deny: Iterable[Rule],
        ask: Iterable[Rule],
        workspace: Workspace,
        home: Path,
        private: tuple[Path, ...] = (),
    ) -> ReadingRules:
        denied = rules_on_reading(deny)
        same = [
            (identity, rule)
            for rule in denied
            for place in _places(rule, workspace.root, home) or ()
            if (identity := _identity(place)) is not None
        ]
        return cls(denied, rules_on_reading(ask), workspace, home, private, tuple(same))

    def answer(self, path: Path) -> Literal["allow", "ask", "deny"]:
        """The answer of the rules about reading a real path."""
        own = is_in(path, self.private) and not is_opened(path, self.workspace)
        if own or self.denying(path):
            return "deny"
        return "ask" if self.ask and _meeting(self.ask, self._forms(path)) else "allow"

    def denying(self, path: Path) -> Rule | None:
        """The rule that denies a real path: it names the path or a folder above, or the same
        file."""
        if not self.deny:
            return None
        if rule := _meeting(self.deny, self._forms(path)):
            return rule
        known = dict(self.same)
        return known.get(_identity(path) or (-1, -1)) if known else None

    def denying_command(self, line: Iterable[PlainCommand], folder: Path) -> Rule | None:
        """The rule that denies a path named by a command in plain words."""
        if not self.deny:
            return None
        beyond = replace(self.workspace, widened=True, ceiling=Path("/"))
        for word in (word for one in line for word in one.words[1:]):
            for named in {word, word.rpartition("=")[2], word.partition(":")[2]} - {""}:
                with suppress(ToolError):
                    if rule := self.denying(beyond.resolve(str(folder / named))):
                        return rule
        return None

    def _forms(self, path: Path) -> tuple[str, ...]:
        return path_forms(path, self.workspace, self.home)


def denied_places(
    deny: Iterable[Rule], ask: Iterable[Rule], root: Path, home: Path
) -> tuple[Path, ...] | None:
    """The files and folders that walls have to hide to enforce the rules on reading. None if they
    can't: a rule asks, or has a pattern in the middle."""
    if rules_on_reading(ask):
        return None
    denied: list[Path] = []
    for rule in rules_on_reading(deny):
        places = _places(rule, root, home)
        if places is None:
            return None
        denied += places
    return tuple(dict.fromkeys(denied))


def _meeting(rules: Sequence[Rule], forms: Iterable[str]) -> Rule | None:
    forms = tuple(forms)
    return next((rule for rule in rules if any(map(rule.meets, forms))), None)


def _places(rule: Rule, root: Path, home: Path) -> list[Path] | None:
    """The paths that a rule denies, if that is a path, all of a folder, or everything there that
    begins with a name; None for all others."""
    glob = rule.glob
    if glob is None:
        return None
    ends = next((end for end in ("/**", "/*", "*") if glob.endswith(end)), "")
    named = replace(rule, glob=glob.removesuffix(ends)).literal if ends else rule.literal
    if not named or "**" in named:
        return None
    path = home / named[2:] if named.startswith("~/") else root / named
    if ends != "*" or named.endswith("/"):
        return [path]
    names: list[str] = []
    with suppress(OSError):
        names = os.listdir(path.parent)  # noqa: PTH208 - their names are enough
    return [path.parent / name for name in names if name.startswith(path.name)]


def _identity(path: Path) -> tuple[int, int] | None:
    """The identity of a file; None for a folder, and where there is no file."""
    try:
        status = os.stat(path)  # noqa: PTH116 - called for each file of a search
    except (OSError, ValueError):
        return None
    return None if stat.S_ISDIR(status.st_mode) else (status.st_dev, status.st_ino)
