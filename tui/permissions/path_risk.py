"""The meaning of a path in a command: outside, protected, a device, the program's own secrets."""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping
from fnmatch import fnmatchcase
from functools import cached_property
from pathlib import Path

from tui.core.dataclass import dataclass, field
from tui.core.late_pattern import late_pattern
from tui.core.workspace import Workspace
from tui.permissions.parsed_command import UNKNOWN, ShellWord
from tui.permissions.risk_tiers import names

_SYSTEM: Mapping[Path, str] = {
    Path("/", name): f"/{name}"
    for name in (
        "",
        *names(
            "bin boot dev etc home lib lib64 opt proc root sbin sys usr var "
            "Applications Library System Users Volumes"
        ),
    )
}
"""The root, and the folders below it whose loss is the loss of the system, with their names."""

_LONGEST_PATH = 4096
"""Bytes. The kernel opens no longer path, so a longer word does not name a known file."""
_DEEPEST_PATH = 50
"""Folders. Following the links of each takes time; a deeper path counts as not known."""

_HARMLESS_DEVICES = late_pattern(
    r"/dev/(null|zero|full|u?random|std(in|out|err)|tty|ptmx|fd/\d+|shm/.*|pts/\d+)"
)
_NETWORK = late_pattern(r"/dev/(tcp|udp)/")
_ENVIRONMENT = late_pattern(r"/proc/(?!self/|thread-self/)[^/]*/(task/[^/]*/)?environ")
_EVERYTHING = {"*", "**", ".*", "?*", "*.*", ".??*", ".[!.]*", ".[^.]*", "[!.]*", "[^.]*"}
"""Patterns that match (nearly) everything in a folder."""


class RealPaths:
    """Follows the links of paths, and of each folder that they share only once."""

    def __init__(self) -> None:
        self._followed = {"/": "/"}

    def of(self, path: Path) -> Path:
        """The path with links followed, as far as it exists."""
        if not path.is_absolute() or ".." in path.parts:
            return real_path(path)
        text = str(path)
        try:
            real = self._follow(text)
        except (OSError, ValueError):  # a link leads nowhere, or round in a circle
            return real_path(path)
        return path if real == text else Path(real)

    def _follow(self, path: str) -> str:
        real = self._followed.get(path)
        if real is None:
            folder, _, name = path.rpartition("/")
            real = f"{self._follow(folder or '/').rstrip('/')}/{name}"
            if _is_link(real):
                real = os.path.realpath(real, strict=True)
            self._followed[path] = real
        return real


def _is_link(path: str) -> bool:
    try:
        return stat.S_ISLNK(os.lstat(path).st_mode)
    except OSError:
        return False


