"""Other agents' session files, read as if they were ours.

    recognise(path)            whose session this is, by its content; None if it is nobody's
    load(path)                 the session, as `reader.read` would return one of ours
    usual_folders(home, env)   the folders in which the other agents store their sessions
    find(folders)              the sessions in those folders, the newest first
    scan(folders)              their files, without looking into them

Nothing is ever written to these files: to continue such a session, a copy is made. Damage costs a
line and becomes a finding, as in our own files; so does what isn't taken over (`LEFT_OUT`), counted
by kind. The records are those of the active branch; their ids are the same on every reading, and
the header's `origin` names the agent and its session as `claude_code:ID`. What the session's
sub-agents said is in `children`.
"""

from __future__ import annotations

import json
import os
import re
import stat
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from io import BytesIO
from itertools import islice
from math import inf
from pathlib import Path
from typing import Literal, TypeAlias

from tui.core.clock import timestamp
from tui.core.dataclass import dataclass, replace
from tui.core.errors import SessionError, os_error_as
from tui.core.messages import object_of, string_of
from tui.session import reader
from tui.session.formats import CONVERT, LineFormat, format_of
from tui.session.formats.conversion import (
    Conversion,
    ParsedLine,
    SubAgentFile,
    SubAgentSession,
)
from tui.session.formats.opencode import reading, store
from tui.session.jsonl import Findings, JsonLine, JsonObject, RecordShape, parse, split
from tui.session.reader import LoadedSession, open_session
from tui.session.records import LEFT_OUT, Finding, Header, is_ours

Format: TypeAlias = LineFormat | Literal["opencode"]
Recognised: TypeAlias = Literal["ours"] | Format

_START = re.compile(
    r'\{\s*"(?:type|id|parent|time|parentUuid|parentId|uuid|sessionId|isSidechain|timestamp'
    r'|message|messageId|userType|cwd)"\s*:'
)
_ANY = RecordShape(_START, lambda value: format_of(value) is not None)
_LINE = re.compile(r"line (\d+)")
_MESSAGES = frozenset({"user", "assistant"})
_WITNESSES = 5
"""After this many records of one format, the file is taken to be of that format."""

_HEAD = 256 * 1024
"""Bytes read from a file for its line in a list."""

_MOST_READ = 4 * 1024 * 1024
"""Bytes read from a file to recognize it."""


@dataclass(frozen=True, slots=True)
class ForeignSession:
    """One line of a list of other agents' sessions. `changed` is in nanoseconds since 1970."""

    path: Path
    format: Format
    title: str
    cwd: str
    changed: int
    size: int


def recognise(path: Path) -> Recognised | None:
    """Recognise the program that wrote a session. Raises SessionError where it cannot be read."""
    if store.is_opencode(path):
        return "opencode"
    with open_session(path) as file:
        left = _MOST_READ

        def read(size: int) -> bytes:
            nonlocal left
            data = file.read(min(size, left))
            left -= len(data)
            return data

        with os_error_as(SessionError, f"Can't read {path}"):
            return _recognised(split(read))


def load(path: Path) -> LoadedSession:
    """A session of anybody's, as `reader.read` reads ours. Blocks.

    Raises SessionError where the file cannot be read, or is no session that is known.
    """
    format_ = recognise(path)
    if format_ == "ours":
        return reader.read(path)
    if format_ is None and path.name.endswith(".holdfast.zip"):
        raise SessionError(
            f"{path} is a packed session.", hint="Unpack it first: holdfast sessions unpack FILE"
        )
    if format_ is None:
        raise SessionError(
            f"{path} isn't a session in any known format.",
            hint="Holdfast opens sessions of Holdfast, Claude Code, Codex, opencode, OpenClaw and"
            " pi.",
        )
    findings = Findings()
    if format_ == "opencode":
        stored = store.read(path, findings)
        telling = Conversion(format_, findings)
        reading.convert(stored, telling)
        return _loaded(path, telling, path.parent.stat().st_mtime)
    with open_session(path) as file:
        state = os.fstat(file.fileno())
        with os_error_as(SessionError, f"Can't read {path}"):
            beside = tuple(_sub_agent_files(path, findings)) if format_ == "claude_code" else ()
            return _converted(
                path, format_, split(file.read), state.st_mtime, findings, beside=beside
            )


def usual_folders(home: Path, env: Mapping[str, str] | None = None) -> dict[Format, list[Path]]:
    """List the folders where the other agents keep their sessions. They need not exist."""
    variables = env or {}
    claude = Path(variables.get("CLAUDE_CONFIG_DIR") or home / ".claude")
    agent = Path(variables.get("PI_CODING_AGENT_DIR") or home / ".pi" / "agent")
    openclaw = Path(variables.get("OPENCLAW_STATE_DIR") or home / ".openclaw")
    chatgpt = Path(variables.get("CODEX_HOME") or home / ".codex")
    data = Path(variables.get("XDG_DATA_HOME") or home / ".local" / "share")
    return {
        "claude_code": [claude / "projects"],
        "pi": [agent / "sessions", openclaw / "agents"],
        "codex": [chatgpt / "sessions"],
        "opencode": [data / "opencode"],
    }


def find(folders: Mapping[Format, Iterable[Path]]) -> list[ForeignSession]:
    """The sessions in these folders, the newest first.

    Blocks: the beginning of every file is read. What cannot be read is not listed.
    """
    sessions: list[ForeignSession] = []
    for format_, roots in folders.items():
        for root in roots:
            if format_ == "opencode":
                sessions += _in_database(root / "opencode.db")
            else:
                described = (_describe(path, format_) for path in _files_below(root))
                sessions += [one for one in described if one is not None]
    return sorted(sessions, key=lambda one: (one.changed, str(one.path)), reverse=True)


