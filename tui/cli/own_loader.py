"""Tries, offline, whether another agent's installed program opens a session.

The program runs in the sandbox: it has no network, sees neither the person's home folder nor their
keys, and works in a scratch home that is removed again, so it can't be signed in. If no sandbox can
do that, nothing is tried.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import shutil
import signal
import sqlite3
import subprocess
from collections.abc import Collection, Generator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Timer
from typing import Any, Final

from tui.core.config import SandboxSettings
from tui.core.errors import HoldfastError
from tui.core.messages import object_of
from tui.core.text_cleaning import without_colours
from tui.core.workspace import Workspace
from tui.permissions.sandbox.confinement import Confinement
from tui.permissions.sandbox.walls import Level

PATIENCE_S: Final = 30.0
_ACCOUNTS: Final = ("account_state", "account", "control_account", "credential")
"""The tables of opencode's database that hold who is signed in."""
_SESSIONS: Final = 3
_META = re.compile(rb'"session_meta".*?"id"\s*:\s*"([0-9A-Fa-f-]{36})"')
_READ_BY_PI: Final = """
const { SessionManager } = await import(process.argv[1]);
const context = SessionManager.open(process.argv[2]).buildSessionContext();
if (!context.messages.length) throw new Error("it finds no messages");
"""


class NotCheckedError(Exception):
    """The program couldn't be tried. The text is part of a sentence."""


def refusal(format_: str, data: bytes) -> str:
    """Return the program's complaint about a session; "" if it opens it. Blocks, up to PATIENCE_S.

    Raises NotCheckedError.
    """
    checks = {"pi": _refusal_by_pi, "codex": _refusal_by_codex}
    if format_ not in checks:
        raise NotCheckedError("it can't open a session offline")
    with _scratch_home() as home:
        return checks[format_](data, home)


def database_refusal(database: Path, sessions: Collection[str]) -> str:
    """Return opencode's complaint about sessions of its database, at most _SESSIONS of them; the
    newest if none are named. Otherwise as `refusal`."""
    program = _installed("opencode")
    with _scratch_home() as home:
        copy = home / ".local" / "share" / "opencode" / "opencode.db"
        copy.parent.mkdir(parents=True)
        _copy_signed_out(database, copy)
        if _run([program, "--version"], home).returncode:
            raise NotCheckedError("it doesn't start here")
        for session in sorted(sessions)[:_SESSIONS] or _newest(copy):
            done = _run([program, "export", session], home)
            if not done.stdout.lstrip().startswith(b"{"):
                text = without_colours((done.stdout + done.stderr).decode(errors="replace"))
                return next((t for t in text.splitlines() if "Error" in t), "it fails")
    return ""


@contextmanager
def _scratch_home() -> Generator[Path]:
    """Yield a home folder that is removed again. Errors in the block become a NotCheckedError."""
    try:
        with TemporaryDirectory(prefix="holdfast-rescue-", ignore_cleanup_errors=True) as folder:
            home = Path(folder).resolve() / "home"
            home.mkdir()
            yield home
    except (OSError, sqlite3.Error, subprocess.SubprocessError) as error:
        raise NotCheckedError(f"it couldn't be tried ({error})") from error


def _run(words: list[str], home: Path, *more: Path) -> subprocess.CompletedProcess[bytes]:
    """Run the person's own program in the sandbox."""
    return subprocess.run(
        _confined(words, home, *more),
        capture_output=True,
        timeout=PATIENCE_S,
        check=False,
        env=_environment(home),
        cwd=home,
    )


def _confined(words: list[str], home: Path, *more: Path) -> list[str]:
    """Return the words that run a program in the sandbox, where it may write the scratch home and,
    besides the system, read itself, node and `more` programs. Raises NotCheckedError."""
    programs = (words[0], shutil.which("node"), *more)
    readable = tuple({_package(Path(one).resolve()) for one in programs if one})

    async def build() -> list[str]:
        folder = home.parent
        workspace = Workspace(root=home, readable=readable)
        sandbox = Confinement(SandboxSettings(), workspace, folder / "session", folder / "cache")
        if Level.WORKSPACE not in await sandbox.levels():
            why = f" ({sandbox.reason})" if sandbox.reason else ""
            raise NotCheckedError(f"no sandbox here can turn off its network{why}")
        return await sandbox.command(words, _environment(home), Level.WORKSPACE)

    try:
        return asyncio.run(build())
    except HoldfastError as error:
        raise NotCheckedError(f"the sandbox can't be built ({error.message})") from error


