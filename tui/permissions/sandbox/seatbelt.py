"""The walls as a profile for macOS' sandbox-exec, and commands behind it.

It is not guaranteed that everything a command started ends with it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tui.permissions.sandbox.environment import clean_environment
from tui.permissions.sandbox.observed import Observed
from tui.permissions.sandbox.walls import (
    NEVER,
    TOOLCHAINS,
    Level,
    Walls,
    cache_of,
    check_workspace,
    prepare,
)

PROGRAM = "/usr/bin/sandbox-exec"
_CACHES = ("XDG_CACHE_HOME", "PIP_CACHE_DIR", "npm_config_cache")

_SYSTEM = (
    "/System", "/Library", "/usr", "/bin", "/sbin", "/opt", "/etc", "/private/etc",
    "/private/var/db", "/private/var/select", "/Applications/Xcode.app", "/dev/fd",
)  # fmt: skip
_DEVICES = ("/dev/null", "/dev/zero", "/dev/random", "/dev/urandom", "/dev/dtracehelper")
_SERVICES = (
    "com.apple.system.notification_center", "com.apple.system.logger",
    "com.apple.system.opendirectoryd.libinfo",
)  # fmt: skip


def request(
    argv: Sequence[str], walls: Walls, level: Level, *, cwd: Path, environment: Mapping[str, str]
) -> dict[str, Any]:
    """Make the request that starts a command behind the profile: a plain one, for the zygote.
    Blocks. Raises WallError if the walls cannot be built."""
    check_workspace(walls, Observed())
    prepare(walls)
    own = {"TMPDIR": str(walls.session / "tmp")}
    if not walls.share_caches:
        own |= {name: str(cache_of(walls, level) / ".cache") for name in _CACHES}
    return {
        "engine": "plain",
        "argv": [PROGRAM, "-p", profile(walls, level), *argv],
        "cwd": str(cwd),
        "env": clean_environment(environment, walls.keep_env) | own,
    }


def profile(walls: Walls, level: Level) -> str:
    """Write the profile. It denies by default; later lines win, so what is never visible comes
    last."""
    readable = [*_SYSTEM, *(str(walls.home / name) for name in TOOLCHAINS)]
    readable += [str(path) for path in (*walls.readable, *walls.git)]
    roots = [str(path) for path in (walls.workspace, *walls.added)]
    writable = [str(walls.session / "tmp"), str(cache_of(walls, level))]
    if level is not Level.READ_ONLY:
        writable += [*roots, *(str(path) for path in walls.git)]
    lines = [
        "(version 1)",
        "(deny default)",
        "(allow process-fork)",
        "(allow process-exec)",
        "(allow signal (target same-sandbox))",
        "(allow process-info* (target same-sandbox))",
        "(allow sysctl-read)",
        "(allow file-read-metadata)",
        "(deny appleevent-send)",
        *(f"(allow mach-lookup (global-name {_quoted(name)}))" for name in _SERVICES),
        _rule("allow file-read*", "literal", ("/", *_DEVICES)),
        _rule("allow file-write-data", "literal", _DEVICES),
        _rule("allow file-read*", "subpath", (*readable, *roots, *writable)),
        _rule("allow file-write*", "subpath", writable),
    ]
    # A socket with a path could lead to a service outside, with the network or without.
    if level is Level.NETWORK:
        lines.append("(allow network*)")
        lines.append('(deny network-outbound (remote unix-socket (path-regex #"^/")))')
    else:
        lines.append('(allow network* (local ip "localhost:*"))')
        lines.append('(allow network-outbound (remote ip "localhost:*"))')
    if walls.sockets:
        lines.append(_rule("allow network-outbound", "literal", map(str, walls.sockets)))
    if walls.protected:
        lines.append(_rule("deny file-write*", "subpath", map(str, walls.protected)))
    lines.append(_rule("deny file-read* file-write*", "subpath", map(str, walls.hidden)))
    lines += [
        f'(deny file-read* file-write* (regex #"{_regex(walls.home, name)}"))' for name in NEVER
    ]
    lines.append(_rule("allow file-read*", "subpath", map(str, walls.opened)))
    if walls.denied:
        lines.append(_rule("deny file-read* file-write*", "subpath", map(str, walls.denied)))
    return "\n".join(lines) + "\n"


def _rule(verb: str, kind: str, paths: object) -> str:
    assert not isinstance(paths, str)
    filters = " ".join(f"({kind} {_quoted(str(path))})" for path in paths)  # type: ignore[attr-defined]
    return f"({verb} {filters})" if filters else ""


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _regex(home: Path, name: str) -> str:
    special = {"*": "[^/]*", ".": "[.]", '"': '[\\"]', "+": "[+]", "(": "[(]", ")": "[)]"}
    return "^" + "".join(special.get(char, char) for char in f"{home}/{name}") + "(/|$)"
