"""Sessions that run in the background: how one is started, which there are, and how one is asked
to hand its session over.

Each process keeps one file about itself, `background/ID.json` in the data folder, beside its log.
It is known by its number and the time of its birth: one that is gone without saying how it ended
was killed, or the machine was restarted. What was done is in the session's own record. None needs
the parent that forked it (`background_parent.py`), which serves no other purpose.

A process that wants the session writes `ID.request` and sends SIGUSR1. The owner pauses its turn,
closes the session and ends; where whoever asked is gone by then, it continues.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import stat
import subprocess
from collections.abc import Callable, Mapping
from contextlib import ExitStack, suppress
from datetime import MAXYEAR, UTC, datetime, timedelta
from pathlib import Path
from typing import IO, Any, Final, Literal, TypeAlias, cast

from tui.app import background_parent
from tui.app.options.arguments import Options
from tui.core import errors
from tui.core.clock import timestamp
from tui.core.dataclass import asdict, dataclass, field, fields, replace
from tui.core.errors import HoldfastError, SessionError, StorageError, os_error_as
from tui.core.files import read_small, replace_file
from tui.core.formatting import plural
from tui.core.paths import Folders, shorten
from tui.core.process_birth import born, is_stopped

State: TypeAlias = Literal[
    "working", "waiting", "parked", "done", "failed", "stopped", "interrupted"
]
RUNNING: Final = frozenset({"working", "waiting", "parked"})
STATE_WORDS: Final[Mapping[str, str]] = {"waiting": "waiting for you", "parked": "waits"}

LISTED: Final = timedelta(days=1)
"""Time for which one that has ended is listed, unless somebody has looked at it."""
KEPT: Final = timedelta(days=14)
"""Time for which its file and its log are kept."""

ELEVATED: Final = "It starts elevated, as this screen is: no prompts."
"""Shown where the options of one have `yolo`."""
_PATHS: Final = frozenset({"cwd", "practice_script", "json_schema", "tasks", "summary", "out"})
_NOT_KEPT: Final = frozenset({"prompt", "newest", "resume", "headless"})
_ERRORS: Final = ("UsageError", "CredentialsError", "SessionInUseError", "SessionError")


@dataclass(frozen=True, slots=True, kw_only=True)
class BackgroundSession:
    """One process and its session. `detail` says what it does, waits for, or ended with; times
    are timestamps. `options` are what it was started with, as JSON."""

    id: str
    path: str
    cwd: str
    pid: int
    born: str
    host: str
    state: State = "working"
    detail: str = ""
    started: str = ""
    since: str = ""
    title: str = ""
    cost_usd: float | None = None
    seen: bool = False
    """Somebody has looked at how it ended."""
    options: dict[str, Any] = field(default_factory=dict[str, Any])

    @property
    def here(self) -> bool:
        """True if it runs, or ran, on this machine: of another nothing can be known."""
        return self.host == socket.gethostname()

    @property
    def running(self) -> bool:
        """True if it has not ended, as far as its file says."""
        return self.state in RUNNING

    @property
    def suspended(self) -> bool:
        """True while its process is stopped, as by Ctrl+Z. Blocks briefly."""
        return self.running and self.here and is_stopped(self.pid)

    @property
    def words(self) -> str:
        """Its state in words."""
        if self.suspended:
            return f"suspended: kill -CONT {self.pid} continues it"
        state = STATE_WORDS.get(self.state, self.state)
        where = "" if self.here or not self.running else f" on {self.host}"
        return f"{state}{where}: {self.detail}" if self.detail else f"{state}{where}"

    def to_json(self) -> dict[str, Any]:
        """For `ps --json`."""
        return {name: value for name, value in asdict(self).items() if name != "options"}


# The files


def folder_of(home: Folders) -> Path:
    return home.data / "background"


def log_of(home: Folders, id_: str) -> Path:
    """Return the file of a session's process output, as lines."""
    return folder_of(home) / f"{id_}.log"


def save(home: Folders, one: BackgroundSession) -> None:
    """Keep how it is with a session now. Raises StorageError."""
    path = folder_of(home) / f"{one.id}.json"
    hint = "Free up disk space, or set HOLDFAST_HOME to another folder."
    with os_error_as(StorageError, f"Can't write {shorten(path)}", hint=hint):
        replace_file(path, json.dumps(asdict(one)).encode())


