"""The commands that judge a case, run in its folder: confined, as a task's commands are. Blocks."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Final

from tui.agent.confined_programs import confinement_of
from tui.agent.launch import Launch
from tui.app.confined_program import Bounds, StopSignal, environment_of, run_confined
from tui.batch.replay.state import CheckResult
from tui.core.clock import Clock
from tui.core.errors import UsageError
from tui.core.redaction import mask
from tui.core.text_cleaning import clean
from tui.permissions.sandbox.walls import Level
from tui.tools.process import QUIET, shell

PATIENCE_S: Final = 900.0
_SHOWN: Final = 2000
"""Characters of a check's output that are kept, the last ones."""


def require_walls(launch: Launch) -> None:
    """Raise UsageError where no sandbox confines checks, unless the person has switched it off."""
    confinement = confinement_of(launch, "replay")
    if confinement.settings.engine == "off":
        return

    async def levels() -> bool:
        try:
            return Level.WORKSPACE in await confinement.levels()
        finally:
            await confinement.close()

    if not asyncio.run(levels()):
        why = confinement.reason or "it confines only commands that write nothing"
        raise UsageError(
            f"Checks run only in the sandbox, and there is none here: {why}.",
            hint="To run them, and the model's commands, without one: --no-sandbox",
        )


def run_checks(
    commands: Sequence[str], launch: Launch, clock: Clock, stopped: StopSignal
) -> tuple[CheckResult, ...]:
    """Run commands in the folder of `launch`, one after the other. Raises ProgramStoppedError,
    SandboxError."""
    return tuple(_run(command, launch, clock, stopped) for command in commands)


def _run(command: str, launch: Launch, clock: Clock, stopped: StopSignal) -> CheckResult:
    confinement = confinement_of(launch, "replay")
    settings, began = confinement.settings, clock.monotonic()
    env = environment_of(confinement) | QUIET
    words = (*shell(env.get("PATH")), command)
    try:
        done = run_confined(
            confinement, words, env, Bounds(PATIENCE_S, stopped, walls=settings.engine != "off")
        )
        code, output = done.code, clean(done.text).strip()
        if done.timed_out:
            code, output = None, f"Stopped after {PATIENCE_S / 60:.0f} minutes."
    except OSError as error:
        code, output = None, f"It couldn't run: {error.strerror or error}."
    seconds, shown = round(clock.monotonic() - began, 3), mask(output)[0][-_SHOWN:]
    return CheckResult(mask(command)[0], code, seconds, shown)  # results are kept and uploaded


def red(results: Sequence[CheckResult]) -> list[CheckResult]:
    """The checks that are not green."""
    return [one for one in results if one.exit_code != 0]


def in_words(results: Sequence[CheckResult]) -> str:
    """Say which checks are red, for a sentence."""
    return "; ".join(
        f"{one.command} ({'stopped' if one.exit_code is None else f'exit {one.exit_code}'})"
        for one in red(results)
    )
