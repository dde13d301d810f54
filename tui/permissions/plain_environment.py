"""The environment of a command that nobody was asked about: no file of the workspace steers it.

The programs come from folders that the workspace cannot fill, the shell reads no file of its own,
and git runs without hooks, monitors, signatures, downloads and bare repositories that it happens
upon.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path

from tui.core.redaction import child_environment
from tui.core.workspace import Workspace

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
_STEERS = re.compile(
    r"BASH_FUNC_.*|BASH_ENV|ENV|BASHOPTS|SHELLOPTS|CDPATH|POSIXLY_CORRECT|(LD|DYLD)_.*"
    r"|GREP_OPTIONS|RIPGREP_CONFIG_PATH|GIT_EXTERNAL_DIFF|GIT_CONFIG_PARAMETERS"
)
"""Variables by which a shell or a program that only looks may come to run something else."""


def plain_environment(workspace: Workspace) -> dict[str, str]:
    """The environment of a tool's process without what could steer a plain command."""
    given = child_environment()
    clean = {name: value for name, value in given.items() if not _STEERS.fullmatch(name)}
    own = workspace.widen(False)
    folders = clean.get("PATH", os.defpath).split(os.pathsep)
    safe = [
        f for f in folders if Path(f).is_absolute() and not own.contains(Path(os.path.realpath(f)))
    ]
    clean["PATH"] = os.pathsep.join(safe) or "/usr/bin:/bin"
    count = clean.get("GIT_CONFIG_COUNT", "")
    first = int(count) if re.fullmatch(r"[0-9]{1,4}", count) else 0
    for number, (key, value) in enumerate(_GIT_SETTINGS.items(), start=first):
        clean[f"GIT_CONFIG_KEY_{number}"] = key
        clean[f"GIT_CONFIG_VALUE_{number}"] = value
    clean["GIT_CONFIG_COUNT"] = str(first + len(_GIT_SETTINGS))
    return {**clean, **_GIT}