def forget(home: Folders, id_: str) -> None:
    """Remove what was kept of a process; its log too."""
    for name in (f"{id_}.json", f"{id_}.request", f"{id_}.log"):
        with suppress(OSError):
            (folder_of(home) / name).unlink()


def sessions(home: Folders, now: datetime) -> list[BackgroundSession]:
    """All that are known, the newest first. Those that were killed are found, and noted; those
    that ended long ago are forgotten. Blocks."""
    known: list[BackgroundSession] = []
    for path in sorted(folder_of(home).glob("*.json")):
        one = _read(path)
        if one is None:
            continue
        if one.running and one.here and born(one.pid) != one.born:
            one = _read(path) or one  # it may have said meanwhile how it ended
        if one.running and one.here and born(one.pid) != one.born:
            detail = "killed, or the machine restarted"
            one = replace(one, state="interrupted", detail=detail, since=timestamp(now))
            with suppress(StorageError):
                save(home, one)
        if not one.running and now - moment(one.since, now) > KEPT:
            forget(home, one.id)
        else:
            known.append(one)
    return sorted(known, key=lambda one: one.started, reverse=True)


def listed(home: Folders, now: datetime) -> list[BackgroundSession]:
    """The sessions that run, and those that ended within a day and that nobody has opened since."""
    return [
        one
        for one in sessions(home, now)
        if one.running or (not one.seen and now - moment(one.since, now) < LISTED)
    ]


def find(home: Folders, wanted: str | None, now: datetime) -> BackgroundSession:
    """The one of an id, the start of one, or a title; without any, the only one. Raises
    SessionError."""
    every = sessions(home, now) if wanted else listed(home, now)
    matches = [one for one in every if one.id.startswith(wanted or "")]
    if wanted and not matches:
        from tui.session.naming import named  # noqa: PLC0415 - seldom by title

        matches = named(wanted, ((one.title, one) for one in every))
    if not wanted and len(running := [one for one in matches if one.running]) == 1:
        matches = running
    if len(matches) == 1:
        return matches[0]
    hint = "`holdfast ps` lists them."
    if matches:
        raise SessionError(f"Which one? {', '.join(one.id for one in matches)}.", hint=hint)
    if not wanted:
        raise SessionError("No session runs in the background.", hint="Start one with --bg.")
    hint = "`holdfast ps` lists them, `holdfast sessions list` all sessions of this folder."
    raise SessionError(f"No session {wanted} in the background.", hint=hint)


def entry(home: Folders, id_: str) -> BackgroundSession | None:
    """The entry of a session as it stands there; None where there is none. Blocks."""
    return _read(folder_of(home) / f"{id_}.json")


def running_at(home: Folders, session: Path, now: datetime) -> BackgroundSession | None:
    """The process on this machine that has a session's file. Blocks."""
    real = os.path.realpath(session)
    every = (one for one in sessions(home, now) if one.running and one.here)
    return next((one for one in every if one.path == real), None)


def mark_opened(home: Folders, id_: str) -> None:
    """A session was opened, whether or not it is one of these. Blocks."""
    if (one := _read(folder_of(home) / f"{id_}.json")) is not None:
        mark_seen(home, one)


def mark_seen(home: Folders, one: BackgroundSession) -> None:
    """Somebody has seen how it ended: it need not be listed any more."""
    if not one.running and not one.seen:
        with suppress(StorageError):
            save(home, replace(one, seen=True))


def moment(text: str, otherwise: datetime) -> datetime:
    """A timestamp of such a file; `otherwise` for anything else, and for one so far off that
    another time zone may not have it."""
    try:
        then = datetime.fromisoformat(text)
    except ValueError:
        return otherwise
    if not 1 < then.year < MAXYEAR:
        return otherwise
    return then if then.tzinfo else then.replace(tzinfo=UTC)


def _read(path: Path) -> BackgroundSession | None:
    """None for a file that is not valid, or is being removed."""
    try:
        value = _json_object(read_small(path, follow=False)[0])
        known = {one.name: value[one.name] for one in fields(BackgroundSession)}
    except (OSError, ValueError, KeyError, RecursionError):
        return None
    texts = [known[name] for name in ("id", "path", "cwd", "born", "host", "state", "since")]
    valid = all(isinstance(text, str) for text in texts) and isinstance(known["pid"], int)
    valid = valid and known["id"] == path.stem and isinstance(known["options"], dict)
    return BackgroundSession(**known) if valid else None


