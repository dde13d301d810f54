"""One session in a span of time: what was asked and done, and all that went otherwise. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from tui.app.morning.exchanges import exchanges
from tui.app.morning.findings import NightFinding, NightPrompt, SessionNight
from tui.app.morning.session_work import NightScope, SessionWork, first_words, masked
from tui.app.session_page.glance import outcome_of
from tui.app.session_report import models
from tui.context.failed_attempts import LostAnswers
from tui.context.frame import FRAME
from tui.context.timeline import CheckRun
from tui.core.formatting import plural
from tui.core.messages import object_of, string_of
from tui.session.reader import LoadedSession
from tui.session.records import (
    CHECKPOINT,
    Header,
    Record,
    is_prompt,
)

_NAMED: Final = 5
"""Places of damage that get a row of their own."""
_STARTED: Final[Mapping[str, str]] = {"print": "-p", "background": "background"}
_OWN: Final = frozenset({"claimed", "unchecked", "waiting"})
"""The kinds of findings of a sub-agent that say nothing of the session that it worked for."""


def session_night(night: SessionNight, loaded: LoadedSession, setting: NightScope) -> bool:
    """Fill in what a session did in a span. False where none of its records is of that time."""
    work = SessionWork.of(night, loaded, setting)
    if not any(map(work.counts, work.records)):
        return False
    titles = [one for one in work.records if one.type == "title" and one.data.get("title")]
    asked = next(filter(is_prompt, work.records), None)
    night.title = first_words(asked) if asked else ""
    night.title = masked(string_of(titles[-1].data["title"])) if titles else night.title
    night.folder = loaded.header.cwd
    night.branch = _git_branch(work.branch)
    night.models = tuple(models(work.mine))
    inside = [record for record in work.records if work.counts(record)]
    night.first, night.last = inside[0].time, inside[-1].time
    night.started_by = _begun_by(loaded.header, work.records)
    prompts = (record for record in inside if is_prompt(record))
    night.work.asked = [NightPrompt(one.id, one.time, first_words(one)) for one in prompts]
    night.work.exchanges = [*exchanges(inside, work.calls)]
    outcome = outcome_of(work.mine, work.steps)
    night.work.turns, night.work.answered = outcome.asked, outcome.answered
    night.work.left = len(work.abandoned_prompts(inside))
    night.work.calls = sum(step.kind == "call" for step in work.steps)
    night.work.files = tuple(outcome.files)
    night.work.commits = [*work.commits()]
    night.work.checkpoints = sum(record.type == CHECKPOINT for record in inside)
    answers = LostAnswers()
    lost = [record for record in work.records if answers.take(record)]
    cut_short = answers.open and not (work.known.running or work.went_on)
    night.work.lost = sum(map(work.counts, lost)) + cut_short
    night.work.checks = sum(bool(step.verdict) for step in work.steps)
    state, ended = work.end()
    night.state = f"{state}, file damaged" if loaded.findings else state
    night.red, night.green = work.timeline.red_runs(), work.timeline.green_runs()
    failed = [*work.failed()]
    night.rows += [
        *work.red(),
        *failed,
        *work.errors(),
        *ended,
        *work.unfinished(),
        *work.goal(),
        *work.jobs(),
        *work.unchecked(),
        *work.refused(inside),
        *work.undone(inside),
        *work.unjudged(failed),
        *damage(loaded),
        *work.clock(inside, setting.now),
        *work.restarts(),
    ]
    for child in setting.sub_agents:
        _add_sub_agent(night, child)
    return True


def _add_sub_agent(night: SessionNight, child: SessionNight) -> None:
    """Add what a sub-agent did and left. A check that was green later, in the session that it
    worked for, is not red any more; where it worked in a copy of the folder, in the same part."""
    reds = {run.step.record: run for run in child.red}
    night.work.checks += child.work.checks
    night.work.calls += child.work.calls
    night.work.commits += child.work.commits
    for row in child.rows:
        if row.kind in _OWN or (row.kind == "red" and _is_green(night, child, reds[row.record])):
            continue
        words = f"Sub-agent {child.id}: {row.words}"
        night.rows.append(row._replace(words=words, command=child.command))


def _is_green(night: SessionNight, child: SessionNight, red: CheckRun) -> bool:
    """True if a red check of a sub-agent was green later in the session that it worked for."""
    here = red._replace(scope=red.scope.moved(child.folder, night.folder))
    return any(run.answers(here) and run.step.time > red.step.time for run in night.green)


def damage(loaded: LoadedSession) -> Iterator[NightFinding]:
    """Yield what in a file can't be read, or isn't understood."""
    for finding in loaded.findings[:_NAMED]:
        yield NightFinding("unknown", f"Damage in the file, {finding.where}: {finding.action}.")
    if (more := len(loaded.findings) - _NAMED) > 0:
        yield NightFinding(
            "unknown", f"{plural(more, 'more place')} in the file damaged.", times=more
        )


def _git_branch(branch: Sequence[Record]) -> str:
    frames = (record for record in reversed(branch) if record.type == FRAME)
    frame = next(frames, None)
    return string_of(object_of(frame.data.get("facts")).get("Git branch")) if frame else ""


def _begun_by(header: Header, records: Sequence[Record]) -> str:
    """Say who began a session, as far as its file tells."""
    if any(record.type == "task" for record in records):
        return "task file"
    if header.started in _STARTED:
        return _STARTED[header.started]
    by_person = any(record.data.get("by") == "person" for record in records)
    return "person" if by_person else "not recorded"
