"""What is printed on a terminal never steers it, wherever its words come from."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.terminal import HOLDFAST, Terminal

EVIL = "\x1b]0;OWNED\x07\x1b[2J\x9b31m\x1b]52;c;QUJD\x07\u202eEND"
STEERS = ("\x1b", "\x07", "\x9b", "\u202e")


@pytest.mark.parametrize(
    "arguments",
    [
        ("doctor",),
        ("mcp", "list"),
        ("-p", f"hi {EVIL}", "--practice"),
        ("logs", EVIL),
        ("help", EVIL),
        ("run", "T.md", "--dry-run"),
        ("-p", "x", "--model", EVIL, "--practice"),
        ("sessions", "show", EVIL),
    ],
)
def test_no_command_lets_it_through(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    root = tmp_path / EVIL
    root.mkdir()
    (root / ".mcp.json").write_text(json.dumps({"mcpServers": {EVIL: {"command": EVIL}}}))
    (root / "T.md").write_text(f"- [ ] look at {EVIL}\n")
    env = {"HOME": str(tmp_path), "USER": EVIL, "PATH": "/usr/bin:/bin", "LANG": "C.UTF-8"}
    with Terminal([*HOLDFAST, *arguments], cwd=root, env=env) as terminal:
        terminal.exit_code()
        shown = terminal.raw.decode("utf-8", "replace")
    assert shown.strip()
    assert not [mark for mark in STEERS if mark in shown]
