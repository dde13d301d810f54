"""The scene of the tour: a small repository, and a session that a power cut has damaged."""

from __future__ import annotations

import asyncio
import os
from contextlib import AbstractContextManager, suppress
from pathlib import Path
from typing import Any

from tui.core.clock import Clock
from tui.core.git.checkout import Checkout
from tui.core.git.door import GitError, git
from tui.core.messages import text_block
from tui.core.paths import folders
from tui.demo import guide
from tui.session.session import Session
from tui.tools.paging import number_lines

SETTINGS = """\
[prune]
when = "turns"
after_turns = 2
min_chars = 500
[compaction]
keep_messages = 2
"""
"""Settings that prune a conversation after a few turns, and let it be summarized."""

FILES = {
    "README.md": """\
# Signal

A small program that controls the lamp of a lighthouse. It is made up, like everything in this
folder: a place to try things, removed when the tour ends.

## What it does

- turns the lamp at a steady pace, one flash every ten seconds
- counts the hours the lamp has burned, and says when a new one is due
- keeps a log of every night: the hours, the weather, what was repaired, who was on
  watch, and which ships passed close enough to be named
- lights the second lamp by itself when the first one fails""",
    "notes.md": """\
# Notes

- oil the gears of the lamp
- paint the railing
""",
    "build.sh": """\
awk 'BEGIN { for (part = 1; part <= 20000; part++) print "part " part " of 20000: built" }'
""",
    "watch.sh": """\
flash=0
while [ "$flash" -lt 600 ]; do
    flash=$((flash + 1))
    echo "flash $flash"
    sleep 1
done
""",
}

_KEEPER = {
    f"GIT_{who}_{what}": value
    for who in ("AUTHOR", "COMMITTER")
    for what, value in (("NAME", "Keeper"), ("EMAIL", "keeper@example.org"))
}


def place() -> AbstractContextManager[Path]:
    """Return the folder of a tour, see `tui.demo.guide.place`; `prepare` completes it."""
    return guide.place("tour", FILES, settings=SETTINGS)


def prepare(root: Path, clock: Clock) -> str:
    """Make the project a repository, put a damaged session there, and return the session's id.

    Blocks, and must not be called in an event loop.
    """
    project = root / "project"
    _repository(project)
    return _damaged(project, clock)


def _repository(project: Path) -> None:
    """Make the project a repository. Without git it stays a plain folder: nothing in the tour needs
    it."""
    env = dict.fromkeys(("GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM"), os.devnull) | _KEEPER
    with suppress(GitError):
        git(project, "init", "--quiet", "--template=", "--initial-branch=main", env=env)
        checkout = Checkout.of(project)
        checkout.git("add", "--all", env=env)
        checkout.git("commit", "--quiet", "--message", "A lighthouse", env=env)


def _damaged(project: Path, clock: Clock) -> str:
    """Write a session as the program does, then damage it like a power cut: a torn line, a line of
    NUL bytes, and the last line cut short, so that a call has lost its result."""
    session = Session.create(project, folders=folders(), clock=clock)
    for type_, data in _conversation():
        session.append(type_, **data)
    asyncio.run(session.close())
    assert session.path
    lines = session.path.read_bytes().splitlines(keepends=True)
    torn = next(n for n, line in enumerate(lines) if b'"tool_result"' in line)
    lines[torn] = lines[torn][:70] + b"\n"
    lines.insert(torn + 2, b"\0" * 64 + b"\n")
    lines[-1] = lines[-1][: len(lines[-1]) // 2]
    session.path.write_bytes(b"".join(lines))
    return session.id


def _conversation() -> list[tuple[str, dict[str, Any]]]:
    call = {"type": "tool_use", "id": "toolu_gears", "name": "read_file"}
    call |= {"input": {"path": "notes.md"}}
    result = [text_block(number_lines(FILES["notes.md"], 1))]
    return [
        _asked("The lighthouse keeper asks when the gears were last oiled."),
        _answered(text_block("I'll check the notes."), call),
        ("tool_result", {"call_id": "toolu_gears", "name": "read_file", "content": result,
                         "is_error": False}),
        _answered(text_block("The notes don't say when. They only say that it needs doing.")),
        _asked("Then put it on Monday's list."),
        _answered(text_block("It's on Monday's list, before the railing.")),
        _asked("Thank you."),
    ]  # fmt: skip


def _asked(text: str) -> tuple[str, dict[str, Any]]:
    return "user", {"content": [text_block(text)], "text": text}


def _answered(*content: Any) -> tuple[str, dict[str, Any]]:
    return "assistant", {"content": list(content), "model": "practice", "usage": {}}
