"""Git as a child process: led elsewhere by no variable, and running no program of a folder. Blocks.

In place of the person: no hook runs, nothing is fetched, signed, edited or asked for.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterable, Mapping
from contextlib import suppress
from functools import cache
from pathlib import Path
from time import sleep
from typing import Final

from tui.core.errors import HoldfastError, os_error_as
from tui.core.git.programs import own_keys, switched_off
from tui.core.late_pattern import late_pattern
from tui.core.paths import shorten
from tui.core.redaction import child_environment
from tui.core.workspace import safe_search_path

_ANSWER_S: Final = 60.0
_LOOK_S: Final = 5.0
_WORK_S: Final = 1800.0
"""For commands that read or write many files; a pipe in the place of a file has no end."""
_LOCK_TRIES: Final = 20
_LOCK_WAIT_S: Final = 0.25
_LOCK: Final = late_pattern(r"Unable to create '([^'\n]+\.lock)': File exists\.")
_PLACES: Final = late_pattern(
    r"GIT_(?!AUTHOR_|COMMITTER_|CONFIG_(GLOBAL|SYSTEM|NOSYSTEM)$|EXEC_PATH$)"
)
"""The variables that would lead git elsewhere than to the folder it is called in."""
_ALONE: Final = {
    "GIT_ALLOW_PROTOCOL": "none",
    "GIT_EDITOR": ":",
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_PAGER": "cat",
    "GIT_SEQUENCE_EDITOR": ":",
    "GIT_TERMINAL_PROMPT": "0",
    "LC_ALL": "C",
}
"""Variables that keep git alone. Missing parts of a partial clone aren't fetched: its settings may
name a program for that."""
_LOOKING: Final = (
    "-c", "safe.bareRepository=explicit", "-c", "core.fsmonitor=false", "-c", "core.hooksPath=",
)  # fmt: skip
ONLY_LOOK: Final = frozenset(
    {
        "check-attr", "check-ignore", "ls-tree", "merge-base", "rev-list", "rev-parse",
        "symbolic-ref", "var",
    }
)  # fmt: skip
"""Commands that only look, and run nothing but what is off without a look at the settings."""
_PLUMBING: Final = frozenset(
    {
        "cat-file", "commit-tree", "fast-import", "for-each-ref", "pack-objects", "read-tree",
        "unpack-objects", "update-ref", "write-tree",
    }
)  # fmt: skip
"""Commands that write, too, and run nothing more, save by one of these options."""
_RUN_MORE: Final = frozenset({"-S", "-u", "--filters", "--textconv"})
_HOOKED: Final = frozenset({"fast-import", "read-tree", "update-ref", "write-tree"})
"""The ones that run hooks, which settings name from this version of git on."""
_HOOKS_NAMED: Final = 2, 54
_VERSION: Final = late_pattern(r"git version ([0-9]+)\.([0-9]+)")


class GitError(HoldfastError):
    """Git refused, or is missing."""


class LockedError(GitError):
    """Another git is at work in the repository, or was killed there: it has the lock `file`."""

    def __init__(self, message: str, file: str) -> None:
        super().__init__(message)
        self.file = file


class NoGitError(GitError):
    """There is no git on this machine."""


def run_program(
    *command: str,
    cwd: Path,
    env: Mapping[str, str],
    stdin: bytes = b"",
    patience_s: float | None = None,
) -> subprocess.CompletedProcess[bytes]:
    """Run a program that no file of the folder can replace, whatever it returns. Raises OSError,
    and TimeoutExpired once it was killed for taking longer than `patience_s`."""
    path = safe_search_path(env.get("PATH", os.defpath), (cwd,))
    return subprocess.run(
        command, cwd=cwd, env={**env, "PATH": path}, input=stdin, capture_output=True, check=False,
        timeout=patience_s,
    )  # fmt: skip


def refusal(done: subprocess.CompletedProcess[bytes]) -> str:
    """Return the error output of a program that failed."""
    return done.stderr.decode("utf-8", "replace").strip() or f"exit {done.returncode}"


def git(where: Path, *args: str, stdin: str = "", env: Mapping[str, str] | None = None) -> str:
    """Run git and return its output. File names keep odd bytes. Raises GitError with git's own
    words.

    Git finds the repository of `where` by itself: what writes is asked of a `Checkout`. For a
    command that may run a program, its settings are listed first, to switch off those they name.
    Another git at work in the repository is waited for.
    """
    plumbing = args[0] in _PLUMBING and _RUN_MORE.isdisjoint(args)
    if plumbing:
        _check_age()
        plumbing = args[0] not in _HOOKED or git_version() < _HOOKS_NAMED
    off = switched_off("" if plumbing or args[0] in ONLY_LOOK else _listed_settings(where, env))
    return _run(where, args, {**_alone(env), **off}, stdin)


def answer(
    where: Path,
    *args: str,
    env: Mapping[str, str],
    stdin: bytes = b"",
    patience_s: float = _LOOK_S,
) -> str | None:
    """Return the output of a git command that only looks, in exactly the given environment; None
    where git refuses, is missing or takes too long."""
    alone = {**env, "GIT_OPTIONAL_LOCKS": "0"}
    try:
        done = run_program(
            "git", *_LOOKING, *args, cwd=where, env=alone, stdin=stdin, patience_s=patience_s
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return None if done.returncode else os.fsdecode(done.stdout)


def settings_of(where: Path, env: Mapping[str, str] | None = None) -> list[str]:
    """The keys that the repository of a folder sets in settings of its own. Raises GitError."""
    return own_keys(_listed_settings(where, env))


def listed(paths: Iterable[str]) -> str:
    """Paths as git takes them with -z."""
    return "".join(f"{path}\0" for path in paths)


@cache
def _check_age() -> None:
    """Refuse a git that would not take what switches hooks off. Once in a process."""
    _listed_settings(Path("/"), None)


@cache
def git_version() -> tuple[int, int]:
    """The beginning of git's version; one that can't be read is a new one. Once in a process;
    raises GitError."""
    version = _VERSION.match(_run(Path("/"), ("version",), _alone(None)))
    return (int(version[1]), int(version[2])) if version else (999, 0)


def _listed_settings(where: Path, env: Mapping[str, str] | None) -> str:
    words = ("config", "--list", "--includes", "--show-scope", "--name-only", "-z")
    output = _run(where, words, {**_alone(env), **switched_off("")})
    if "command\0safe.barerepository\0" not in output:
        raise GitError("This git is too old for Holdfast.", hint="Install git 2.31 or later.")
    return output


def _alone(env: Mapping[str, str] | None) -> dict[str, str]:
    """The environment of every git."""
    clean = {k: value for k, value in child_environment().items() if not _PLACES.match(k)}
    return {**clean, **_ALONE, **(env or {})}


def _run(where: Path, args: tuple[str, ...], env: Mapping[str, str], stdin: str = "") -> str:
    if not where.is_dir():
        raise GitError(f"{shorten(where)} is gone.", hint="It was removed or moved.")
    line, file = "", ""
    for _ in range(_LOCK_TRIES):
        done = _done(where, args, env, os.fsencode(stdin))
        if not done.returncode:
            return os.fsdecode(done.stdout)
        message = refusal(done)
        if (lock := _LOCK.search(message)) is None:
            raise GitError(f"git {args[0]} failed: {_reason(message)}")
        line, file = lock[0], lock[1]
        sleep(_LOCK_WAIT_S)
    raise LockedError(f"git {args[0]} failed: {line}", file)


def _reason(message: str) -> str:
    """The line of git's errors that says most."""
    before, unreachable, _ = message.partition("\nfatal: Could not read from remote repository")
    lines = message.splitlines()
    if unreachable:
        return before.splitlines()[-1]  # what ssh said, below a greeting of the host
    return ([line for line in lines if line.startswith(("fatal:", "error:"))] or lines)[0]


def _done(
    where: Path, args: tuple[str, ...], env: Mapping[str, str], stdin: bytes
) -> subprocess.CompletedProcess[bytes]:
    patience = _ANSWER_S if args[0] in ONLY_LOOK | {"read-tree", "config", "ls-files"} else _WORK_S
    try:
        with os_error_as(GitError, "can't run git"), suppress(FileNotFoundError):
            return run_program("git", *args, cwd=where, env=env, stdin=stdin, patience_s=patience)
        raise NoGitError("There is no git on this machine.")
    except subprocess.TimeoutExpired as error:
        raise GitError(
            f"git {args[0]} in {shorten(where)} took longer than {patience:.0f} s and was stopped.",
            hint="A pipe may lie where git expects a file, such as .git/HEAD or .gitignore.",
        ) from error
