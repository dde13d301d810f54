"""Commands of sessions that nobody has open: what runs on after a kill or a lost terminal, and what
has ended since and was not taken over yet."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from tui.agent.supervised_commands import ends_in
from tui.core.clock import Clock
from tui.core.dataclass import asdict, dataclass
from tui.core.errors import SessionError
from tui.core.facts.work import END_UNKNOWN
from tui.core.formatting import shortened
from tui.core.messages import string_of
from tui.core.paths import Folders
from tui.core.text_cleaning import one_line
from tui.keeper.command import Kept, SupervisedCommand, command_folders, note, state_of
from tui.keeper.folder import CALL
from tui.session import catalog
from tui.session.lock import holder
from tui.session.reader import read

_COMMAND_CHARS: Final = 60
_WORDS: Final[dict[Kept, str]] = {
    "running": "still runs",
    "finished": "has ended",
    "unstarted": "not started",
    "lost": END_UNKNOWN,
    "": "gone",
}


@dataclass(frozen=True, slots=True)
class UnattendedCommand:
    """One of them. `id` is the session that takes it over, and `path` its file, "" where that is
    gone; `sub_agent`: a sub-agent of it started the command. `since` is a timestamp. `state` is ""
    where its keeper was killed, as by a restart of the machine."""

    id: str
    path: str
    folder: Path
    command: str
    cwd: str
    since: str
    state: Kept
    sub_agent: bool = False

    @property
    def words(self) -> str:
        """Its state, in words."""
        by = " (sub-agent)" if self.sub_agent else ""
        return f"{_WORDS[self.state]}{by}: {shortened(one_line(self.command), _COMMAND_CHARS)}"

    def to_json(self) -> dict[str, Any]:
        """For `ps --json`."""
        state = {"running": "command_running", "finished": "command_ended"}.get(self.state)
        about = asdict(self) | {"state": state or "command_cut_off", "folder": str(self.folder)}
        return about | {"detail": self.words}


def unattended_commands(home: Folders) -> list[UnattendedCommand]:
    """All of them, those of one session together. Blocks."""
    commands: list[UnattendedCommand] = []
    with suppress(OSError):
        for place in sorted(home.running.iterdir()):
            commands += _in_place(place)
    return commands


async def end_commands(commands: Sequence[UnattendedCommand], clock: Clock) -> list[str]:
    """End those that run: SIGTERM, and SIGKILL two seconds later. How each ended stays for its
    session; where that is gone, nothing stays. Returns what could not be ended, in words."""
    ended = await asyncio.gather(*(_end(one, clock) for one in commands))
    return [one.words for one, over in zip(commands, ended, strict=True) if not over]


async def _end(one: UnattendedCommand, clock: Clock) -> bool:
    over = True
    if one.state == "running" and (command := SupervisedCommand.take_over(one.folder)) is not None:
        await command.stop(clock)
        over = command.end is not None
        command.close()
    if over and not one.path:
        await asyncio.to_thread(shutil.rmtree, one.folder, ignore_errors=True)
        with suppress(OSError):
            one.folder.parent.rmdir()
    return over


def _in_place(place: Path) -> list[UnattendedCommand]:
    """The commands of one session, unless somebody has it open."""
    commands: list[UnattendedCommand] = []
    for folder in command_folders(place):
        call = note(folder, CALL)
        own, parent = _session_of(string_of(call.get("session")))
        path, state = parent or own, state_of(folder)
        is_open = path is not None and holder(path) is not None
        if not is_open and folder.is_dir() and not (state != "running" and _is_known(call, own)):
            commands.append(
                UnattendedCommand(
                    id=catalog.id_of(path) if path else place.name,
                    path=str(path or ""),
                    folder=folder,
                    command=string_of(call.get("command")),
                    cwd=string_of(call.get("cwd")),
                    since=string_of(call.get("at")),
                    state=state,
                    sub_agent=parent is not None,
                )
            )
    return commands


def _is_known(call: Mapping[str, Any], session: Path | None) -> bool:
    """True if the session has recorded how a command ended; then its folder only stayed behind."""
    with suppress(SessionError, OSError):
        named = (string_of(call.get("call_id")), string_of(call.get("job")))
        return session is not None and named in ends_in(read(session).records)
    return False


def _session_of(noted: str) -> tuple[Path | None, Path | None]:
    """The file of a session that was noted, and that of its parent, where they exist."""
    path = Path(noted)
    if not path.is_absolute() or not path.is_file():
        return None, None
    parent = catalog.parent_of(path)
    return path, parent if parent.is_file() else None
