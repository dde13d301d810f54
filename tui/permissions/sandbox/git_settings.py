"""Judges settings of git that a command has made: which ones may count without a question.

Git runs programs that its settings name, sends commits to addresses and takes them from there, also
when the person uses it later, outside the walls. Only settings that lead to none of it are free.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from tui.core.files import read_small
from tui.core.git.door import answer
from tui.core.late_pattern import late_pattern
from tui.core.text_cleaning import one_line
from tui.core.workspace import safe_search_path

_FREE_WORDS = (
    r"branch\..+\.(remote|merge|rebase|description)|branch\.(autosetupmerge|autosetuprebase|sort)"
    r"|submodule\..+\.(active|branch)"
    r"|remote\..+\.(fetch|tagopt|prune)|user\.(name|email)"
    r"|core\.(autocrlf|eol|filemode|ignorecase|precomposeunicode|quotepath|safecrlf|abbrev)"
    r"|core\.(repositoryformatversion|bare|logallrefupdates|sparsecheckout|sparsecheckoutcone)"
    r"|index\.sparse|maintenance\.(auto|strategy)"
    r"|commit\.(verbose|cleanup)|pull\.(rebase|ff)|fetch\.(prune|parallel)"
    r"|merge\.(conflictstyle|ff|renames)|init\.defaultbranch"
    r"|rebase\.(autostash|autosquash|updaterefs)|rerere\.(enabled|autoupdate)|(color|advice)\..+"
    r"|diff\.(renames|algorithm|colormoved|mnemonicprefix)|log\.(date|decorate|follow)|tag\.sort"
)
_FREE = late_pattern(_FREE_WORDS)
"""Keys with which git runs nothing and reaches nobody, with the values that `_VALUES` allows."""
_VALUES: Mapping[str, re.Pattern[str]] = {
    "merge": late_pattern(r"refs/heads/[^\s~^:?*\[\\]+|true|false|only"),
    "rebase": late_pattern(r"true|false|merges|interactive|preserve"),
    "fetch": late_pattern(r"\+?refs/heads/[^:\s]+:refs/remotes/[^:\s]+"),
    "repositoryformatversion": late_pattern(r"[01]"),
    "bare": late_pattern(r"false"),
    "color.pager": late_pattern(r"true|false"),
}
"""The values of some of them, by the last word of the key or by all of it."""
_REMOVABLE = late_pattern(rf"{_FREE_WORDS}|(remote|submodule)\..+\.url|alias\..+")
"""Keys whose end has no other effect than that something is not known any more."""
_WITH_SECTION = late_pattern(
    r"((remote|submodule|branch)\..+)\.(pushurl|pushremote|update)", re.DOTALL
)
"""Keys that are so too where nothing else of their section stays: without them something else
would go to another place, or happen again."""
_ADDRESS = late_pattern(r"(https?|ssh|git)://[^-\s]\S*|[\w.-]+@[\w.-]+:(?!:)\S+")
"""Addresses on another machine: a folder as a remote has hooks of its own."""
_MOST, _LONGEST = 12, 300
"""Maximum numbers of settings that are shown, and of their characters."""
_SHOWN = late_pattern(r"[^\x00-\x1f\x7f]*")
_OF_NEW = late_pattern(
    r"core\.(repositoryformatversion|bare|logallrefupdates|worktree|sharedrepository|symlinks)"
    r"|core\.(commitgraph|multipackindex)|extensions\.(objectformat|worktreeconfig|partialclone|preciousobjects"
    r"|refstorage)|remote\..+\.(promisor|partialclonefilter|push|mirror)|(gc|pack)\..+|push\..+"
    r"|branch\..+\.pushremote|(commit|tag)\.gpgsign|user\.signingkey|submodule\.recurse"
)
"""Settings that git itself writes for a new repository, and others that run nothing in it."""

Setting = tuple[str, str]
"""A key as git prints it, and its value."""


def needing_consent(now: Iterable[Setting], then: Iterable[Setting]) -> list[Setting]:
    """The settings, of those that were added or removed, that need a yes of the person. A removed
    one has an empty value."""
    now, then = list(now), list(then)
    added, removed = Counter(now) - Counter(then), Counter(then) - Counter(now)
    known = {name for key, _ in then if (name := _remote_of(key))}
    before = dict(then)
    asked = [one for one in added if not _is_free(*one, known, before)]
    keys, new = {key for key, _ in now}, {key for key, _ in added}
    gone = {key for key, _ in removed if key not in new and not _may_go(key, keys)}
    return [*asked, *((key, "") for key in sorted(gone))]


def _may_go(key: str, keys: Iterable[str]) -> bool:
    """True if the end of a setting needs no yes; `keys` are those that stay. Of one that has other
    values still, these count now."""
    if key in keys:
        return bool(_FREE.fullmatch(key))
    section = _WITH_SECTION.fullmatch(key)
    alone = section is not None and not any(one.startswith(f"{section[1]}.") for one in keys)
    return alone or bool(_REMOVABLE.fullmatch(key))


def _is_free(key: str, value: str, remotes: Iterable[str], before: Mapping[str, str]) -> bool:
    last = key.rpartition(".")[2]
    if not (_FREE.fullmatch(key) and _SHOWN.fullmatch(key)):
        return False
    if key.startswith("branch.") and last == "description":
        return True
    allowed = _VALUES.get(key) or _VALUES.get(last)
    if key.startswith("branch.") and last == "remote":
        # Another remote than before would get what the person pushes.
        return value in {".", *remotes} and before.get(key, value) == value
    if key.startswith("pull."):
        allowed = None
    return bool(_SHOWN.fullmatch(value)) and (allowed is None or bool(allowed.fullmatch(value)))


def is_address(key: str, value: str) -> bool:
    """True if a setting is the address of a remote on another machine."""
    return bool(_remote_of(key)) and bool(_ADDRESS.fullmatch(value))


def _remote_of(key: str) -> str:
    """The name of the remote whose address a key has; "" if it is another key."""
    named = re.fullmatch(r"remote\.(.+)\.url", key, re.DOTALL)
    return named[1] if named else ""


def programs_of_new(settings: Iterable[Setting]) -> list[str]:
    """The settings of a new repository with which git may run something when the repository around
    it is examined. Its remotes are not used then."""
    return sorted(
        name
        for name, _ in settings
        if not (_OF_NEW.fullmatch(name) or _FREE.fullmatch(name) or name.endswith("url"))
    )


def are_free(path: Path, root: Path) -> bool:
    """True if all settings of a file need no yes. Blocks."""
    try:
        settings = settings_in(read_small(path, follow=False)[0], root)
    except OSError:
        return False
    return settings is not None and not needing_consent(settings, ())


def settings_in(content: bytes, root: Path) -> list[Setting] | None:
    """Each setting with its value as git reads it; None if it cannot. Blocks."""
    words = ("--file", "-", "--no-includes", "--list", "-z")
    output = run_config(root, *words, stdin=content)
    return None if output is None else list(_settings(output))


def run_config(root: Path, *words: str, stdin: bytes = b"") -> str | None:
    """Run `git config` on a file, with a git that is not from the workspace `root`; None if it
    fails. Blocks."""
    path = safe_search_path(os.environ.get("PATH", os.defpath), (root,))
    return answer(Path("/"), "config", *words, env={**os.environ, "PATH": path}, stdin=stdin)


def _settings(listed: str) -> Iterator[Setting]:
    for entry in listed.split("\0")[:-1]:
        name, assigned, value = entry.partition("\n")
        yield name, value if assigned else "true"


def are_shown(settings: Iterable[Setting]) -> bool:
    """True if `in_words` shows all of each setting: nobody can agree to more than they see."""
    settings = list(settings)
    longest = max((len(line) for line in map(_line, settings)), default=0)
    return len(settings) <= _MOST and longest <= _LONGEST


def _line(setting: Setting) -> str:
    key, value = setting
    return one_line(f"{key} = {value}" if value else key)


def in_words(settings: Iterable[Setting]) -> str:
    """Settings for a person, in one line."""
    lines = [_line(setting) for setting in settings]
    shown = [line if len(line) <= _LONGEST else f"{line[:_LONGEST]}…" for line in lines[:_MOST]]
    return ", ".join(shown) + (f" and {len(lines) - _MOST} more" if lines[_MOST:] else "")