def scan(folders: Mapping[Format, Iterable[Path]]) -> Iterator[tuple[Format, int, str, int]]:
    """The files in these folders that may be sessions: format, time of change, path and size."""
    for format_, roots in folders.items():
        for root in roots:
            if format_ == "opencode":
                for one in _in_database(root / "opencode.db"):
                    yield format_, one.changed, str(one.path), one.size
                continue
            for path in _files_below(root):
                with suppress(OSError):
                    state = path.stat()
                    if stat.S_ISREG(state.st_mode):
                        yield format_, state.st_mtime_ns, str(path), state.st_size


def _in_database(path: Path) -> list[ForeignSession]:
    return [
        ForeignSession(
            one.path, "opencode", one.title, one.directory, one.changed * 1_000_000, one.size
        )
        for one in store.sessions(path)
    ]


def _recognised(lines: Iterable[JsonLine]) -> Literal["ours"] | LineFormat | None:
    votes: dict[Literal["ours"] | LineFormat, int] = {}
    for _, value in parse(lines, Findings(), _ANY_OR_OURS):
        name = "ours" if is_ours(value) else format_of(value)
        if name is not None:
            votes[name] = votes.get(name, 0) + 1
            if votes[name] == _WITNESSES:
                return name
    return max(votes, key=lambda name: votes[name]) if votes else None


_ANY_OR_OURS = RecordShape(_START, lambda value: is_ours(value) or format_of(value) is not None)


def _converted(
    path: Path,
    format_: LineFormat,
    lines: Iterator[JsonLine],
    changed: float,
    findings: Findings,
    *,
    beside: Sequence[SubAgentFile] = (),
) -> LoadedSession:
    telling = Conversion(format_, findings, beside=beside)
    CONVERT[format_](parse(lines, findings, _ANY), telling)
    return _loaded(path, telling, changed)


def _loaded(path: Path, telling: Conversion, changed: float) -> LoadedSession:
    telling.finish()
    made = timestamp(datetime.fromtimestamp(changed, UTC))
    header = telling.header(path.stem, made)
    if not any(record.type in _MESSAGES for record in telling.records):
        telling.findings.add("B45", path.name, "there is no message in it")
    telling.findings.items.sort(key=_line_of)
    return LoadedSession(
        path,
        header,
        tuple(telling.records),
        telling.findings.all(),
        children=tuple(_child(path, header, one, made) for one in telling.children),
    )


def _child(path: Path, parent: Header, one: SubAgentSession, made: str) -> LoadedSession:
    header = one.told.header(path.stem, made)
    header = replace(header, parent_session=parent.id, parent_call=one.call)
    return LoadedSession(path, header, tuple(one.told.records), ())


def _line_of(finding: Finding) -> float:
    match = _LINE.match(finding.where)
    return int(match[1]) if match else inf


# Files of sub-agents


def _sub_agent_files(path: Path, findings: Findings) -> Iterator[SubAgentFile]:
    """The files of the sub-agents of Claude Code's session in `path`. What else lies there is a
    finding."""
    if path.name.startswith("agent-"):
        return
    folder = path.with_suffix("") / "subagents"
    for each in sorted(folder.rglob("*")):
        if each.name.startswith("agent-") and each.suffix == ".jsonl":
            yield _sub_agent_file(each, str(each.relative_to(path.parent)))
        elif each.is_file() and not each.name.endswith(".meta.json"):
            name = str(each.relative_to(path.parent))
            findings.add(LEFT_OUT, name, "left out: no sub-agent's session")
    for each in sorted(path.parent.glob("agent-*.jsonl")):
        if _session_of(each) == path.stem:
            yield _sub_agent_file(each, each.name)


def _sub_agent_file(path: Path, name: str) -> SubAgentFile:
    findings, facts = Findings(), JsonObject()
    places: list[ParsedLine] = []
    with suppress(OSError, ValueError):
        facts = object_of(json.loads(path.with_suffix(".meta.json").read_bytes()))
    try:
        with open_session(path) as file:
            places = list(parse(split(file.read), findings, _ANY))
    except (SessionError, OSError) as error:
        findings.add("B52", "file", f"left out: {getattr(error, 'message', error)}")
    return SubAgentFile(name, places, facts, findings)


def _session_of(path: Path) -> str:
    """The session that a sub-agent's file names in its first records."""
    try:
        with open_session(path) as file:
            head = file.read(_HEAD)
    except (SessionError, OSError):
        return ""
    records = (value for _, value in parse(split(BytesIO(head).read), Findings(), _ANY))
    return next((id_ for value in records if (id_ := string_of(value.get("sessionId")))), "")


def _files_below(root: Path) -> Iterator[Path]:
    """The session files in a folder and below; those of sub-agents are parts of others."""
    for folder, below, names in os.walk(root):
        below[:] = [name for name in below if name != "subagents"]
        for name in names:
            if name.endswith(".jsonl") and not name.startswith("agent-"):
                yield Path(folder, name)


def _describe(path: Path, format_: LineFormat) -> ForeignSession | None:
    """A file's line in a list, from its beginning; None where nothing in it can be read."""
    try:
        with open_session(path) as file:
            state = os.fstat(file.fileno())
            head = file.read(_HEAD)
    except (SessionError, OSError):
        return None
    if len(head) == _HEAD and b"\n" in head:
        head = head[: head.rfind(b"\n") + 1]
    lines = list(islice(split(BytesIO(head).read), 2000))
    converted = _converted(path, format_, iter(lines), state.st_mtime, Findings())
    if not converted.records:
        return None
    titles = (r.data["title"] for r in reversed(converted.records) if r.type == "title")
    title = str(next(titles, ""))
    cwd = converted.header.cwd
    return ForeignSession(path, format_, title, cwd, state.st_mtime_ns, state.st_size)
