"""The machine: what is installed, what the terminal can show, and the folders of the program."""

from __future__ import annotations

import locale
import os
import platform
import re
import shutil
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from importlib import metadata
from pathlib import Path
from tempfile import TemporaryFile

from tui.app.doctor.check import Check, Subject
from tui.app.installed import installation, version_line
from tui.app.unattended_commands import unattended_commands
from tui.core.formatting import plural, size
from tui.core.paths import shorten
from tui.core.workspace import Workspace
from tui.tools.search import ripgrep

OLDEST = (3, 11)
SMALL = (80, 24)

_REQUIREMENT = re.compile(r"([A-Za-z0-9._-]+)\s*([^;]*)(;.*)?")


def program(_: Subject) -> Iterator[Check]:
    """The program itself and its Python."""
    version = platform.python_version()
    what = f"{version_line()}, Python {version} on {platform.system()}"
    if sys.version_info < OLDEST:
        oldest = ".".join(map(str, OLDEST))
        yield Check("program", "fail", what, f"Holdfast needs Python {oldest} or newer.")
    else:
        yield Check("program", "ok", what)


def installed(what: Subject) -> Iterator[Check]:
    """Tell how it was installed, how to update it, and which one `holdfast` starts."""
    how = installation()
    summary = f"{how.how}; to update: {how.update}"
    search = what.env.get("PATH", os.defpath)
    started = shutil.which("holdfast", path=search)
    own = Path(sys.prefix) / "bin" / "holdfast"
    if started is None and own.exists() and not how.is_checkout:
        fix = f'`holdfast` isn\'t on PATH. Add: export PATH="{_shown_folder(own)}:$PATH"'
        yield Check("installed", "warn", summary, fix)
    elif started and own.exists() and not own.samefile(started):
        fix = f"`holdfast` starts another installation: {shorten(started)}. Remove one of them."
        yield Check("installed", "warn", summary, fix)
    else:
        yield Check("installed", "ok", summary)


def _shown_folder(program: Path) -> str:
    """The folder to put on PATH: where uv and pipx link programs, if they linked this one."""
    link = Path(os.path.expanduser("~/.local/bin"), program.name)  # noqa: PTH111 - never raises
    linked = link.exists() and link.samefile(program)
    shown = "~/.local/bin" if linked else shorten(program.parent)
    return re.sub(r"^~(?=/|$)", "$HOME", shown)


def packages(_: Subject) -> Iterator[Check]:
    """The libraries that the program needs, in the versions that it asks for."""
    again = f"Reinstall it: {installation().update}"
    try:
        wanted = metadata.requires("holdfast") or []
    except metadata.PackageNotFoundError:
        yield Check("packages", "warn", "running without being installed", again)
        return
    missing: list[str] = []
    other: list[str] = []
    count = 0
    for line in wanted:
        match = _REQUIREMENT.fullmatch(line.strip())
        # for an extra or another platform
        if match is None or not _is_wanted(match[3] or ""):
            continue
        name, versions = match[1], match[2].strip()
        count += 1
        try:
            there = metadata.version(name)
        except metadata.PackageNotFoundError:
            missing.append(name)
            continue
        if not satisfies(there, versions):
            other.append(f"{name} {there} (wanted {versions})")
    if missing:
        yield Check("packages", "fail", f"missing: {', '.join(missing)}", again)
    if other:
        yield Check("packages", "warn", f"other versions: {', '.join(other)}", again)
    if not missing and not other:
        yield Check("packages", "ok", f"all {count} installed, in supported versions")


def _is_wanted(marker: str) -> bool:
    """Say if a requirement counts here: none of an extra does, and one of a system only there."""
    system = re.search(r"sys_platform\s*==\s*['\"](\w+)", marker)
    return "extra" not in marker and (system is None or system[1] == sys.platform)


