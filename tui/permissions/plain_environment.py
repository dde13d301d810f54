"""The environment of a command that nobody was asked about: no file of the workspace steers it.

The programs come from folders that the workspace cannot fill, the shell reads no file of its own,
and git runs without hooks, monitors, signatures, downloads and bare repositories that it comes
across. Settings of a repository can still name programs that even `git status` runs: filters, text
converters. A variable cannot switch off all of them, so each setting must be one that is known to
run nothing, and all that git reads must be where the file tools may read.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from pathlib import Path

from tui.core.git.checkout import Checkout, InsideGitError, NoCheckoutError
from tui.core.git.door import GitError, NoGitError
from tui.core.late_pattern import late_pattern
from tui.core.redaction import child_environment
from tui.core.workspace import Workspace, safe_search_path
from tui.permissions.path_risk import real_path

_GIT_SETTINGS: Mapping[str, str] = {
    "core.hooksPath": os.devnull,
    "core.fsmonitor": "false",
    "core.pager": "cat",
    "safe.bareRepository": "explicit",
    "log.showSignature": "false",
    "submodule.recurse": "false",
}
_GIT: Mapping[str, str] = {
    "GIT_ALLOW_PROTOCOL": "",
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_PAGER": "cat",
    "GIT_TERMINAL_PROMPT": "0",
}
_STEERS = late_pattern(
    r"BASH_FUNC_.*|BASH_ENV|ENV|BASHOPTS|SHELLOPTS|CDPATH|POSIXLY_CORRECT|(LD|DYLD)_.*"
    r"|GREP_OPTIONS|RIPGREP_CONFIG_PATH|GIT_EXTERNAL_DIFF|GIT_CONFIG_PARAMETERS"
)
"""Variables by which a shell or a program that only reads may be made to run something else."""


def plain_environment(workspace: Workspace, traceparent: str = "") -> dict[str, str]:
    """The environment of a tool's process, without anything that could steer a plain command."""
    given = child_environment(traceparent=traceparent)
    clean = {name: value for name, value in given.items() if not _STEERS.fullmatch(name)}
    roots = workspace.roots
    clean["PATH"] = safe_search_path(clean.get("PATH", os.defpath), roots)
    count = clean.get("GIT_CONFIG_COUNT", "")
    first = int(count) if re.fullmatch(r"[0-9]{1,4}", count) else 0
    for number, (key, value) in enumerate(_GIT_SETTINGS.items(), start=first):
        clean[f"GIT_CONFIG_KEY_{number}"] = key
        clean[f"GIT_CONFIG_VALUE_{number}"] = value
    clean["GIT_CONFIG_COUNT"] = str(first + len(_GIT_SETTINGS))
    return {**clean, **_GIT}


_MOST_MODULES = 50

_HARMLESS_KEYS = late_pattern(
    r"core\.(repositoryformatversion|filemode|bare|logallrefupdates|ignorecase|precomposeunicode"
    r"|symlinks|autocrlf|eol|safecrlf|quotepath|abbrev|longpaths|fscache|untrackedcache|editor"
    r"|preloadindex|sparsecheckout|sparsecheckoutcone|worktree|hookspath|commentchar|compression"
    r"|protecthfs|protectntfs|sharedrepository|commitgraph|multipackindex)"
    r"|extensions\.(worktreeconfig|objectformat|refstorage)"
    r"|remote\.pushdefault"
    r"|remote\..*\.(url|pushurl|fetch|push|tagopt|prune|prunetags|mirror|skipdefaultupdate"
    r"|skipfetchall|gh-resolved)"
    r"|(branch|submodule)\..*"
    r"|(user|author|committer|commit|tag|push|pull|fetch|rebase|merge|init|gc|pack|checkout|rerere"
    r"|index|feature|maintenance|clone|gui)\.[a-z0-9-]+"
    r"|(color|advice|column|gitflow)\..*"
    r"|status\.(showuntrackedfiles|short|branch|relativepaths|aheadbehind|showstash|renames)"
    r"|diff\.(renames|renamelimit|algorithm|colormoved|mnemonicprefix|noprefix|context)"
    r"|log\.(date|decorate|abbrevcommit|follow)"
    r"|lfs\.(repositoryformatversion|.*\.access)"
)
"""Settings of a repository that name neither a program nor a file whose text git would show."""


def repository_objection(folder: Path, readable: Callable[[Path], bool]) -> str:
    """Explain why git may not read the repository of `folder` without a question; "" if it may.

    Submodules count, too: `git status` runs git in each. A folder without a repository is harmless.
    """
    pending, seen = [folder], 0
    while pending:
        seen += 1
        if seen > _MOST_MODULES:
            return "the repository has too many submodules"
        try:
            why, modules = _judge(pending.pop(), readable)
        except InsideGitError:
            return "the folder isn't an ordinary work tree"
        except (NoCheckoutError, NoGitError):
            continue  # git will refuse likewise when it is run
        except GitError:
            return "git's answers about the folder can't be relied on"
        if why:
            return why
        pending += modules
    return ""


def _judge(folder: Path, readable: Callable[[Path], bool]) -> tuple[str, list[Path]]:
    """Explain why the repository is not harmless, "" if it is; also return the folders of its
    submodules. Raises GitError, also if folder and git folder don't belong together."""
    here = Checkout.of(folder)
    own = here.own_settings()
    if unknown := next((key for key in own if not _HARMLESS_KEYS.fullmatch(key)), ""):
        return f"the repository sets {unknown}, which may run a program or show other files", []
    if not readable(here.top):
        return f"its repository ({here.top}) isn't inside the workspace; --add-dir adds it", []
    objects = real_path(here.common / "objects")
    if objects.parent != here.common or (objects / "info" / "alternates").exists():
        return "the repository borrows objects from another one", []
    modules = [here.top / path for path in here.submodules()]
    return "", [path for path in modules if os.path.lexists(path / ".git")]
