"""One session's line in a list. Long files are not read whole: their ends are, and counted."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal, TypeAlias, cast

from tui.core.errors import SessionError
from tui.core.messages import Usage, blocks_of, tool_calls
from tui.session.drafts import LeftBehind
from tui.session.reader import open_session, read, read_ends
from tui.session.records import Record
from tui.session.session import title_of

State: TypeAlias = Literal["ok", "interrupted", "parked", "needs_repair", "unreadable"]

WHOLE = 1024 * 1024
"""Files up to this size are read whole."""

_CHUNK = 1024 * 1024
_MESSAGES = (b'\n{"type":"user",', b'\n{"type":"assistant",')
_TURNS = frozenset({"user", "assistant", "tool_result", "interrupt", "error", "parked"})


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


def id_of(path: Path) -> str:
    """The session id in a file's name, `<time>-<id>.jsonl`."""
    return path.stem.rsplit("-", 1)[-1]


def describe(path: Path) -> Entry:
    """What a list shows of one session. Never raises: an unreadable one says so."""
    try:
        size = path.stat().st_size
        loaded = read(path) if size <= WHOLE else read_ends(path)
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
        title=_title(branch, loaded.left_behind),
        cwd=loaded.header.cwd,
        created=loaded.header.created,
        updated=branch[-1].time if branch else loaded.header.created,
        messages=len(messages) if counted is None else counted,
        tokens=Usage.from_json(usage).total,
        state=_state(branch, problems, loaded.left_behind),
        problems=problems,
    )


def _title(branch: Iterable[Record], left_behind: LeftBehind) -> str:
    title = ""
    for record in branch:
        if record.type == "title" and isinstance(record.data.get("title"), str):
            title = cast("str", record.data["title"])
        elif record.type == "user" and not title:
            title = title_of(record.data)
    return title or title_of({"text": left_behind.prompt})


def _state(branch: Sequence[Record], problems: Sequence[str], left_behind: LeftBehind) -> State:
    if not branch and not left_behind:
        return "unreadable"
    if problems:
        return "needs_repair"
    last = next((r for r in reversed(branch) if r.type in _TURNS), None)
    match last.type if last else "":
        case "":
            return "interrupted" if left_behind else "ok"
        case "error":
            return "ok"
        case "parked":
            return "parked"
        case "assistant" if last and not tool_calls(blocks_of(last.data.get("content"))):
            return "ok"
        case _:
            return "interrupted"


def _count_messages(path: Path) -> int:
    """How many prompts and answers a file of ours holds, by the beginnings of its lines."""
    longest = max(map(len, _MESSAGES))
    count, rest = 0, b""
    with open_session(path) as file:
        while chunk := file.read(_CHUNK):
            seen = rest + chunk
            count += sum(seen.count(mark) for mark in _MESSAGES)
            rest = seen[-(longest - 1) :]
            count -= sum(rest.count(mark) for mark in _MESSAGES)  # they are seen again
    return count
