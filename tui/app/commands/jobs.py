"""What the front ends share of /jobs: which one is meant, and how a background command stands."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tui.core.errors import UsageError
from tui.core.formatting import duration

if TYPE_CHECKING:
    from tui.agent.agent import Agent
    from tui.agent.background_jobs import OwnedJob
    from tui.tools.jobs import Job

NONE = "No background commands in this session."
USAGE = "/jobs, /jobs N, /jobs stop N or /jobs move"


def named(agent: Agent, word: str) -> OwnedJob:
    """The background command of that number in the list. Raises UsageError."""
    jobs, number = agent.jobs.all, word.strip().removeprefix("job-")
    if number.isdecimal() and 1 <= int(number[:9]) <= len(jobs):
        return jobs[int(number) - 1]
    known = f"a number from 1 to {len(jobs)}" if jobs else NONE
    raise UsageError(f"No background command {word.strip()}.", hint=f"Known: {known}")


def state_of(job: Job) -> str:
    """`running`, `exit code 1`, `stopped`; and for how long it has run."""
    return f"{job.state()} · {duration(job.seconds)}"


def about(owned: OwnedJob) -> list[str]:
    """Since when it runs, and whose it is."""
    job = owned.job
    since = f"since {job.since.astimezone():%H:%M:%S}, {job.process}"
    moved = ["moved by you"] if job.origin.moved_by else []
    hidden = ["hidden from the model"] if job.origin.hidden else []
    owner = [f"sub-agent {owned.owner}"] if owned.owner else []
    return [since, *moved, *hidden, *owner]
