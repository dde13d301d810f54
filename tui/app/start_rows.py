"""Suggestions for the start of a new session, made from this folder: the last session, uncommitted
changes, the tests. Everything blocks; what can't be found out is left out."""

from __future__ import annotations

import json
import logging
import os
import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import Any, Final

from tui.context.interrupted_calls import interrupted_calls
from tui.core.clock import Clock
from tui.core.dataclass import dataclass
from tui.core.errors import SessionError
from tui.core.files import read_small
from tui.core.formatting import age, plural
from tui.core.git.door import answer
from tui.core.paths import Folders
from tui.core.text_cleaning import one_line
from tui.core.workspace import Workspace, worktree_of
from tui.permissions.plain_environment import plain_environment, repository_objection
from tui.session import catalog
from tui.session.reader import read_ends
from tui.session.records import Record, last_of_turn

log = logging.getLogger(__name__)

ROWS: Final = 3
_GIT_S: Final = 3.0
_LIMIT: Final = 500_000
_SESSIONS: Final = 5
"""Number of sessions that are opened to find one with a conversation."""

_STOPPED: Final = {"error": "stopped at an error", "parked": "waits for the server"}
_LOCKS: Final = {"pnpm-lock.yaml": "pnpm", "yarn.lock": "yarn", "bun.lock": "bun"}
"""Files that say which program runs the scripts of a package.json."""

_PYTEST: Final = re.compile(rb"^\s*\[(tool\.)?pytest\b", re.MULTILINE)
_MAKE_TEST: Final = re.compile(rb"^test\s*:(?!=)", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class StartRow:
    """One thing to begin with. It resumes the session at `path`, else `prompt` is sent; `detail`
    follows the label where there is room."""

    label: str
    detail: str = ""
    prompt: str = ""
    path: Path | None = None


def start_rows(folders: Folders, workspace: Path, clock: Clock) -> list[StartRow]:
    """Return the suggestions of this folder, then examples, at most ROWS."""
    rows: list[StartRow] = []
    finders: tuple[Callable[[], StartRow | None], ...] = (
        lambda: _last_session(folders, workspace, clock.now()),
        lambda: _changes(workspace),
        lambda: _tests(workspace),
    )
    for find in finders:
        try:
            if row := find():
                rows.append(row)
        except Exception:  # the boundary: a strange folder costs a row, nothing else
            log.exception("a row of the first screen can't be made")
    return [*rows, *_examples(workspace, known=bool(rows) and rows[0].path is not None)][:ROWS]


def _last_session(folders: Folders, workspace: Path, now: datetime) -> StartRow | None:
    from tui.session import index  # noqa: PLC0415 - it needs sqlite

    for summary in index.entries(folders.cache, catalog.scan(folders, workspace)[:_SESSIONS]):
        path = Path(summary.path)
        if summary.state == "unreadable" or not (summary.messages and summary.title):
            continue
        if worktree_of(Path(summary.cwd)) != worktree_of(workspace):
            continue
        when = _age(summary.updated, now)
        with suppress(SessionError):
            where = _where_it_stopped(read_ends(path).branch)
            return StartRow(
                f"Resume “{one_line(summary.title)}”", " · ".join(filter(None, (when, where))),
                path=path,
            )  # fmt: skip
    return None


def _age(updated: str, now: datetime) -> str:
    try:
        since = age(datetime.fromisoformat(updated), now)
    except (ValueError, TypeError):
        return ""
    return since if since == "now" or "-" in since else f"{since} ago"


def _where_it_stopped(branch: list[Record]) -> str:
    """Say where the work of a session was cut off; "" where it was not."""
    if calls := [call for call in interrupted_calls(branch) if not call.settled]:
        return f"stopped at {one_line(calls[-1].label) or calls[-1].tool}"
    record = last_of_turn(branch)
    last = record.type if record else ""
    if last in {"user", "tool_result"}:
        return "stopped before the answer"
    return _STOPPED.get(last, "")


def _changes(workspace: Path) -> StartRow | None:
    """Suggest what git calls changed. A repository that could make git run something isn't
    asked."""
    if not any((folder / ".git").exists() for folder in (workspace, *workspace.parents)):
        return None
    area = Workspace(workspace)
    if repository_objection(workspace, area.contains):
        return None
    words = ("status", "--porcelain", "-z", "--no-renames", "--ignore-submodules=all", "--", ".")
    status = answer(workspace, *words, env=plain_environment(area), patience_s=_GIT_S)
    if not status or not (count := status.count("\0")):
        return None
    return StartRow(
        f"Review {plural(count, 'uncommitted change')}",
        prompt="Review my uncommitted changes: find mistakes and what is unfinished.",
    )


def _tests(workspace: Path) -> StartRow | None:
    command = next(_test_commands(workspace), "")
    prompt = f"Run the tests with `{command}` and fix what fails."
    return StartRow("Run the tests and fix failures", command, prompt) if command else None


def _test_commands(workspace: Path) -> Iterator[str]:
    """The commands that run this folder's tests, as its files name them, the likeliest first."""
    project = _read(workspace, "pyproject.toml") or _read(workspace, "setup.cfg")
    tests = any((workspace / name).is_dir() for name in ("tests", "test"))
    if _read(workspace, "pytest.ini") is not None or (
        project and (tests or _PYTEST.search(project))
    ):
        yield "pytest"
    if package := _read(workspace, "package.json"):
        scripts: Any = None
        with suppress(ValueError, RecursionError, LookupError, TypeError):
            scripts = json.loads(package)["scripts"]["test"]
        if isinstance(scripts, str) and "no test specified" not in scripts:
            runner = next((_LOCKS[name] for name in _LOCKS if (workspace / name).exists()), "npm")
            yield f"{runner} run test" if runner == "bun" else f"{runner} test"
    if (workspace / "Cargo.toml").is_file():
        yield "cargo test"
    if (workspace / "go.mod").is_file():
        yield "go test ./..."
    if _MAKE_TEST.search(_read(workspace, "Makefile") or b""):
        yield "make test"


def _examples(workspace: Path, *, known: bool) -> Iterator[StartRow]:
    """Yield what anybody may begin with; `known`: there was a session here before."""
    readme = next(
        (name for name in ("README.md", "README.rst") if (workspace / name).is_file()), ""
    )
    if readme:
        prompt = f"Read {readme} and tell me what this project is about."
        yield StartRow("Explain this project", readme, prompt)
    elif _is_empty(workspace):
        yield StartRow("Ask what Holdfast can do", "", "What can you do here?")
        yield StartRow("Start a project", "in this empty folder", 'Create notes.md with "# Plan"')
    else:
        yield StartRow("Explain this folder", "", "List the files and tell me what they are for.")
    if not known:
        yield StartRow("Take the tour", "5 minutes, offline", "/tour")
    if not any((workspace / name).is_file() for name in ("AGENTS.md", "CLAUDE.md")):
        yield StartRow("Write AGENTS.md", "what every session should know", "/init")


def _is_empty(workspace: Path) -> bool:
    try:
        with os.scandir(workspace) as entries:
            return next(entries, None) is None
    except OSError:
        return True


def _read(workspace: Path, name: str) -> bytes | None:
    try:
        return read_small(workspace / name, limit=_LIMIT)[0]
    except OSError:
        return None
