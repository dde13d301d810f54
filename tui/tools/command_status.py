"""command_status: read the new output of a background command, wait for it, or stop it."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from tui.core.messages import ToolOutput, text_block
from tui.tools.base import Effect, Params, Tool, ToolContext, about
from tui.tools.jobs import Job
from tui.tools.limits.receipt import Keep


class CommandStatusParams(Params, frozen=True, forbid_unknown_fields=True, kw_only=True):
    job: Annotated[str, about("The job id that run_command returned.")] = ""
    action: Annotated[Literal["read", "wait", "stop"], about("What to do; read if left out.")] = (
        "read"
    )
    timeout: Annotated[float, about("Seconds to wait, for wait.", ge=0, le=3600)] = 30


class CommandStatus(Tool[CommandStatusParams]):
    name: ClassVar[str] = "command_status"
    effect: ClassVar[Effect] = "none"
    keep: ClassVar[Keep] = "ends"
    params: ClassVar[type[Params]] = CommandStatusParams

    def subject(self, params: CommandStatusParams) -> str:
        return params.job

    def label(self, params: CommandStatusParams) -> str:
        return f"{params.action} {params.job}" if params.job else "list"

    async def run(self, params: CommandStatusParams, ctx: ToolContext) -> ToolOutput:
        """Read, wait for or stop a job; list the jobs without one. A command that ended with a code
        other than 0 is an error, unless it was stopped."""
        if not params.job:
            return ToolOutput.text("\n".join(map(_line, ctx.jobs.known)) or "(no jobs)")
        job = ctx.jobs.get(params.job)
        if params.action == "wait":
            await job.wait(params.timeout)
        elif params.action == "stop":
            await job.stop()
        output = await job.read(spill=ctx.spill_path, limits=ctx.guard)
        text = output.text or "(no new output)\n"
        text += "" if text.endswith("\n") else "\n"
        output_note = f" · {job.output_note}" if job.output_note else ""
        code = job.exit_code if job.ended else None
        return ToolOutput(
            [text_block(f"{text}[{job.id} · {job.state()} · {job.seconds:.1f} s{output_note}]")],
            is_error=bool(code) and not job.stopped,
            summary=f"{job.id} {job.state()}",
            details={
                "job": job.id,
                "exit_code": code,
                "seconds": round(job.seconds, 3),
                "running": not job.ended,
            },
            full=output.full,
            raw=output.raw,
        )


def _line(job: Job) -> str:
    first = (job.command.strip().splitlines() or [""])[0]
    return f"{job.id} · {job.state()} · {job.process} · {first}"
