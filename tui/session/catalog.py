"""Finds session files (by id, by the beginning of one, the newest of a folder) and sums them up.

Everything here blocks. Lists take summaries from `tui.session.index`, which stores them. Of a
long file, `describe` reads the two ends only, and counts its messages.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import islice
from pathlib import Path, PurePath
from typing import Any, Final, Literal, TypeAlias, cast

from tui.core.dataclass import asdict, dataclass
from tui.core.errors import MissingSessionError, SessionError
from tui.core.facts import DEFAULT_PROFILE
from tui.core.messages import Usage, blocks_of, string_of, tool_calls
from tui.core.paths import Folders, expanded
from tui.core.workspace import worktree_of
from tui.session.drafts import UnsentWork
from tui.session.jsonl import Findings, parse, split
from tui.session.reader import open_session, read, read_ends
from tui.session.records import (
    Record,
    is_answer,
    is_ours,
    is_prompt,
    last_of_turn,
    title_of,
)

_CANDIDATES = 10

log = logging.getLogger(__name__)

SessionFileState: TypeAlias = tuple[int, str, int]
"""A session file: its time of change in nanoseconds, its path, its size."""

ReadProgress: TypeAlias = Callable[[int, int], None]
"""Called with how many files have been read, and of how many."""


def files(folders: Folders, workspace: Path | None = None) -> list[Path]:
    """The session files of a workspace, or all of them, the one written last first."""
    return [Path(path) for _, path, _ in scan(folders, workspace)]


def scan(folders: Folders, workspace: Path | None = None) -> list[SessionFileState]:
    """The session files of a workspace, or all of them, the one changed last first."""
    roots = [folders.sessions_of(workspace)] if workspace else _folders_in(folders.sessions)
    return sorted((state for root in roots for state in _files_in(root)), reverse=True)


def scan_folder(folder: Path) -> list[SessionFileState]:
    """The session files in one folder, in no order; none where it can't be listed."""
    return [*_files_in(folder)]


def scan_children(folders: Folders, workspace: Path | None = None) -> list[SessionFileState]:
    """The sessions of sub-agents, which `scan` leaves out; of a workspace or all of them."""
    roots = [folders.sessions_of(workspace)] if workspace else _folders_in(folders.sessions)
    families = (family for root in roots for family in _folders_in(root))
    return sorted((state for family in families for state in _files_in(family)), reverse=True)


def unreadable_folders(folders: Folders, workspace: Path | None = None) -> list[Path]:
    """The folders of a workspace's sessions, or of all, that can't be listed: `scan` finds nothing
    in them."""
    if _is_closed(folders.sessions):
        return [folders.sessions]
    roots = [folders.sessions_of(workspace)] if workspace else _folders_in(folders.sessions)
    return sorted(filter(_is_closed, roots))


def parent_of(path: Path) -> Path:
    """The file of the session whose sub-agent's file this is."""
    return path.parent.with_name(f"{path.parent.name}.jsonl")


def newest(folders: Folders, workspace: Path) -> Path | None:
    """The session of a workspace that was used last; those of other worktrees don't count."""
    own = worktree_of(workspace)
    every = files(folders, workspace)
    return next((path for path in every if worktree_of(cwd_of(path)) == own), None)


def cwd_of(path: Path) -> Path:
    """The folder that a session was begun in, by its first line; empty where that can't be read."""
    with suppress(SessionError, OSError), open_session(path) as file:
        for value in islice(parse(split(file.read), Findings()), 1):
            return Path(string_of(value[1].get("cwd")))
    return Path()


def is_path(reference: str) -> bool:
    """True if a reference to a session is a path, and no id."""
    return os.sep in reference or reference.endswith(".jsonl") or Path(reference).is_file()


def resolve(reference: str, folders: Folders) -> Path:
    """The file that an id, the unambiguous beginning of an id, or a path refers to.

    A sub-agent's session is found where no other has such an id. Raises SessionError if there is
    none, or more than one.
    """
    if is_path(reference):
        path = expanded(reference)
        if path.exists() or path.parent.is_file():  # a session in a database
            return path
        raise MissingSessionError(f"File not found: {reference}.", hint="Check the path.")
    every = files(folders)
    matches = [path for path in every if reference and id_of(path).startswith(reference)]
    if not matches and reference:
        children = (Path(path) for _, path, _ in scan_children(folders))
        matches = [path for path in children if id_of(path).startswith(reference)]
    exact = [path for path in matches if id_of(path) == reference]
    if len(matches) == 1 or len(exact) == 1:
        return (exact or matches)[0]
    if matches:
        raise SessionError(
            f"{len(matches)} sessions start with {reference}: {_some(matches)}.",
            hint="Give more characters of the id.",
        )
    known = f" The newest are {_some(every)}." if every else " There are no sessions yet."
    raise MissingSessionError(
        f"Session not found: {reference}.{known}", hint="List them with `holdfast sessions list`."
    )


def check_ours(path: Path, folders: Folders) -> None:
    """Raise SessionError for a file that must not be appended to: it has no record of Holdfast's.

    Any file in the folder of the sessions is a session, however damaged; so is an empty file.
    """
    if folders.sessions.resolve() in path.resolve().parents:
        return
    recognised = False
    with open_session(path) as file:
        if not os.fstat(file.fileno()).st_size:
            return
        recognised = any(is_ours(value) for _, value in parse(split(file.read), Findings()))
    if not recognised:
        from zipfile import is_zipfile  # noqa: PLC0415 - seldom needed

        if is_zipfile(path):
            raise SessionError(
                f"{path} looks like a packed session.",
                hint=f"Unpack it first: holdfast sessions unpack {path}",
            )
        from tui.session import importers  # noqa: PLC0415 - seldom needed

        if importers.recognise(path) is not None:
            raise SessionError(
                f"{path} belongs to another program, not Holdfast.",
                hint=f"Import it with: holdfast sessions import {path}",
            )
        raise SessionError(
            f"{path} isn't a session: it contains no Holdfast records.",
            hint="It stays untouched. `holdfast sessions list --all` lists the sessions.",
        )


