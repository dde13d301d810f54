"""Git as a child process: never led elsewhere by the environment, and never by a hook. Blocks."""

from __future__ import annotations

import os
import re
import subprocess
import time
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final

from tui.core.errors import HoldfastError, os_error_as
from tui.core.redaction import child_environment
from tui.core.workspace import safe_search_path

_LOCK_TRIES: Final = 20
_LOCK_WAIT_S: Final = 0.25
_PLACES: Final = re.compile(
    r"GIT_(?!AUTHOR_|COMMITTER_|CONFIG_(GLOBAL|SYSTEM|NOSYSTEM)$|EXEC_PATH$)"
)
"""The variables that would lead git elsewhere than to the folder it is called in."""
_SETTINGS: Final = (
    "-c", "user.useConfigOnly=false",
    "-c", f"core.hooksPath={os.devnull}",
    "-c", "core.fsmonitor=false",
    "-c", "safe.bareRepository=explicit",
    "-c", "submodule.recurse=false",
    "-c", "core.fsyncMethod=batch",  # one sync for many new files
)  # fmt: skip
_OFFLINE: Final = {"GIT_NO_LAZY_FETCH": "1", "GIT_ALLOW_PROTOCOL": "none"}
"""What is missing in a partial clone isn't fetched: its settings may name a program for that."""
_NOBODY: Final = {"NAME": "holdfast", "EMAIL": "holdfast@localhost"}


class GitError(HoldfastError):
    """Git refused, or is missing."""


def run_program(
    *command: str, cwd: Path, env: Mapping[str, str], stdin: bytes = b""
) -> subprocess.CompletedProcess[bytes]:
    """Run a program that no file of the folder can replace, whatever it returns. Raises OSError."""
    path = safe_search_path(env.get("PATH", os.defpath), (cwd,))
    return subprocess.run(
        command, cwd=cwd, env={**env, "PATH": path}, input=stdin, capture_output=True, check=False
    )


def refusal(done: subprocess.CompletedProcess[bytes]) -> str:
    """What a program that failed has said."""
    return done.stderr.decode("utf-8", "replace").strip() or f"exit {done.returncode}"


def git(where: Path, *args: str, stdin: str = "", env: Mapping[str, str] | None = None) -> str:
    """What git prints. File names keep odd bytes. Raises GitError with git's own words.

    Another git at work in the repository is waited for. The person's hooks do not run: they are
    for the person's own commits and checkouts.
    """
    clean = {k: value for k, value in child_environment().items() if not _PLACES.match(k)}
    clean |= {"GIT_OPTIONAL_LOCKS": "0", "GIT_TERMINAL_PROMPT": "0", "LC_ALL": "C", **_OFFLINE}
    clean |= env or {}
    said = ""
    for _ in range(_LOCK_TRIES):
        with os_error_as(GitError, "can't run git"):
            done = run_program(
                "git", *_SETTINGS, *args, cwd=where, env=clean, stdin=os.fsencode(stdin)
            )
        if not done.returncode:
            return os.fsdecode(done.stdout)
        said = refusal(done)
        if ".lock': File exists" not in said:
            break
        time.sleep(_LOCK_WAIT_S)
    lines = [line for line in said.splitlines() if line.startswith(("fatal:", "error:"))]
    raise GitError(f"git {args[0]} failed: {(lines or said.splitlines())[0]}")


def listed(paths: Iterable[str]) -> str:
    """Paths as git takes them with -z."""
    return "".join(f"{path}\0" for path in paths)


def identity(where: Path) -> dict[str, str]:
    """What git commits as, as variables: the person whom it knows (nothing), or nobody."""
    with suppress(GitError):
        git(where, "var", "GIT_AUTHOR_IDENT")
        git(where, "var", "GIT_COMMITTER_IDENT")
        return {}
    return {
        f"GIT_{who}_{what}": value
        for who in ("AUTHOR", "COMMITTER")
        for what, value in _NOBODY.items()
    }
