"""Calling git: in one folder, with neither the person's hooks nor a prompt. Blocks."""

from __future__ import annotations

import os
import re
import subprocess
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from tui.batch.isolation import IsolationError
from tui.core.redaction import child_environment

_LOCK_TRIES: Final = 20
_LOCK_WAIT_S: Final = 0.25
_PLACES: Final = re.compile(
    r"GIT_(?!AUTHOR_|COMMITTER_|CONFIG_(GLOBAL|SYSTEM|NOSYSTEM)$|EXEC_PATH$)"
)
"""The variables that would lead git elsewhere than to the folder it is called in."""


def git(where: Path, *args: str, stdin: str = "", env: dict[str, str] | None = None) -> str:
    """What git prints. File names keep odd bytes. Raises IsolationError with git's own words.

    Another git at work in the repository is waited for. The person's hooks do not run: they are
    for the person's own commits and checkouts.
    """
    clean = {k: value for k, value in child_environment().items() if not _PLACES.match(k)}
    clean |= {"GIT_OPTIONAL_LOCKS": "0", "GIT_TERMINAL_PROMPT": "0", "LC_ALL": "C", **(env or {})}
    settings = ("-c", "user.useConfigOnly=false", "-c", f"core.hooksPath={os.devnull}")
    settings += ("-c", "core.fsyncMethod=batch")  # one sync for many new files
    said = ""
    for _ in range(_LOCK_TRIES):
        try:
            done = subprocess.run(
                ["git", *settings, *args],
                cwd=where,
                input=os.fsencode(stdin),
                capture_output=True,
                env=clean,
                check=False,
            )
        except OSError as error:
            raise IsolationError(f"git cannot be run: {error.strerror or error}.") from error
        if not done.returncode:
            return os.fsdecode(done.stdout)
        said = done.stderr.decode("utf-8", "replace").strip() or f"exit {done.returncode}"
        if ".lock': File exists" not in said:
            break
        time.sleep(_LOCK_WAIT_S)
    lines = [line for line in said.splitlines() if line.startswith(("fatal:", "error:"))]
    raise IsolationError(f"git {args[0]} failed: {(lines or said.splitlines())[0]}")


def listed(paths: Iterable[str]) -> str:
    """Paths as git takes them with -z."""
    return "".join(f"{path}\0" for path in paths)
