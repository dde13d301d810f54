"""/hooks: what each runs for, and how it ended."""

from __future__ import annotations

from pathlib import Path

from tui.app.reports.hooks import hook_lines, hook_rows
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
    last = "Ran 2 times, last blocked"
    where = "at most 5 s · /w/.holdfast/hooks.json · yours"
    assert hook_lines(hook_rows(hooks, records)) == [
        "PreToolUse Bash: ./check",
        f"    Runs before a tool call of Bash · {where} · {last}",
        "Stop: ./check",
        "    Runs when the model has finished · at most 60 s · yours · Hasn't run in this session.",
        "settings.json is not valid JSON; its hooks don't run.",
    ]
    assert hook_lines(hook_rows(Hooks(), records)) == []
