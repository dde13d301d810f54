"""The program behind a screen: what another run or session takes over from it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from tui.app.options.arguments import Options
from tui.app.program import Program


def test_a_run_from_the_screen_has_its_model_and_permissions(tmp_path: Path) -> None:
    asked = Options().having(
        cwd=tmp_path,
        practice=True,
        effort="low",
        no_sandbox=True,
        deny=("run_command(rm *)",),
        permission_mode="plan",
        prompt="hello",
        plain=True,
    )
    run = Program(asked, None).run_options(tmp_path / "TASKS.md")
    assert (run.command, run.batch.tasks, run.cwd) == ("run", tmp_path / "TASKS.md", tmp_path)
    assert run.models == replace(asked.models, profile="default")
    assert (run.permissions.no_sandbox, run.permissions.deny) == (True, ("run_command(rm *)",))
    assert run.permissions.permission_mode is None, "a task in plan mode could change nothing"
    assert (run.prompt, run.screen.plain) == (None, False)
