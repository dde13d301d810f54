"""A repository's settings, opened for one command and checked afterwards.

Git runs programs that its settings name, also when the person uses it later, outside the walls. So
only settings that name none stay; anything else is restored.
"""

from __future__ import annotations

import difflib
import os
import re
import secrets
import shlex
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from tui.core.files import atomic_write, read_small
from tui.core.git.door import answer
from tui.core.workspace import safe_search_path

_MOST_LINES = 40
_RUNS_NOTHING = re.compile(
    r"remote\..+\.(url|pushurl|fetch|push|tagopt|prune|mirror)"
    r"|branch\..+\.(remote|merge|pushremote|rebase|description)|branch\.(autosetup\w+|sort)"
    r"|submodule\..+\.(url|active|branch)|submodule\.(active|recurse)|user\.(name|email|signingkey)"
    r"|core\.(autocrlf|eol|filemode|ignorecase|precomposeunicode|quotepath|safecrlf|abbrev|symlinks)"
    r"|(commit|tag|push)\.gpgsign|commit\.(verbose|cleanup)|pull\.(rebase|ff)"
    r"|fetch\.(prune|parallel)|push\.(default|autosetupremote|followtags)"
    r"|merge\.(conflictstyle|ff|renames)|init\.defaultbranch"
    r"|rebase\.(autostash|autosquash|updaterefs)|rerere\.(enabled|autoupdate)|(color|advice)\..+"
    r"|diff\.(renames|algorithm|colormoved|mnemonicprefix)|log\.(date|decorate|follow)|tag\.sort"
)


_OF_NEW = re.compile(
    r"core\.(repositoryformatversion|bare|logallrefupdates|worktree|sharedrepository)"
    r"|core\.(sparsecheckout|sparsecheckoutcone|commitgraph|multipackindex)"
    r"|extensions\.(objectformat|worktreeconfig|partialclone|preciousobjects|refstorage)"
    r"|remote\..+\.(promisor|partialclonefilter)|(gc|pack)\..+"
)
"""Settings that git itself writes for a new repository."""
_REMOTE = re.compile(r"(https?|ssh|git)://[^-]|[\w.-]+@[\w.-]+:(?!:)")
"""Addresses on another machine."""


@dataclass(frozen=True, slots=True)
class GitSettings:
    """The file with a repository's settings before a command; `before` is None if it did not
    exist."""

    path: Path
    before: bytes | None
    state: os.stat_result | None

    @classmethod
    def of(cls, folder: Path) -> GitSettings:
        """Read those of a git folder, the common one of all its worktrees."""
        path = folder / "config"
        before = _content(path)
        return cls(path, before, None if before is None else path.stat())

    def settle(self, folder: Path) -> list[str]:
        """Restore the file if git might run its new settings; return what was changed, in lines.
        The replaced file is kept in `folder`, since the person may have written it meanwhile.
        Blocks."""
        after = _content(self.path)
        if after == self.before:
            return []
        root = self.path.parent.parent
        now, then = _values(after, root), _values(self.before, root) or set()
        bad = {key for key, value in (now or set()) - then if not _runs_nothing(key, value)}
        if now is None or bad:
            replaced_file = self._put_back(folder)
            what = f"git may run {', '.join(sorted(bad))}" if bad else "git can't read it"
            undo = (
                f". If you wrote it: {shlex.join(['cp', str(replaced_file), str(self.path)])}"
                if replaced_file
                else ""
            )
            return [f"put {self.path} back: {what}{undo}"]
        diff = difflib.unified_diff(_lines(self.before), _lines(after), lineterm="", n=0)
        changed = [line for line in diff if line[:2] not in {"--", "++", "@@"}]
        more = len(changed) - _MOST_LINES
        lines = [f"{self.path} was changed:", *changed[:_MOST_LINES]]
        return [*lines, f"… and {more} more lines"] if more > 0 else lines

    def _put_back(self, folder: Path) -> Path | None:
        """Restore the earlier content; return where the replaced file is now, None if there was
        none."""
        moved = folder / f"{self.path.name}-{secrets.token_hex(4)}"
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        try:
            self.path.rename(moved)
        except FileNotFoundError:
            moved = None
        except OSError:  # on another file system
            moved = self.path.with_name(moved.name)
            self.path.rename(moved)
        if self.before is not None:
            atomic_write(self.path, self.before, like=self.state, mode=0o644, check=lambda: None)
        return moved


def _runs_nothing(key: str, value: str) -> bool:
    """True if git runs nothing because of a setting. A folder as a remote has hooks of its own."""
    address = key.endswith("url")
    return bool(_RUNS_NOTHING.fullmatch(key)) and (not address or bool(_REMOTE.match(value)))


def programs_of_new(settings: Iterable[tuple[str, str]]) -> list[str]:
    """The settings of a new repository with which git may run something when the repository around
    it is examined. Its remotes are not used then."""
    return sorted(
        name
        for name, value in settings
        if not (_OF_NEW.fullmatch(name) or _runs_nothing(name, value) or name.endswith("url"))
    )


def _content(path: Path) -> bytes | None:
    """Read a small file; None for anything else, since a link could lead git anywhere."""
    try:
        return read_small(path, follow=False)[0]
    except OSError:
        return None


def _values(content: bytes | None, root: Path) -> set[tuple[str, str]] | None:
    """Each setting with its value as git reads it; None if it cannot."""
    if content is None:
        return None
    path = safe_search_path(os.environ.get("PATH", os.defpath), (root,))
    words = ("config", "--file", "-", "--no-includes", "--list", "-z")
    output = answer(Path("/"), *words, env={**os.environ, "PATH": path}, stdin=content)
    if output is None:
        return None
    fields = output.split("\0")[:-1]
    return {(name, value) for name, _, value in (field.partition("\n") for field in fields)}


def _lines(content: bytes | None) -> list[str]:
    return (content or b"").decode("utf-8", "replace").splitlines()