@dataclass(frozen=True)
class Places:
    """The folders by which the commands of one line are judged. All are real paths.

    `config` is the program's own config folder, None if there is none. Each word is resolved only
    once: make a new object for each line, since links may change.
    """

    workspace: Workspace
    home: Path
    config: Path | None = None
    real: RealPaths = field(default_factory=RealPaths, repr=False)
    _resolved: dict[tuple[str, Path | None], tuple[Path, Path] | None] = field(
        default_factory=dict[tuple[str, Path | None], tuple[Path, Path] | None], repr=False
    )

    @property
    def root(self) -> Path:
        return self.workspace.root

    def path(self, text: str, cwd: Path | None) -> Path | None:
        """The absolute path that a word names, links not followed; None if it is not determined."""
        resolved = self._resolve(text, cwd)
        return resolved[0] if resolved else None

    def _resolve(self, text: str, cwd: Path | None) -> tuple[Path, Path] | None:
        """The path that a word names: as it is, and with links followed."""
        key = text, cwd
        if key not in self._resolved:
            self._resolved[key] = None
            joined = os.path.normpath(os.path.join(cwd or "/", text))  # noqa: PTH118 - `..` stays
            open_ = UNKNOWN in text or not text or (cwd is None and text[:1] != "/")
            deep = len(joined) > _LONGEST_PATH or joined.count("/") > _DEEPEST_PATH
            if not open_ and not deep:
                path = self.workspace.where(Path("/" + joined.lstrip("/")))
                self._resolved[key] = path, self.real.of(path)
        return self._resolved[key]

    def outside(self, word: ShellWord, cwd: Path | None) -> bool:
        """True if a word names, or may name, a path that the file tools could not reach."""
        resolved = self._resolve(word.text, cwd)
        if resolved is None:
            return True
        path, real = resolved
        return not _HARMLESS_DEVICES.fullmatch(str(path)) and not self.workspace.contains(real)

    def vital(self, word: ShellWord, cwd: Path | None) -> str:
        """Name what would be lost by deleting everything at `word`; "" if it is only some folder.

        The root, the system's folders, the home, the workspace, their parents, and the workspace's
        `.git` count.
        """
        return self.system(word, cwd) or self._lost(word, cwd, self._own)

    def system(self, word: ShellWord, cwd: Path | None) -> str:
        """The system's folder that would be lost by deleting everything at `word`; "" if none."""
        return self._lost(word, cwd, _SYSTEM)

    @cached_property
    def _own(self) -> dict[Path, str]:
        """The person's own folders that must not be lost; the first name of each counts."""
        git = self.root / ".git"
        named = (
            (self.root, "the workspace"),
            (self.home, "the home folder"),
            *((path, "a folder that holds the workspace") for path in self.root.parents),
            *((path, "a folder that holds the home folder") for path in self.home.parents),
            *((path, "the workspace's .git") for path in (git, git / "objects", git / "refs")),
        )
        return dict(reversed(named))

    def _lost(self, word: ShellWord, cwd: Path | None, vital: Mapping[Path, str]) -> str:
        """The first of `vital` that deleting `word` would delete. Unknown text may be empty."""
        text = word.text.replace(UNKNOWN, "")
        if not text or (UNKNOWN in word.text and not text.strip("/*.") and "/" not in text):
            return ""
        resolved = self._resolve(text, cwd)
        if resolved is None:
            return ""
        taken = {*resolved}
        # A pattern that matches everything deletes the folder's whole content, so the folder
        # counts.
        if word.glob:
            path = resolved[0]
            while path.name in _EVERYTHING:
                path = path.parent
            depth = str(path).count("/")
            same_depth = (v for v in vital if str(v).count("/") == depth)
            taken = {path, self.real.of(path)}
            taken |= {v for v in same_depth if fnmatchcase(str(v), str(path))}
        return next((name for path, name in vital.items() if path in taken), "")

    def device(self, word: ShellWord, cwd: Path | None) -> bool:
        """True if a word names a device that is more than a stream."""
        resolved = self._resolve(word.text, cwd) or ()
        if any(
            _HARMLESS_DEVICES.fullmatch(str(one)) or _NETWORK.match(str(one))
            for one in resolved[:1]
        ):
            return False
        return any(one.parts[:2] == ("/", "dev") and len(one.parts) > 2 for one in resolved)

    def network(self, word: ShellWord) -> bool:
        """True if a redirection to `word` is a network connection of bash."""
        return _NETWORK.match(word.text) is not None

    @cached_property
    def _key(self) -> str:
        """The beginning of the path of the program's stored key."""
        return f"{self.config}/credentials"

    def secret(self, word: ShellWord, cwd: Path | None) -> bool:
        """True if a word reaches the program's stored key, or the environment it runs in."""
        if _ENVIRONMENT.search(word.text):
            return True
        if self.config is None:
            return False
        resolved = self._resolve(word.text, cwd)
        if resolved is None:
            return f"{self.config.name}/credentials" in word.text
        return any(
            (one.startswith(self._key) and "/" not in one[len(self._key) :])
            or (word.glob and fnmatchcase(f"{self._key}.json", one))
            for one in map(str, resolved)
        )

    def may_be_secret(self, word: ShellWord, cwd: Path | None) -> bool:
        """True if the known beginning of a word leads to the program's key."""
        start, unknown, _ = word.text.partition(UNKNOWN)
        if self.config is None or not unknown or not start:
            return False
        return str(self.config).startswith(os.path.normpath((cwd or Path("/")) / start))


def real_path(path: Path) -> Path:
    """The path with links followed, as far as it exists."""
    try:
        return Path(os.path.realpath(path))
    except (OSError, ValueError):
        return path
