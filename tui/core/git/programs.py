"""The settings by which git runs programs, and what switches them off.

What the person's own settings name (`~/.gitconfig`, the system's) is theirs: a filter of theirs
runs, as git-lfs does. What a repository's settings name never runs. Its other settings count: git
would read its files wrongly without them. From the list of git 2.39.5 (`git help -c`), hooks by
settings from git 2.54, and git-lfs 3.6, which reads more programs from git's settings.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from typing import Final

from tui.core.late_pattern import late_pattern

_OWN: Final = frozenset({"local", "worktree"})
"""The scopes of a repository's settings, with what they include."""
_RUNS: Final = late_pattern(
    r"(?:.*\.)?(?:clean|smudge|process|driver|textconv|external|helper|askpass|fsmonitor|hookspath"
    r"|\w*command|\w*cmd|\w*program|\w*editor|\w*pager|\w*proxy|\w*hook|difffilter|uploadpack"
    r"|receivepack|vcs|browser|viewer|standalonetransferagent)"
    r"|(?:lfs\.customtransfer|pager)\..*",
    re.DOTALL,
)
"""Keys that name a program, by their last word: new ones of git tend to end like the old ones."""
_FILTER: Final = late_pattern(r"filter\.(.*)\.(?:clean|smudge|process|required)", re.DOTALL)
_MERGE_DRIVER: Final = late_pattern(r"merge\..*\.driver", re.DOTALL)
_HOOK: Final = late_pattern(r"(hook\..*)\.\w+", re.DOTALL)
_ALWAYS: Final = {
    "commit.gpgsign": "false",
    "core.fsmonitor": "false",
    "core.fsyncmethod": "batch",  # one sync for many new files
    "core.hookspath": os.devnull,
    "log.showsignature": "false",
    "merge.verifysignatures": "false",
    "safe.barerepository": "explicit",
    "submodule.recurse": "false",
    "tag.gpgsign": "false",
    "user.useconfigonly": "false",
}


def own_keys(listed: str) -> list[str]:
    """The keys that a repository's settings set, in what `git config --list --show-scope
    --name-only -z` prints."""
    return [key for scope, key in _scoped(listed) if scope in _OWN]


def own_filters(keys: Iterable[str]) -> tuple[str, ...]:
    """The names of the filters that some of the keys define."""
    matches = (_FILTER.fullmatch(key) for key in keys)
    return tuple(dict.fromkeys(one[1] for one in matches if one))


def merges(keys: Iterable[str]) -> bool:
    """True if one of the keys names a program that merges files."""
    return any(map(_MERGE_DRIVER.fullmatch, keys))


def switched_off(listed: str) -> dict[str, str]:
    """Variables that let git, and the git it starts, run none of a repository's programs, and
    nobody's hooks."""
    settings = {key: _neutral(key) for key in own_keys(listed) if _names_program(key)}
    for _, key in _scoped(listed):
        if hook := _HOOK.fullmatch(key):
            settings |= {f"{hook[1]}.event": "", f"{hook[1]}.enabled": "false"}
    settings |= _ALWAYS
    variables = {"GIT_CONFIG_COUNT": str(len(settings))}
    for number, (key, value) in enumerate(settings.items()):
        variables |= {f"GIT_CONFIG_KEY_{number}": key, f"GIT_CONFIG_VALUE_{number}": value}
    return variables


def _names_program(key: str) -> bool:
    return bool(_RUNS.fullmatch(key) or _FILTER.fullmatch(key))


def _neutral(key: str) -> str:
    """Return the harmless value of a key. An empty merge driver would count as one that kept our
    side."""
    if _MERGE_DRIVER.fullmatch(key) or key.endswith(".required"):
        return "false"
    return ""


def _scoped(listed: str) -> Iterable[tuple[str, str]]:
    words = listed.split("\0")
    return zip(words[::2], words[1::2], strict=False)
