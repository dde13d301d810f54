"""Whether another agent's own program opens a session: tried with what is installed, offline.

The session is a copy in a scratch home folder that is removed again. There are no keys in it or in
the environment, so that the program can't be signed in, and its network is turned off; where it
can't be, nothing is tried.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import sqlite3
import subprocess
from collections.abc import Collection
from contextlib import closing, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Timer
from typing import Any, Final

from tui.core.messages import object_of
from tui.core.text_cleaning import without_colours

PATIENCE_S: Final = 30.0
_OFFLINE: Final = ("unshare", "--map-root-user", "--net")
_ACCOUNTS: Final = ("account_state", "account", "control_account", "credential")
"""The tables of opencode's database that say who is signed in."""
_SESSIONS: Final = 3
_META = re.compile(rb'"session_meta".*?"id"\s*:\s*"([0-9A-Fa-f-]{36})"')
_READ_BY_PI: Final = """
const { SessionManager } = await import(process.argv[1]);
const context = SessionManager.open(process.argv[2]).buildSessionContext();
if (!context.messages.length) throw new Error("it finds no messages");
"""


class NotCheckedError(Exception):
    """Why the program couldn't be tried, as part of a sentence."""


def refusal(format_: str, data: bytes) -> str:
    """What the program says against a session; "" where it opens it. Blocks, up to PATIENCE_S.

    Raises NotCheckedError.
    """
    checks = {"pi": _refusal_by_pi, "codex": _refusal_by_codex}
    if format_ not in checks:
        raise NotCheckedError("it can't open a session offline")
    _refuse_online()
    try:
        with TemporaryDirectory(prefix="holdfast-rescue-", ignore_cleanup_errors=True) as home:
            return checks[format_](data, Path(home))
    except (OSError, subprocess.SubprocessError) as error:
        raise NotCheckedError(f"it couldn't be tried ({error})") from error


def database_refusal(database: Path, sessions: Collection[str]) -> str:
    """What opencode says against sessions of its database, at most _SESSIONS of them; the newest
    where none are named. Else as `refusal`."""
    program = _installed("opencode")
    _refuse_online()
    try:
        with TemporaryDirectory(prefix="holdfast-rescue-", ignore_cleanup_errors=True) as home:
            folder = Path(home) / ".local" / "share" / "opencode"
            folder.mkdir(parents=True)
            shutil.copyfile(database, folder / "opencode.db")
            _sign_out(folder / "opencode.db")
            if _run([program, "--version"], Path(home)).returncode:
                raise NotCheckedError("it doesn't start here")
            for session in sorted(sessions)[:_SESSIONS] or _newest(folder / "opencode.db"):
                done = _run([program, "export", session], Path(home))
                if not done.stdout.lstrip().startswith(b"{"):
                    text = without_colours((done.stdout + done.stderr).decode(errors="replace"))
                    return next((t for t in text.splitlines() if "Error" in t), "it fails")
    except (OSError, sqlite3.Error, subprocess.SubprocessError) as error:
        raise NotCheckedError(f"it couldn't be tried ({error})") from error
    return ""


def _run(words: list[str], home: Path) -> subprocess.CompletedProcess[bytes]:
    """Run the person's own program, offline and in its scratch home."""
    return subprocess.run(
        [*_OFFLINE, *words],
        capture_output=True,
        timeout=PATIENCE_S,
        check=False,
        env=_environment(home),
        cwd=home,
    )


def _newest(database: Path) -> list[str]:
    with closing(sqlite3.connect(database)) as db:
        rows = db.execute("SELECT id FROM session ORDER BY time_updated DESC LIMIT ?", (_SESSIONS,))
        return [id_ for (id_,) in rows]


def _sign_out(database: Path) -> None:
    """Take accounts and keys out of a scratch copy."""
    with closing(sqlite3.connect(database)) as db:
        tables = {name for (name,) in db.execute("SELECT name FROM sqlite_master")}
        for table in tables.intersection(_ACCOUNTS):
            db.execute(f"DELETE FROM {table}")  # noqa: S608 - a name of the list above
        db.commit()


def _refuse_online() -> None:
    with suppress(OSError, subprocess.SubprocessError):
        done = subprocess.run(
            [*_OFFLINE, "true"], capture_output=True, timeout=PATIENCE_S, check=False
        )
        if done.returncode == 0:
            return
    raise NotCheckedError("the network can't be turned off for it here")


def _installed(name: str) -> str:
    if (found := shutil.which(name)) is None:
        raise NotCheckedError("it isn't installed here")
    return found


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
        done = subprocess.run(
            [*_OFFLINE, *script, reader.as_uri(), str(file)],
            capture_output=True,
            timeout=PATIENCE_S,
            check=False,
            env=_environment(home),
            cwd=home,
        )
    except subprocess.TimeoutExpired:
        return "it hangs"
    if done.returncode == 0:
        return ""
    text = done.stderr.decode(errors="replace")
    return next((line for line in text.splitlines() if "Error:" in line), "it fails")


def _refusal_by_codex(data: bytes, home: Path) -> str:
    program = _installed("codex")
    found = _META.search(data)
    own = found[1].decode() if found else "00000000-0000-0000-0000-000000000000"
    folder = home / ".codex" / "sessions" / "2026" / "01" / "01"
    folder.mkdir(parents=True)
    (folder / f"rollout-2026-01-01T00-00-00-{own}.jsonl").write_bytes(data)
    server = subprocess.Popen(
        [*_OFFLINE, program, "app-server"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=_environment(home),
        cwd=home,
        start_new_session=True,
    )
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
    """End it with all that it started."""
    with suppress(ProcessLookupError):
        os.killpg(server.pid, signal.SIGKILL)


def _answer(
    server: subprocess.Popen[bytes], number: int, method: str, params: dict[str, Any]
) -> dict[str, Any]:
    """The answer to a request. Raises NotCheckedError where the program ends before."""
    assert server.stdin is not None
    assert server.stdout is not None
    with suppress(OSError):
        line = json.dumps({"id": number, "method": method, "params": params})
        server.stdin.write(line.encode() + b"\n")
        server.stdin.flush()
    for line in server.stdout:
        with suppress(ValueError):
            message = object_of(json.loads(line))
            if message.get("id") == number:
                return message
    raise NotCheckedError("it ended without an answer")
