"""The output of the person's own commands, cut for the model as a tool's is."""

from __future__ import annotations

import asyncio
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from tui.agent.calls.finish import noted
from tui.core.dataclass import dataclass
from tui.core.files import safe_name
from tui.core.messages import ToolOutput, text_block, text_of
from tui.core.output_store import OutputStore
from tui.core.redaction import child_environment
from tui.tools.limits.pipeline import GuardLimits, guard
from tui.tools.output_capture import Capture

if TYPE_CHECKING:
    from tui.agent.background_jobs import BackgroundJobs
    from tui.keeper.command import Starter, SupervisedCommand
    from tui.tools.jobs import Job, Origin

_LIKE: Final = "run_command"
"""The tool whose limits hold for the person's own commands."""


@dataclass(frozen=True, slots=True)
class ShellOutput:
    """Cuts the output of the person's own commands. Full copies go into `folder`."""

    folder: Path
    limits: GuardLimits
    jobs: BackgroundJobs
    """Takes the commands that are moved to the background."""
    outputs: OutputStore | None = None

    def in_front(self) -> AbstractContextManager[asyncio.Event]:
        """Surround a command that runs in front: the event is set once it is to be moved."""
        return self.jobs.ctx.toolbox.jobs.in_front()

    @property
    def starter(self) -> Starter:
        return self.jobs.ctx.toolbox.jobs.starter

    @property
    def environment(self) -> dict[str, str]:
        """Return the variables of a command, which name the session."""
        return child_environment(self.jobs.ctx.session.id)

    async def move(self, command: SupervisedCommand, origin: Origin) -> Job:
        """Keep a command in the background."""
        path = self.place(f"job-{origin.call_id}")
        if origin.hidden:  # the model may read what lies in the workspace
            path = command.folder.with_suffix(".txt")
        return await self.jobs.adopt(command, path=path, origin=origin)

    async def cut(
        self, capture: Capture, name: str, words: str, code: int
    ) -> tuple[str, dict[str, Any] | None]:
        """Return what the model gets of an output, and the receipt if that is not all.

        `words` say how the command ended.
        """
        body = f"{capture.text.rstrip()}\n({words})"
        output = ToolOutput(
            [text_block(body)], details={"exit_code": code}, full=capture.full, raw=capture.raw
        )
        spill = self.place(name)
        guarded = await guard(output, tool=_LIKE, keep="ends", spill=spill, limits=self.limits)
        return text_of(guarded.content), await noted(guarded.receipt, self.outputs)

    def place(self, name: str) -> Path:
        """The lasting name of the full output of the command called `name`."""
        return self.folder / f"{safe_name(name)}.txt"


def drop(capture: Capture) -> None:
    """Remove the copy of an output that nobody will read."""
    if capture.full:
        capture.full.unlink(missing_ok=True)
