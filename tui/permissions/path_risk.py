"""What a path in a command means: outside, protected, a device, the program's own secrets."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

from tui.permissions.risk_tiers import names
from tui.permissions.shell_words import UNKNOWN, Word

_SYSTEM = tuple(
    Path("/", name)
    for name in names(
        "bin boot dev etc home lib lib64 opt proc root sbin sys usr var "
        "Applications Library System Users Volumes"
    )
)
"""Folders below `/` whose loss is the loss of the system."""

_HARMLESS_DEVICES = re.compile(
    r"/dev/(null|zero|full|u?random|std(in|out|err)|tty|ptmx|fd/\d+|shm/.*|pts/\d+)"
)
_NETWORK = re.compile(r"/dev/(tcp|udp)/")
_EVERYTHING = {"*", "**", ".*", "?*", "*.*", ".??*", ".[!.]*", ".[^.]*", "[!.]*", "[^.]*"}
"""Patterns that take (nearly) all of a folder."""


@dataclass(frozen=True, slots=True)
class Places:
    """The folders that commands are judged by. All are real paths.

    `allowed` takes a real path; `config` is the program's own config folder, None if there is
    none.
    """

    workspace: Path
    home: Path
    allowed: Callable[[Path], bool]
    config: Path | None = None

    def path(self, text: str, cwd: Path | None) -> Path | None:
        """The absolute path that a word names, links not followed; None where it is open."""
        if UNKNOWN in text or not text or (cwd is None and not text.startswith("/")):
            return None
        joined = os.path.normpath(os.path.join(cwd or "/", text))  # noqa: PTH118 - `..` stays text
        return Path("/" + joined.lstrip("/"))

    def outside(self, word: Word, cwd: Path | None) -> bool:
        """Whether a word names, or may name, a path that the file tools could not reach."""
        path = self.path(word.text, cwd)
        if path is None:
            return True
        if _HARMLESS_DEVICES.fullmatch(str(path)):
            return False
        return not self.allowed(real(path))

    def vital(self, word: Word, cwd: Path | None) -> str:
        """What would be lost with everything at `word`: "" if it is only some folder.

        The root, the system's folders, the home, the workspace, what holds them, and the
        workspace's `.git`.
        """
        return self.system(word, cwd) or self._own(word, cwd)

    def system(self, word: Word, cwd: Path | None) -> str:
        vital = (Path("/"), *_SYSTEM)
        return next((str(v) for v in vital if self._takes(word, cwd, v)), "")

    def _own(self, word: Word, cwd: Path | None) -> str:
        git = self.workspace / ".git"
        named = (
            ("the workspace", self.workspace),
            ("the home folder", self.home),
            *((f"a folder that holds the {n}", p) for n, p in self._holders()),
            *(("the workspace's .git", p) for p in (git, git / "objects", git / "refs")),
        )
        return next((name for name, path in named if self._takes(word, cwd, path)), "")

    def _holders(self) -> list[tuple[str, Path]]:
        return [("workspace", p) for p in self.workspace.parents] + [
            ("home folder", p) for p in self.home.parents
        ]

    def _takes(self, word: Word, cwd: Path | None, vital: Path) -> bool:
        """Whether deleting `word` deletes `vital`. What is not known may be empty."""
        text = word.text.replace(UNKNOWN, "")
        if not text or (UNKNOWN in word.text and not text.strip("/*.") and "/" not in text):
            return False
        path = self.path(text, cwd)
        if path is None:
            return False
        if word.glob:
            while path.name in _EVERYTHING:
                path = path.parent
            if fnmatchcase(str(vital), str(path)) and str(path).count("/") == str(vital).count("/"):
                return True
        return vital in {path, real(path)}

    def device(self, word: Word, cwd: Path | None) -> bool:
        """Whether a word names a device that is more than a stream."""
        path = self.path(word.text, cwd)
        if path is None or _HARMLESS_DEVICES.fullmatch(str(path)) or _NETWORK.match(str(path)):
            return False
        return any(p.parts[:2] == ("/", "dev") and len(p.parts) > 2 for p in (path, real(path)))

    def network(self, word: Word) -> bool:
        """Whether a redirection to `word` is a network connection of bash."""
        return _NETWORK.match(word.text) is not None

    def secret(self, word: Word, cwd: Path | None) -> bool:
        """Whether a word reaches the program's stored key, or the environment it runs in."""
        text = word.text
        if re.search(r"/proc/(?!self/|thread-self/)[^/]*/(task/[^/]*/)?environ", text):
            return True
        if self.config is None:
            return False
        path = self.path(text, cwd)
        if path is None:
            return f"{self.config.name}/credentials" in text
        for one in (path, real(path)):
            if one.parent == self.config and one.name.startswith("credentials"):
                return True
            if word.glob and fnmatchcase(str(self.config / "credentials.json"), str(one)):
                return True
        return False


def real(path: Path) -> Path:
    """The path with links followed, as far as it exists."""
    try:
        return Path(os.path.realpath(path))
    except (OSError, ValueError):
        return path
