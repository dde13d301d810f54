"""Rules: Markdown files with instructions that hold everywhere, or for the files they name.

They lie in `rules/` of the configuration folder and of `~/.claude`, and in `.claude/rules/` and
`.holdfast/rules/` of a workspace; what a workspace brings along counts once the person trusts it.
`paths` in the front matter lists globs, from the root of the workspace; without it a rule is an
instruction like those of AGENTS.md. Globs of Claude Code's folders are read as that program reads
them: as lines of a `.gitignore`, in any letters, where `sub/**` is any folder of that name.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, Final, cast

from tui.core import front_matter
from tui.core.claude_names import claude_folder
from tui.core.dataclass import dataclass
from tui.core.files import read_small
from tui.core.late_pattern import late_pattern
from tui.core.paths import Folders, shorten
from tui.core.workspace import BOOT_READ_MAX, PRIVATE_DIR
from tui.settings.agent_definitions import agent_files
from tui.settings.path_globs import path_glob

RULE_FOLDERS: Final = (".claude/rules", f"{PRIVATE_DIR}/rules")
"""The folders of rules that a workspace may bring along."""

_PATTERNS = 50
_PATTERN_CHARS = 500
_CLASS = late_pattern(r"\[([\w-]{1,40})\]")
_RANGE = late_pattern(r"\w-\w|\w")
_DEPTH_MAX = 40
"""Folders that a file is in, as far as each is looked at by itself."""
_SEPARATED = late_pattern(r"(?:[^,{]|\{[^{}]*\}|\{)+")
"""Between commas that are in no braces."""


@dataclass(frozen=True, slots=True)
class RuleFile:
    """One file of rules. `paths` are the globs of the files that it holds for, none for all;
    `size` is what the file holds where `text` is not all of it."""

    name: str
    path: Path
    text: str
    paths: tuple[str, ...] = ()
    size: int = 0
    own: bool = False
    """True if it is the person's, and not the workspace's."""
    claudes: bool = False
    """True if its globs are Claude Code's."""

    def holds_for(self, files: Iterable[Path], root: Path) -> bool:
        """True if it names one of these files."""
        names = [path.relative_to(root).as_posix() for path in files if root in path.parents]
        if self.claudes:
            return any(_is_listed(name.lower(), self.paths) for name in names)
        return any(path_glob(glob).matches(name) for glob in self.paths for name in names)


def _is_listed(name: str, globs: Sequence[str]) -> bool:
    """True if lines of a `.gitignore` list a path, or a folder that it is in. Of those that match
    one, the last counts; `!` takes it out again."""
    parts = name.split("/")
    for end in (*range(1, min(len(parts), _DEPTH_MAX)), len(parts)):
        inner, listed = "/".join(parts[:end]), False
        for glob in globs:
            taken_out, pattern = glob.startswith("!"), glob.removeprefix("!").lower()
            pattern = _CLASS.sub(_alternatives, pattern).removesuffix("/**")
            if pattern.endswith("/") and end == len(parts):
                continue  # a folder only
            pattern = pattern.removesuffix("/")
            pattern = pattern if "/" in pattern else f"**/{pattern}"
            if path_glob(pattern).matches(inner):
                listed = not taken_out
        if listed:
            return True
    return False


def _alternatives(found: re.Match[str]) -> str:
    """`[ab]` and `[a-c]` as braces, which globs have."""
    chars = list[str]()
    for part in _RANGE.finditer(found[1]):
        first, last = ord(part[0][0]), ord(part[0][-1])
        chars += [chr(code) for code in range(first, min(last, first + 99) + 1)]
    return f"{{{','.join(chars)}}}" if chars else found[0]


def brought_files(workspace: Path) -> Sequence[Path]:
    """The files of a workspace's rules: each once, and none outside of it. Blocks."""
    files: dict[str, Path] = {}
    real = Path(os.path.realpath(workspace))
    for folder in RULE_FOLDERS:
        for path in agent_files(workspace / folder, workspace):
            if real in Path(where := os.path.realpath(path)).parents:
                files.setdefault(where, path)
    return list(files.values())


def load(
    workspace: Path, folders: Folders, allows: Callable[[str, bytes], bool]
) -> tuple[Sequence[RuleFile], Sequence[str]]:
    """The rules that count, those of the person first, and what is wrong with others. `allows` is
    true for a workspace's file that the person trusts, by its name and content. Blocks."""
    rules: list[RuleFile] = []
    problems: list[str] = []
    brought = brought_files(workspace)
    theirs = {os.path.realpath(path) for path in brought}
    for path in (*agent_files(folders.config / "rules"), *agent_files(claude_folder() / "rules")):
        if os.path.realpath(path) not in theirs:
            claudes = not path.is_relative_to(folders.config)
            _take(path, shorten(path), rules, problems, own=True, claudes=claudes)
    for path in brought:
        claudes = path.is_relative_to(workspace / RULE_FOLDERS[0])
        name = path.relative_to(workspace).as_posix()
        _take(path, name, rules, problems, claudes=claudes, allows=allows)
    return rules, problems


def paths_of(data: bytes) -> tuple[str, ...]:
    """The globs that a file of rules names."""
    listed_value: Any = front_matter.parse(data).fields.get("paths")
    listed = cast("list[Any]", listed_value) if isinstance(listed_value, list) else [listed_value]
    parts = (part.strip() for one in listed if one for part in _SEPARATED.findall(str(one)))
    texts = [part[:_PATTERN_CHARS] for part in parts if part][:_PATTERNS]
    return () if "**" in texts else tuple(texts)


def _take(
    path: Path,
    name: str,
    found: list[RuleFile],
    problems: list[str],
    *,
    own: bool = False,
    claudes: bool,
    allows: Callable[[str, bytes], bool] = lambda _name, _data: True,
) -> None:
    try:
        data, state = read_small(path, limit=BOOT_READ_MAX, whole=False)
    except OSError as error:
        problems.append(f"Couldn't read {name}: {error.strerror or error}.")
        return
    if not allows(name, data):
        problems.append(
            f"{name} was left out: you haven't trusted its current version. See /trust."
        )
        return
    text = front_matter.parse(data).body.replace("\0", "")
    size = state.st_size if state.st_size > len(data) else 0
    if text:
        found.append(RuleFile(name, path, text, paths_of(data), size, own, claudes))