def _some(paths: Sequence[Path]) -> str:
    more = ", …" if len(paths) > _CANDIDATES else ""
    return ", ".join(id_of(path) for path in paths[:_CANDIDATES]) + more


def _folders_in(root: Path) -> list[Path]:
    try:
        with os.scandir(root) as entries:
            return [Path(item.path) for item in entries if item.is_dir()]
    except OSError:
        return []


def _is_closed(folder: Path) -> bool:
    try:
        with os.scandir(folder):
            return False
    except OSError as error:
        return not isinstance(error, FileNotFoundError)


def _files_in(folder: Path) -> Iterator[SessionFileState]:
    try:
        with os.scandir(folder) as entries:
            yield from (one for item in entries if (one := _file_state(item)))
    except OSError:
        return


def _file_state(item: os.DirEntry[str]) -> SessionFileState | None:
    if not item.name.endswith(".jsonl") or item.is_dir():
        return None
    try:
        state = item.stat()
    except OSError:  # a link to nowhere, say: listed as unreadable
        return 0, item.path, 0
    return state.st_mtime_ns, item.path, state.st_size


SessionState: TypeAlias = Literal["ok", "interrupted", "parked", "needs_repair", "unreadable"]
_STATE_NAMES: Final[Mapping[str, str]] = {
    "ok": "",
    "interrupted": "interrupted",
    "parked": "will retry",
    "needs_repair": "damaged",
    "unreadable": "unreadable",
}


def state_name(state: str) -> str:
    """A state as a person reads it; "" where all is well."""
    return _STATE_NAMES.get(state, state)


WHOLE = 1024 * 1024
"""Files up to this size are read whole."""

_CHUNK = 1024 * 1024
_MESSAGES = (b'\n{"type":"user",', b'\n{"type":"assistant",')


@dataclass(frozen=True, slots=True)
class SessionSummary:
    """One line of `sessions list`. `tokens` is what the context held after the last answer,
    `profile` the one that was used last, "" for none."""

    id: str
    path: str
    title: str
    cwd: str
    created: str
    updated: str
    messages: int
    tokens: int
    state: SessionState
    problems: tuple[str, ...] = ()
    profile: str = ""

    def to_json(self) -> dict[str, Any]:
        return asdict(self) | {"problems": list(self.problems)}


def id_of(path: PurePath) -> str:
    """The session id in a file's name, `<time>-<id>.jsonl`."""
    return path.stem.rsplit("-", 1)[-1]


def describe(path: Path) -> SessionSummary:
    """The summary of one session file. Never raises: the `state` may be "unreadable"."""
    try:
        return _described(path)
    except (SessionError, OSError) as error:
        text = error.message if isinstance(error, SessionError) else str(error)
    except Exception as error:  # the boundary: one file must not cost the list of all others
        log.exception("can't describe %s", path)
        text = f"Can't read {path} ({type(error).__name__})."
    return SessionSummary(id_of(path), str(path), "", "", "", "", 0, 0, "unreadable", (text,))


def _described(path: Path) -> SessionSummary:
    from tui.session.profile_record import profile_of  # noqa: PLC0415 - only what has changed

    size = path.stat().st_size
    loaded = read(path) if size <= WHOLE else read_ends(path)
    counted = None if size <= WHOLE else _count_messages(path)
    branch = loaded.branch
    messages = [r for r in branch if r.type in {"user", "assistant"}]
    usage = next((r.data.get("usage") for r in reversed(branch) if is_answer(r)), None)
    problems = tuple(dict.fromkeys(finding.code for finding in loaded.findings))
    return SessionSummary(
        id=loaded.header.id,
        path=str(path),
        title=_title(branch, loaded.unsent),
        cwd=loaded.header.cwd,
        created=loaded.header.created,
        updated=branch[-1].time if branch else loaded.header.created,
        messages=len(messages) if counted is None else counted,
        tokens=Usage.from_json(usage).context,
        state=_state(branch, problems, loaded.unsent),
        problems=problems,
        profile="" if (profile := profile_of(path)) == DEFAULT_PROFILE else profile,
    )


def _title(branch: Iterable[Record], unsent: UnsentWork) -> str:
    title = ""
    for record in branch:
        if record.type == "title" and isinstance(record.data.get("title"), str):
            title = cast("str", record.data["title"])
        elif not title and is_prompt(record):
            title = title_of(record.data)
    return title or title_of({"text": unsent.prompt})


def _state(branch: Sequence[Record], problems: Sequence[str], unsent: UnsentWork) -> SessionState:
    if not branch and not unsent:
        return "unreadable"
    if problems:
        return "needs_repair"
    last = last_of_turn(branch)
    match last.type if last else "":
        case "":
            return "interrupted" if unsent else "ok"
        case "error" | "goal":
            return "ok"
        case "parked":
            return "parked"
        case "assistant" if last and not tool_calls(blocks_of(last.data.get("content"))):
            return "ok"
        case _:
            return "interrupted"


def _count_messages(path: Path) -> int:
    """Count the prompts and answers in a file of ours by the beginnings of its lines."""
    longest = max(map(len, _MESSAGES))
    count, tail = 0, b""
    with open_session(path) as file:
        while chunk := file.read(_CHUNK):
            seen = tail + chunk
            count += sum(seen.count(mark) for mark in _MESSAGES)
            tail = seen[-(longest - 1) :]
            count -= sum(tail.count(mark) for mark in _MESSAGES)  # they are seen again
    return count