def _json_object(text: str | bytes) -> dict[str, Any]:
    """Read a JSON object. Raises ValueError for anything else."""
    value = json.loads(text)
    if not isinstance(value, dict):
        raise ValueError(text)  # noqa: TRY004 - as where it is no JSON
    return cast("dict[str, Any]", value)


# Options on their way


def options_to_json(options: Options) -> dict[str, Any]:
    """Return what differs from the usual; paths whole, since it may be read in another folder."""
    chosen, usual = options.by_name(), Options().by_name()
    return {name: _plain(value) for name, value in chosen.items() if value != usual[name]}


def options_from_json(value: Mapping[str, Any]) -> Options:
    """The options again."""
    known = Options().by_name()
    values: dict[str, Any] = {}
    for name, stored in value.items():
        if name == "add_dirs":
            values[name] = tuple(map(Path, stored))
        elif name in known:
            several = isinstance(stored, list)
            values[name] = tuple(cast("list[Any]", stored)) if several else stored
            values[name] = Path(stored) if name in _PATHS else values[name]
    return Options().having(**values)


def _plain(value: Any) -> Any:
    if isinstance(value, tuple):
        return [_plain(one) for one in cast("tuple[Any, ...]", value)]
    return str(value.expanduser().absolute()) if isinstance(value, Path) else value


# Starting one


def start(
    home: Folders,
    options: Options,
    *,
    attached: str = "",
    go_on: bool = False,
    replaces_draft: bool = False,
    tell: Callable[[str], object] = lambda _: None,
) -> BackgroundSession:
    """Start a process that sends the prompt of the options, with `attached` after it, or that
    continues a turn which was paused. Blocks until its session is open; raises HoldfastError
    where it could not be opened. `tell` gets what the person should know beforehand.
    `replaces_draft`: the person has seen what an earlier process left unsent, and sends this.

    What it gets goes through a pipe: nothing of it is seen in the list of processes, and the key
    it looks up itself.
    """
    with os_error_as(StorageError, f"Can't use {shorten(folder_of(home))}"):
        folder_of(home).mkdir(mode=0o700, parents=True, exist_ok=True)
    order = {
        "options": options_to_json(options),
        "attached": attached,
        "go_on": go_on,
        "replaces_draft": replaces_draft,
    }
    with os_error_as(HoldfastError, "Can't start a process"):
        taking, giving = _forked(home) or _spawned()
    # it may have failed before it read this; then its output says why
    with suppress(BrokenPipeError):
        taking.write(json.dumps(order).encode())
        taking.close()
    with giving:
        output = giving.read().decode("utf-8", "replace").strip()
    # the last line is its report
    try:
        report = _json_object(output.splitlines()[-1] if output else "")
    except ValueError:
        why = output.splitlines()[-1] if output else "it said nothing"
        raise HoldfastError(
            f"The background process ended before its session was open: {why}.",
            hint=f"See the log in {shorten(home.log)}.",
        ) from None
    if "error" in report:
        kind = getattr(errors, report["error"], HoldfastError)
        raise kind(report["message"], hint=report["hint"])
    for line in report["notices"]:
        tell(line)
    session = _read(folder_of(home) / f"{report['id']}.json")
    if session is None:
        raise HoldfastError("The background process is gone.", hint="See `holdfast ps --all`.")
    return session


def _spawned() -> tuple[IO[bytes], IO[bytes]]:
    """Start a process that loads the program itself. Returns its input and its output; raises
    OSError."""
    child = subprocess.Popen(
        background_parent.PROGRAM,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )
    assert child.stdin is not None
    assert child.stdout is not None
    return child.stdin, child.stdout


def _forked(home: Folders) -> tuple[IO[bytes], IO[bytes]] | None:
    """Have one forked by the parent of such processes. None where that is impossible."""
    with ExitStack() as stack:
        (read_order, taking), (giving, write_output) = os.pipe(), os.pipe()
        stack.callback(os.close, read_order)
        stack.callback(os.close, write_output)
        ends = os.fdopen(taking, "wb"), os.fdopen(giving, "rb")
        if background_parent.fork(folder_of(home), (read_order, write_output, write_output)):
            return ends
        for end in ends:
            end.close()
    return None