def satisfies(version: str, wanted: str) -> bool:
    """True if a version is within `==`, `>=`, `<=`, `>`, `<` bounds; other bounds count as met."""
    have = _numbers(version)
    for part in filter(None, (one.strip() for one in wanted.strip("()").split(","))):
        match = re.fullmatch(r"(==|>=|<=|>|<)\s*([0-9.]+)", part)
        if match is None:
            continue
        bound = _numbers(match[2])
        width = max(len(have), len(bound))
        one, two = (numbers + (0,) * (width - len(numbers)) for numbers in (have, bound))
        met = {"==": one == two, ">=": one >= two, "<=": one <= two, ">": one > two, "<": one < two}
        if not met[match[1]]:
            return False
    return True


def _numbers(version: str) -> tuple[int, ...]:
    match = re.match(r"\d+(?:\.\d+)*", version)
    return tuple(map(int, match[0].split("."))) if match else ()


def terminal(what: Subject) -> Iterator[Check]:
    """Its size, its colors, its characters, and what is in between."""
    env = what.env
    size = _size()
    if size is None:
        yield Check("terminal", "ok", "not a terminal: -p, sessions and the like still work")
    else:
        columns, rows = size
        summary = f"{env.get('TERM_PROGRAM') or env.get('TERM') or 'unknown'}, {columns} × {rows}"
        if env.get("TERM", "dumb") == "dumb":
            yield Check(
                "terminal", "warn", summary, "TERM is dumb or not set: plain lines, no full screen."
            )
        elif columns < SMALL[0] or rows < SMALL[1]:
            yield Check("terminal", "warn", summary, "80 × 24 and larger works best.")
        else:
            yield Check("terminal", "ok", summary)
        yield _colours(env.get("NO_COLOR", ""), env.get("COLORTERM", ""), env.get("TERM", ""), what)
    encoding = locale.getpreferredencoding(False)
    if encoding.replace("-", "").lower() == "utf8":
        yield Check("characters", "ok", encoding)
    else:
        yield Check(
            "characters", "warn", f"{encoding}: lines and symbols may show as ?",
            "Set a UTF-8 locale: export LANG=C.UTF-8",
        )  # fmt: skip
    if env.get("TMUX"):
        hint = "If Esc is slow: set -sg escape-time 10"
        yield Check("tmux", "ok", "inside tmux", hint)
    if env.get("SSH_CONNECTION") or env.get("SSH_TTY"):
        hint = "Copying needs a terminal that supports OSC 52; run long sessions inside tmux."
        yield Check("ssh", "ok", "over SSH", hint)


def _size() -> tuple[int, int] | None:
    for number in (1, 0, 2):
        if os.isatty(number):
            columns, rows = os.get_terminal_size(number)
            return columns, rows
    return None


def _colours(off: str, depth: str, term: str, what: Subject) -> Check:
    if off:
        return Check("colors", "ok", "none: NO_COLOR is set")
    if depth in {"truecolor", "24bit"}:
        return Check("colors", "ok", "16 million")
    fix = "If the terminal supports more: export COLORTERM=truecolor"
    if what.env.get("TMUX"):
        fix = 'In tmux.conf: set -ga terminal-features ",*:RGB", then COLORTERM=truecolor'
    many = "256" if "256" in term else "16"
    return Check("colors", "ok" if many == "256" else "warn", many, fix)


def programs(_: Subject) -> Iterator[Check]:
    """Programs that tools and the batch runner use."""
    rg = ripgrep()
    if rg:
        yield Check("ripgrep", "ok", str(rg))
    else:
        yield Check("ripgrep", "warn", "not found: searching is slow", "Install ripgrep.")
    if git := shutil.which("git"):
        yield Check("git", "ok", git)
    else:
        yield Check("git", "warn", "not found", "Install git: task files need it or jj.")
    jj = shutil.which("jj")
    yield Check("jj", "ok", jj or "not found; not needed with git")


LITTLE = 50_000_000
"""Bytes of free space below which a session is soon in trouble."""

_DAMAGED = ("needs_repair", "unreadable")
_NAMED = 3