def _package(file: Path) -> Path:
    """Return the folder that holds all of a program: the outermost node_modules, otherwise the
    folder of the file."""
    outer = (folder for folder in reversed(file.parents) if folder.name == "node_modules")
    return next(outer, file.parent)


def _newest(database: Path) -> list[str]:
    with closing(sqlite3.connect(database)) as db:
        rows = db.execute("SELECT id FROM session ORDER BY time_updated DESC LIMIT ?", (_SESSIONS,))
        return [id_ for (id_,) in rows]


def _copy_signed_out(database: Path, copy: Path) -> None:
    """Copy a database, with its write-ahead log, and without accounts and keys."""
    uri = f"{database.resolve().as_uri()}?mode=ro"
    with closing(sqlite3.connect(uri, uri=True)) as old, closing(sqlite3.connect(copy)) as new:
        old.backup(new)
        new.execute("PRAGMA secure_delete = ON")
        tables = {name for (name,) in new.execute("SELECT name FROM sqlite_master")}
        for table in tables.intersection(_ACCOUNTS):
            new.execute(f"DELETE FROM {table}")  # noqa: S608 - a name of the list above
        new.commit()


def _installed(name: str) -> str:
    if (path := shutil.which(name)) is None:
        raise NotCheckedError("it isn't installed here")
    return path


def _environment(home: Path) -> dict[str, str]:
    path = os.environ.get("PATH", os.defpath)
    return {"PATH": path, "HOME": str(home), "CODEX_HOME": str(home / ".codex")}


def _refusal_by_pi(data: bytes, home: Path) -> str:
    program = Path(_installed("pi")).resolve()
    reader = program.with_name("core") / "session-manager.js"
    if not reader.is_file():
        raise NotCheckedError("its own reader isn't where it is expected")
    file = home / "session.jsonl"
    file.write_bytes(data)
    script = [_installed("node"), "--input-type=module", "-e", _READ_BY_PI, "--"]
    try:
        done = _run([*script, reader.as_uri(), str(file)], home, program)
    except subprocess.TimeoutExpired:
        return "it hangs"
    if done.returncode == 0:
        return ""
    text = done.stderr.decode(errors="replace")
    return next((line for line in text.splitlines() if "Error:" in line), "it fails")


def _refusal_by_codex(data: bytes, home: Path) -> str:
    program = _installed("codex")
    match = _META.search(data)
    own = match[1].decode() if match else "00000000-0000-0000-0000-000000000000"
    folder = home / ".codex" / "sessions" / "2026" / "01" / "01"
    folder.mkdir(parents=True)
    (folder / f"rollout-2026-01-01T00-00-00-{own}.jsonl").write_bytes(data)
    server = subprocess.Popen(
        _confined([program, "app-server"], home),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=_environment(home),
        cwd=home,
        start_new_session=True,
    )
    # The app server may hang, so it is ended from a thread.
    late = Timer(PATIENCE_S, _end, [server])
    late.start()
    try:
        who = {"name": "holdfast", "title": "Holdfast", "version": "1"}
        _answer(server, 1, "initialize", {"clientInfo": who})
        _answer(server, 2, "thread/list", {})
        answer = _answer(server, 3, "thread/resume", {"threadId": own})
    finally:
        late.cancel()
        _end(server)
        server.wait()
    error = object_of(answer.get("error")).get("message")
    return "" if error is None else str(error)


def _end(server: subprocess.Popen[bytes]) -> None:
    """Kill a server with its whole process group."""
    with suppress(ProcessLookupError):
        os.killpg(server.pid, signal.SIGKILL)


def _answer(
    server: subprocess.Popen[bytes], number: int, method: str, params: dict[str, Any]
) -> dict[str, Any]:
    """Send a request and return its answer. Raises NotCheckedError if the program ends before."""
    assert server.stdin is not None
    assert server.stdout is not None
    with suppress(OSError):
        line = json.dumps({"id": number, "method": method, "params": params})
        server.stdin.write(line.encode() + b"\n")
        server.stdin.flush()
    for line in server.stdout:
        with suppress(ValueError, RecursionError):
            message = object_of(json.loads(line))
            if message.get("id") == number:
                return message
    raise NotCheckedError("it ended without an answer")
