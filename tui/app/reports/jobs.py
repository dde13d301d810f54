"""/jobs: the background commands of a session, which one is meant, and how each is."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tui.app.reports import Row
from tui.core.errors import UsageError
from tui.core.formatting import duration, size
from tui.core.paths import shorten
from tui.core.text_cleaning import one_line

if TYPE_CHECKING:
    from tui.agent.agent import Agent
    from tui.agent.background_jobs import OwnedJob
    from tui.tools.jobs import Job

NONE = "No background commands in this session."
USAGE = "/jobs, /jobs N, /jobs stop N or /jobs move"


def named(agent: Agent, word: str) -> OwnedJob:
    """The background command of that number in the list. Raises UsageError."""
    jobs, number = agent.jobs.all, word.strip().removeprefix("job-")
    if number.isdecimal() and len(number) < 10 and 1 <= int(number) <= len(jobs):
        return jobs[int(number) - 1]
    known = f"a number from 1 to {len(jobs)}" if jobs else NONE
    raise UsageError(f"No background command {word.strip()}.", hint=f"Known: {known}")


def state_of(job: Job) -> str:
    """`running`, `exit code 1`, `stopped`; and for how long it has run."""
    return f"{job.state()} · {duration(job.seconds)}"


def job_row(owned: OwnedJob) -> Row:
    """Make the row of a job: its state, its start, its owner, and the place of its output."""
    job = owned.job
    mark, look = _mark(job)
    moved = ["moved by you"] if job.origin.moved_by else []
    hidden = ["hidden from the model"] if job.origin.hidden else []
    owner = [f"sub-agent {owned.owner}"] if owned.owner else []
    since = f"since {job.since.astimezone():%H:%M:%S}, {job.process}"
    where = f"{shorten(job.path)} · {size(job.bytes)}" if job.bytes else "no output yet"
    prefix = f"{owned.owner}: " if owned.owner else ""
    return Row(
        one_line(f"{job.id} {prefix}{job.command}"),
        (state_of(job),),
        job.id,
        mark,
        look,
        (one_line(job.command), " · ".join([since, *moved, *hidden, *owner]), where),
        frozenset({"open", "copy"} if job.ended else {"open", "copy", "stop"}),
    )


def _mark(job: Job) -> tuple[str, str]:
    if not job.ended:
        return "●", "primary"
    if job.stopped:
        return "■", "warning"
    return ("✓", "success") if job.exit_code == 0 else ("✗", "error")