def folders(what: Subject) -> Iterator[Check]:
    """Check that sessions, settings, cache and log can be written, and how much room there is."""
    home = what.folders
    named = {"data": home.data, "config": home.config, "cache": home.cache, "log": home.log}
    refused = [
        f"{name} ({shorten(path)}): {why}"
        for name, path in named.items()
        if (why := _refusal(path))
    ]
    if refused:
        fix = "Make the folder writable, or set HOLDFAST_HOME to one that is."
        yield Check("storage", "fail", f"can't write: {'; '.join(refused)}", fix)
    else:
        yield Check("storage", "ok", f"{shorten(home.data)} is writable")
    free = shutil.disk_usage(_existing(home.data)).free
    wanted = what.config.guard.spill_min_free_bytes
    if free < LITTLE:
        yield Check("space", "fail", f"{size(free)} free", "Free up some space for sessions.")
    elif free < wanted:
        fix = f"Full copies of outputs need at least {size(wanted)} free."
        yield Check("space", "warn", f"{size(free)} free", fix)
    else:
        yield Check("space", "ok", f"{size(free)} free")


def _refusal(folder: Path) -> str:
    """Say why a folder cannot be written, "" where it can. One that is not there yet is not
    made."""
    there = _existing(folder)
    if not there.is_dir():
        return f"{shorten(there)} isn't a folder"
    if there == folder:
        try:
            with TemporaryFile(dir=folder):
                return ""
        except OSError as error:
            return error.strerror or str(error)
    return "" if os.access(there, os.W_OK | os.X_OK) else "no permission"


def _existing(folder: Path) -> Path:
    return next(path for path in (folder, *folder.parents) if path.exists())


def sessions(what: Subject) -> Iterator[Check]:
    """Count the sessions, and name the damaged ones."""
    from tui.session import index  # noqa: PLC0415 - it needs sqlite
    from tui.session.catalog import state_name  # noqa: PLC0415 - loaded with it

    entries = index.list_sessions(what.folders)
    states = Counter(entry.state for entry in entries)
    summary = plural(len(entries), "session") if entries else "none yet"
    more = [f"{states[state]} {state_name(state)}" for state in sorted(states) if state != "ok"]
    damaged = [entry for entry in entries if entry.state in _DAMAGED]
    detail = f"{summary} ({', '.join(more)})" if more else summary
    if not damaged:
        yield Check("sessions", "ok", detail)
        return
    ids = ", ".join(entry.id for entry in damaged[:_NAMED]) + (", …" if damaged[_NAMED:] else "")
    fix = f"They open repaired; `holdfast sessions check ID` shows what is wrong: {ids}"
    yield Check("sessions", "warn", detail, fix)


def commands(what: Subject) -> Iterator[Check]:
    """Check for commands that run, or have ended, without their session."""
    known = unattended_commands(what.folders)
    runs = [one for one in known if one.state == "running"]
    ended_count = len(known) - len(runs)
    ended = f"{plural(ended_count, 'command')} ended unseen" if ended_count else ""
    if not runs:
        yield Check("commands", "ok", f"none left running{f'; {ended}' if ended else ''}")
        return
    named = "; ".join(f"{one.id} {one.words}" for one in runs[:_NAMED])
    more = f"; {len(runs) - _NAMED} more" if len(runs) > _NAMED else ""
    summary = f"{plural(len(runs), 'command')} of sessions that aren't open: {named}{more}"
    fix = "`holdfast -r ID` takes them over, `holdfast stop ID` ends them."
    yield Check("commands", "warn", "; ".join(filter(None, (summary, ended))), fix)


def outputs(what: Subject) -> Iterator[Check]:
    """The full copies of tool outputs that this folder holds."""
    folder = Workspace(what.workspace).tool_results
    total = count = 0
    if folder.is_dir():
        with os.scandir(folder) as entries:
            for item in entries:
                with suppress(OSError):
                    if item.name.endswith(".txt") and item.is_file(follow_symlinks=False):
                        total += item.stat(follow_symlinks=False).st_size
                        count += 1
    summary = (
        f"{plural(count, 'full copy').replace('copys', 'copies')}, {size(total)}, in this folder"
    )
    most = what.config.guard.keep_bytes
    if total > most:
        fix = f"More than guard.keep_bytes ({size(most)}): sessions still refer to them."
        yield Check("outputs", "warn", summary, fix)
    else:
        yield Check("outputs", "ok", summary if count else "no full copies in this folder")
