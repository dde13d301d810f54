"""Which sessions there are: listed, named by a prefix, or the newest of a folder.

Everything here blocks. Long files are not read whole: their ends are, and their lines counted.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal, TypeAlias, cast

from tui.errors import SessionError
from tui.messages import Usage, blocks_of, tool_calls
from tui.paths import Folders
from tui.session.lines import Findings, Line, parse, split
from tui.session.reader import Loaded, assemble, open_session, read
from tui.session.records import Record, is_ours
from tui.session.session import title_of

State: TypeAlias = Literal["ok", "interrupted", "parked", "needs_repair", "unreadable"]

WHOLE = 1024 * 1024
"""Files up to this size are read whole."""

_END = 128 * 1024
_CHUNK = 1024 * 1024
_MESSAGES = (b'\n{"type":"user",', b'\n{"type":"assistant",')
_CANDIDATES = 10


@dataclass(frozen=True, slots=True)
class Entry:
    """One line of `sessions list`. `tokens` is what the context held after the last answer."""

    id: str
    path: str
    title: str
    cwd: str
    created: str
    updated: str
    messages: int
    tokens: int
    state: State
    problems: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        return asdict(self) | {"problems": list(self.problems)}


def entries(folders: Folders, workspace: Path | None = None) -> list[Entry]:
    """The sessions of a workspace, or all of them, the one used last first."""
    return [describe(path) for path in files(folders, workspace)]


def files(folders: Folders, workspace: Path | None = None) -> list[Path]:
    """The session files of a workspace, or all of them, the one written last first."""
    roots = [folders.sessions_of(workspace)] if workspace else _folders_in(folders.sessions)
    found = [(changed, path) for root in roots for changed, path in _files_in(root)]
    return [path for _, path in sorted(found, reverse=True)]


def newest(folders: Folders, workspace: Path) -> Path | None:
    """The session of a workspace that was used last."""
    return next(iter(files(folders, workspace)), None)


def resolve(reference: str, folders: Folders) -> Path:
    """The file of an id, of an unambiguous beginning of one, or of a path.

    Raises SessionError where there is none, or more than one.
    """
    if os.sep in reference or reference.endswith(".jsonl"):
        path = Path(reference).expanduser()
        if path.exists():
            return path
        raise SessionError(f"There is no file {reference}.", hint="Check the path.")
    every = files(folders)
    found = [path for path in every if reference and id_of(path).startswith(reference)]
    exact = [path for path in found if id_of(path) == reference]
    if len(found) == 1 or len(exact) == 1:
        return (exact or found)[0]
    if found:
        raise SessionError(
            f"{len(found)} sessions begin with {reference}: {_some(found)}.",
            hint="Give more characters of the id.",
        )
    known = f" The newest are {_some(every)}." if every else " There are no sessions yet."
    raise SessionError(
        f"There is no session {reference}.{known}", hint="`holdfast sessions list` shows them."
    )


def check_ours(path: Path, folders: Folders) -> None:
    """Raise SessionError for a file that is not to be gone on with: nothing in it is ours.

    Whatever lies in the folder of the sessions is a session, however damaged; so is an empty
    file. Nothing is ever appended to anything else.
    """
    if folders.sessions.resolve() in path.resolve().parents:
        return
    found = False
    with open_session(path) as file:
        if not os.fstat(file.fileno()).st_size:
            return
        found = any(is_ours(value) for _, value in parse(split(file.read), Findings()))
    if not found:
        raise SessionError(
            f"{path} is not a session: there is no record of Holdfast's in it.",
            hint="It is left as it is. `holdfast sessions list --all` shows the sessions.",
        )


def id_of(path: Path) -> str:
    """The session id in a file's name, `<time>-<id>.jsonl`."""
    return path.stem.rsplit("-", 1)[-1]


def describe(path: Path) -> Entry:
    """What a list shows of one session. Never raises: an unreadable one says so."""
    try:
        size = path.stat().st_size
        loaded = read(path) if size <= WHOLE else _read_ends(path, size)
        counted = None if size <= WHOLE else _count_messages(path)
    except (SessionError, OSError) as error:
        text = error.message if isinstance(error, SessionError) else str(error)
        return Entry(id_of(path), str(path), "", "", "", "", 0, 0, "unreadable", (text,))
    branch = loaded.branch
    messages = [r for r in branch if r.type in {"user", "assistant"}]
    usage = next((r.data.get("usage") for r in reversed(branch) if r.type == "assistant"), None)
    problems = tuple(dict.fromkeys(finding.code for finding in loaded.findings))
    return Entry(
        id=loaded.header.id,
        path=str(path),
        title=_title(branch),
        cwd=loaded.header.cwd,
        created=loaded.header.created,
        updated=branch[-1].time if branch else loaded.header.created,
        messages=len(messages) if counted is None else counted,
        tokens=Usage.from_json(usage).total,
        state=_state(branch, problems),
        problems=problems,
    )


def _some(paths: Sequence[Path]) -> str:
    more = ", …" if len(paths) > _CANDIDATES else ""
    return ", ".join(id_of(path) for path in paths[:_CANDIDATES]) + more


def _folders_in(root: Path) -> list[Path]:
    try:
        return [path for path in root.iterdir() if path.is_dir()]
    except OSError:
        return []


def _files_in(folder: Path) -> Iterator[tuple[int, Path]]:
    try:
        with os.scandir(folder) as found:
            for item in found:
                if item.name.endswith(".jsonl") and not item.is_dir():
                    yield item.stat().st_mtime_ns, Path(item.path)
    except OSError:
        return


def _title(branch: Iterable[Record]) -> str:
    title = ""
    for record in branch:
        if record.type == "title" and isinstance(record.data.get("title"), str):
            title = cast("str", record.data["title"])
        elif record.type == "user" and not title:
            title = title_of(record.data)
    return title


def _state(branch: Sequence[Record], problems: Sequence[str]) -> State:
    if not branch:
        return "unreadable"
    if problems:
        return "needs_repair"
    turns = {"user", "assistant", "tool_result", "interrupt", "error"}
    last = next((r for r in reversed(branch) if r.type in turns), None)
    if last is None or last.type == "error":
        return "ok"
    if last.type == "assistant":
        return "interrupted" if tool_calls(blocks_of(last.data.get("content"))) else "ok"
    return "interrupted"


def _read_ends(path: Path, size: int) -> Loaded:
    """The records at the beginning and the end of a long file, as if nothing was between."""
    findings = Findings()
    with path.open("rb") as file:
        head = file.read(_END)
        file.seek(size - _END)
        tail = file.read(_END)
        changed = os.fstat(file.fileno()).st_mtime
    head = head[: head.rfind(b"\n") + 1]
    start = tail.find(b"\n") + 1
    lines = [*_lines(head), *_lines(tail[start:], offset=size - _END + start)]
    objects = list(parse(lines, findings))
    seen = assemble(path, objects, changed, Findings())  # the gap is no damage
    return Loaded(path, seen.header, seen.records, findings.all())


def _lines(data: bytes, offset: int = 0) -> list[Line]:
    given = iter((data, b""))
    found = split(lambda _: next(given))
    return [Line(n.number, n.offset + offset, n.data, n.ended) for n in found]


def _count_messages(path: Path) -> int:
    """How many prompts and answers a file of ours holds, by the beginnings of its lines."""
    longest = max(map(len, _MESSAGES))
    count, rest = 0, b""
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK):
            seen = rest + chunk
            count += sum(seen.count(mark) for mark in _MESSAGES)
            rest = seen[-(longest - 1) :]
            count -= sum(rest.count(mark) for mark in _MESSAGES)  # they are seen again
    return count