def serve_as_parent() -> None:
    """Fork background processes for those who ask, if this process was started for that. Returns
    in each of them; see `background_parent.serve`."""
    if stat.S_ISSOCK(os.fstat(0).st_mode):
        background_parent.serve(lambda: _running_in(Path()) > 1)


def _running_in(folder: Path) -> int:
    """The number of processes that run here."""
    known = (_read(path) for path in folder.glob("*.json"))
    return sum(one is not None and one.running and is_running(one) for one in known)


def report_of(error: HoldfastError) -> dict[str, str]:
    """An error as `start` raises it again."""
    kinds = (name for name in _ERRORS if isinstance(error, getattr(errors, name)))
    return {
        "error": next(kinds, "HoldfastError"),
        "message": error.message,
        "hint": error.hint,
    }


# Asking for its session


def request(home: Folders, one: BackgroundSession, *, now: bool = False) -> bool:
    """Ask a process for its session; `now` does not wait for the call that runs. False where it
    is gone. Blocks; raises StorageError."""
    asking = {"pid": os.getpid(), "born": born(os.getpid()), "now": now}
    path = _request_of(home, one.id)
    with os_error_as(StorageError, f"Can't write {shorten(path)}"):
        replace_file(path, json.dumps(asking).encode())
    return send(one, signal.SIGUSR1)


def withdraw(home: Folders, id_: str) -> None:
    """Ask for it no longer."""
    with suppress(OSError):
        _request_of(home, id_).unlink()


def requested(home: Folders, id_: str) -> Literal["", "soon", "now"]:
    """Read if a process that runs asks for a session."""
    try:
        request_data = _json_object(read_small(_request_of(home, id_), follow=False)[0])
    except (OSError, ValueError, RecursionError):
        return ""
    pid, birth = request_data.get("pid"), request_data.get("born")
    if not isinstance(pid, int) or not birth or born(pid) != birth:
        return ""
    return "now" if request_data.get("now") is True else "soon"


def handed_over(home: Folders, id_: str) -> bool:
    """True if a process that has ended let its session go as requested: it leaves nothing."""
    return not (folder_of(home) / f"{id_}.json").exists()


def is_running(one: BackgroundSession) -> bool:
    """True if the very process runs. Blocks."""
    return one.here and bool(one.born) and born(one.pid) == one.born


def send(one: BackgroundSession, number: signal.Signals) -> bool:
    """Signal a process if it is still the one; no other that has got its number since. Blocks."""
    try:
        handle = os.pidfd_open(one.pid) if hasattr(os, "pidfd_open") else None
    except OSError:
        return False
    try:
        if not is_running(one):
            return False
        with suppress(ProcessLookupError, PermissionError):
            if handle is not None and hasattr(signal, "pidfd_send_signal"):
                signal.pidfd_send_signal(handle, number)
            else:
                os.kill(one.pid, number)
            return True
        return False
    finally:
        if handle is not None:
            os.close(handle)


def _request_of(home: Folders, id_: str) -> Path:
    return folder_of(home) / f"{id_}.request"


def lasting_options(options: Options) -> dict[str, Any]:
    """The options with which somebody else may continue the session."""
    return {
        name: value for name, value in options_to_json(options).items() if name not in _NOT_KEPT
    }


def parting_words(home: Folders, id_: str, otherwise: str) -> str:
    """Return the words on leaving a session: where it continues in the background, how to get back,
    and that commands still run."""
    from tui.app.unattended_commands import (  # noqa: PLC0415 - whoever starts one needs none of it
        unattended_commands,
    )

    running = [c for c in unattended_commands(home) if c.id == id_ and c.state == "running"]
    if running:
        otherwise += f"\n{plural(len(running), 'command')} still running: see `holdfast ps`"
    one = _read(folder_of(home) / f"{id_}.json")
    if one is not None and one.running and is_running(one):
        return "\n".join(started_words(one))
    return otherwise


def started_words(one: BackgroundSession) -> tuple[str, str]:
    """Return the message once one runs, and what to do."""
    return f"Running in the background: {one.id}", f"Open it with: holdfast attach {one.id}"
