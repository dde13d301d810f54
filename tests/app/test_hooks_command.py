"""/hooks: what each runs for, and how it ended."""

from __future__ import annotations

from pathlib import Path

from tui.app.commands.hooks import hook_lines
from tui.session.records import Record
from tui.settings.hook_files import Hook, Hooks


def test_those_that_ran_and_those_that_never_did() -> None:
    hooks = Hooks(
        (
            Hook("PreToolUse", "Bash", "./check", 5.0, Path("/w/.holdfast/hooks.json")),
            Hook("Stop", "", "./check"),
        ),
        ("settings.json is not valid JSON; its hooks don't run.",),
    )
    ran = {"event": "PreToolUse", "command": "./check", "outcome": "blocked"}
    records = [Record("hook", str(n), None, "", ran) for n in range(2)]
    assert hook_lines(hooks, records) == [
        "PreToolUse Bash: ./check",
        "    /w/.holdfast/hooks.json · at most 5 s · ran 2 times, last blocked",
        "Stop: ./check",
        "    at most 60 s",
        "settings.json is not valid JSON; its hooks don't run.",
    ]
    assert hook_lines(Hooks(), records) == []
