"""The result of `holdfast bisect`, in words and as JSON."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from tui.agent.limits import session_cost
from tui.app.options.arguments import Options
from tui.app.session_report import allowed_by
from tui.app.workspace_diff import diff_text
from tui.cli.session_io import print_json
from tui.context import bisection
from tui.context.bisection import FirstFailure, NoFirstFailure, Verdict
from tui.context.call_origin import (
    CallOrigin,
    SeenContext,
    background_commands,
    origin_of,
    seen_at,
)
from tui.context.session_states import FilesState, SessionFiles
from tui.context.workspace_changes import WorkspaceChanges
from tui.core import facts
from tui.core.config import Price
from tui.core.dataclass import dataclass
from tui.core.formatting import duration, money, plural, shortened, tokens
from tui.core.messages import Usage, string_of
from tui.core.redaction import mask, mask_values
from tui.core.retold import retold
from tui.core.standard_output import hanging, note, note_wrapped, print_text, terminal_width
from tui.core.text_cleaning import one_line
from tui.session.checkpoints.entries import Change, CheckpointError
from tui.session.checkpoints.scratch import differing
from tui.session.reader import LoadedSession
from tui.session.records import FILE_CHANGE, Record, can_be_typed, fork_line, is_prompt, title_of

_NAMED: Final = 12
_LINES: Final = 20
_CHARS: Final = 160


@dataclass(frozen=True, slots=True)
class BisectState:
    """A state in the order of the search, and the session that it is of. `task` is the number of
    the task in a run, 0 in a session."""

    session: LoadedSession
    files: FilesState
    task: int = 0

    @property
    def name(self) -> str:
        """A name that tells it from the other states of the search."""
        return f"{self.session.header.id} {self.files.key}"

    @property
    def record(self) -> Record:
        """The record by which the state was there."""
        return self.session.branch[self.files.place]


@dataclass(frozen=True, slots=True)
class Judgement:
    """The verdict on a state, with the exit codes of the command's runs; `why` it was skipped.
    `output` and `seconds` are those of its first run that failed, otherwise of the last."""

    verdict: Verdict
    codes: tuple[int, ...] = ()
    why: str = ""
    output: str = ""
    seconds: float = 0.0
    timed_out: bool = False

    @property
    def flaky(self) -> bool:
        return bisection.is_flaky(self.codes)


@dataclass(slots=True)
class BisectReport:
    """The result of a search, with all that it is told from."""

    states: Sequence[BisectState]
    judged: Mapping[int, Judgement]
    result: FirstFailure | NoFirstFailure
    kept: SessionFiles
    command: str
    lent: Sequence[str] = ()
    missing: Sequence[str] = ()
    changed: Sequence[str] = ()
    pruned: int = 0


@dataclass(frozen=True, slots=True)
class _Made:
    """The making of a state: by a call, with its origin, or by somebody else."""

    state: BisectState
    origin: CallOrigin | None
    seen: SeenContext | None
    usd: float | None
    sub_agent: str = ""
    beside: tuple[str, ...] = ()
    """Commands that ran in the background, and may have changed files, too."""

    @property
    def title(self) -> str:
        """The call in a few words, or who else it was."""
        if self.origin is not None:
            return one_line(f"{self.origin.tool} {self.origin.subject}")
        match self.state.files.by:
            case "rewind":
                return "a rewind, which put files back"
            case "job":
                return f"a command in the background: {'; '.join(self.beside) or 'unknown'}"
            case "call":
                return "a call that isn't in the record any more"
            case _:
                return "nobody in the session: an editor, git or another program"


def print_report(report: BisectReport, options: Options, prices: Mapping[str, Price]) -> int:
    """Print the result. Returns the exit code: 0 where the change was found."""
    result = report.result
    made = _makers(report, prices)
    diff = _diff(report) if isinstance(result, FirstFailure) else ""
    if options.json:
        told, secrets = mask_values(_to_json(report, made, diff))
        print_json({**told, "secrets": secrets})
    else:
        width = terminal_width(sys.stdout)
        if isinstance(result, FirstFailure):
            lines = _failure_lines(report, result, made, diff, width)
        else:
            lines = iter(_no_failure_lines(report, result, width))
        text, secrets = mask("\n".join(lines))  # it is pasted into issues
        print_text(text)
        width = terminal_width(sys.stderr)
        for text in _remarks(report):
            note_wrapped(text)
        if secrets:
            note(f"Removed {plural(secrets, 'secret')}.")
        for what, command in _next_commands(options, made):
            _note_command(what, command, width)
    return 0 if len(made) == 1 and not _unsure(report) else 1


def _makers(report: BisectReport, prices: Mapping[str, Price]) -> list[_Made]:
    result = report.result
    if not isinstance(result, FirstFailure):
        return []
    found = [n for n in result.candidates if _differs(report, n)]
    return [_made(report.states[n], prices) for n in found or result.candidates]


def _unsure(report: BisectReport) -> list[int]:
    """The one or two states found in which runs of the command disagree."""
    result = report.result
    if not isinstance(result, FirstFailure):
        return []
    return [
        n
        for n in (result.passes, result.fails)
        if not bisection.agree(report.judged[n].codes, report.judged[n].verdict)
    ]


def _differs(report: BisectReport, n: int) -> bool:
    """True unless a state is the one before: a checkpoint that found nothing changed."""
    before, state = report.states[n - 1], report.states[n]
    try:
        return bool(differing(report.kept.state(before.files), report.kept.state(state.files)))
    except CheckpointError:
        return True


def _made(state: BisectState, prices: Mapping[str, Price]) -> _Made:
    records, files = state.session.branch, state.files
    beside = tuple(background_commands(records[: files.place + 1]))
    if files.by != "call":
        return _Made(state, None, None, None, beside=beside)
    origin = origin_of(records[: files.place + 1], files.call_id)
    # the permission and the result may be recorded after the state
    origin = origin_of(records, files.call_id) if origin is not None else None
    if origin is None:
        return _Made(state, None, None, None)
    usd = session_cost([origin.answer], prices).session.usd if origin.answer else None
    child = string_of(state.record.data.get("session")) if state.record.type == FILE_CHANGE else ""
    if files.writes:  # a file tool's, by its hash
        beside = ()
    return _Made(state, origin, seen_at(records, origin.request), usd, child, beside)


def _note_command(what: str, command: str, width: int | None) -> None:
    """Say what one may do next; a command that is too long for the line has one of its own, to be
    copied."""
    line = f"{what}: {command}"
    if width is not None and len(line) > width:
        note(f"{what}:")
        line = f"  {command}"
    note(line)


def _failure_lines(
    report: BisectReport,
    result: FirstFailure,
    made: Sequence[_Made],
    diff: str,
    width: int | None,
) -> Iterator[str]:
    count, command = len(report.states), one_line(report.command)
    if unsure := _unsure(report):
        where = " and ".join(f"{_failed(report, n)} in state {n + 1:,}" for n in unsure)
        head = f"`{command}` is flaky, so no call is named for sure: {where}. Perhaps:"
        yield from hanging("", head, width)
        yield ""
    if len(made) > 1:
        head = (
            f"`{command}` passes in state {result.passes + 1:,} of {count:,} and fails in state"
            f" {result.fails + 1:,}. {_between(result)}, so it is one of these:"
        )
        yield from hanging("", head, width)
        for one in made[:_NAMED]:
            yield from hanging(f"  {_when(one.state)}  ", _cut(one.title), width)
        if len(made) > _NAMED:
            yield f"  and {len(made) - _NAMED} more"
        return
    judgement = report.judged[result.fails]
    head = f"`{command}` fails from state {result.fails + 1:,} of {count:,} on, made by:"
    yield from hanging("", head, width)
    yield ""
    yield from _call(made[0], width)
    yield ""
    yield diff.rstrip("\n") or "(no file that git doesn't ignore is different)"
    if said := _output_lines(judgement):
        yield ""
        yield f"The command said ({_ending(judgement)}):"
        yield from said


def _cut(title: str) -> str:
    """A title that is not too long for a line or two; no half of a key is left at its end."""
    if len(title) <= _CHARS:
        return title
    masked, _ = mask(title)
    return shortened(masked, _CHARS)


def _between(result: FirstFailure) -> str:
    """Say of the states between the two why none of them was judged."""
    if not result.untried:
        return "Those between were skipped"
    skipped = result.fails - result.passes - 1 - result.untried
    return f"Of those between, {skipped:,} were skipped and {result.untried:,} weren't tried"


def _output_lines(judgement: Judgement | None) -> list[str]:
    """The end of what a command wrote, as lines."""
    output = judgement.output.strip("\n") if judgement else ""
    return [f"  {line}" for line in output.splitlines()[-_LINES:]]


def _call(made: _Made, width: int | None) -> Iterator[str]:
    state, origin = made.state, made.origin
    yield from hanging("", _cut(made.title), width)
    rows: list[tuple[str, str]] = []
    if state.task:
        rows.append(("task", f"{state.task} of the run"))
    rows.append(("session", state.session.header.id))
    rows.append(("time", _when(state)))
    if origin is None:
        before = state.files.before
        prompt = _prompt_before(state)
        if prompt:
            rows.append(("prompt", prompt))
        if before >= 0:
            since = state.session.branch[before].time[:19].replace("T", " ")
            rows.append(("since", f"{since} UTC"))
    else:
        rows += _origin_rows(made, origin)
    room = max(len(name) for name, _ in rows) + 2
    for name, text in rows:
        yield from hanging(f"  {name:<{room}}", one_line(text), width)


def _origin_rows(made: _Made, origin: CallOrigin) -> Iterator[tuple[str, str]]:
    if origin.prompt_text:
        yield "prompt", origin.prompt_text
    if made.beside:
        yield "beside", f"{one_line('; '.join(made.beside))}, in the background"
    if made.sub_agent:
        yield "sub-agent", f"in its session {made.sub_agent}"
    if origin.model:
        request = f", request {origin.request}" if origin.request else ""
        yield "model", f"{origin.model}{request}"
    if (seen := made.seen) is not None:
        usage = Usage.from_json(origin.answer.data.get("usage") if origin.answer else None)
        words = [plural(seen.messages, "message")]
        if size := usage.total - usage.output_tokens:
            words.append(f"{tokens(size)} tokens")
        if seen.hidden:
            words.append(f"{plural(seen.hidden, 'result')} hidden or left out")
        if seen.summarized:
            words.append("older ones as a summary")
        yield "had seen", ", ".join(words)
        names = [_below(made, path) for path in seen.read]
        more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
        yield "had read", (", ".join(names[-_NAMED:]) + more) if names else "no file"
    yield "approval", allowed_by(_permission(origin))
    if made.usd is not None:
        yield "cost", f"{money(made.usd)} for the answer with this call"


def _permission(origin: CallOrigin) -> facts.PermissionAnswered | None:
    told = [fact for _, fact in retold([origin.permission] if origin.permission else [])]
    return next((one for one in told if isinstance(one, facts.PermissionAnswered)), None)


def _below(made: _Made, path: str) -> str:
    root = made.state.session.header.cwd
    return one_line(path.removeprefix(f"{root}/"))


def _prompt_before(state: BisectState) -> str:
    records = reversed(state.session.branch[: state.files.place + 1])
    return next((title_of(one.data) for one in records if is_prompt(one)), "")


def _when(state: BisectState) -> str:
    return f"{state.record.time[:19].replace('T', ' ')} UTC"


def _ending(judgement: Judgement) -> str:
    if judgement.timed_out:
        return f"stopped after {duration(judgement.seconds)}"
    code = next((one for one in judgement.codes if one), 0)
    return f"exit code {code}"


def _diff(report: BisectReport) -> str:
    assert isinstance(report.result, FirstFailure)
    one, other = (report.states[n] for n in (report.result.passes, report.result.fails))
    try:
        old, new = report.kept.state(one.files), report.kept.state(other.files)
    except CheckpointError as error:
        return f"The difference can't be shown: {error.message}"
    root = report.kept.root
    changes = tuple(
        Change(root / os.fsdecode(path), was, now)
        for path, (was, now) in differing(old, new).items()
    )
    return diff_text(WorkspaceChanges(own=changes), root, report.kept.content)


def _no_failure_lines(report: BisectReport, result: NoFirstFailure, width: int | None) -> list[str]:
    count, n, command = len(report.states), result.state, one_line(report.command)
    where = f"state {n + 1:,} of {count:,} ({_when(report.states[n])})"
    if result.reason == "unjudged":
        tried = [one for one in report.judged.values() if one.verdict == "skipped"]
        judgement = next((one for one in tried if one.output), None)
        why = "; ".join(dict.fromkeys(one.why for one in tried))
        if len(tried) < count:
            text = f"{len(tried)} of {count:,} states were tried, and none could be judged: {why}."
        else:
            text = f"No state could be judged: {why}."
        return [*hanging("", text, width), *_output_lines(judgement)]
    if result.reason == "passes":
        at = "at the end, in" if n == count - 1 else "in the last state that could be judged,"
        text = (
            f"`{command}` passes {at} {where}: nothing is to be found. If it fails in your folder,"
            " the cause is what a scratch copy lacks, or came later."
        )
        return hanging("", text, width)
    text = (
        f"`{command}` fails already at the beginning, in {where}, and wherever else it was tried:"
        f" it has to pass somewhere before. {_perhaps(report.pruned)}"
    )
    return [*hanging("", text, width), *_output_lines(report.judged.get(n))]


def _perhaps(pruned: int) -> str:
    """Say why a command may fail everywhere."""
    lacks = "it needs what a scratch copy lacks, such as .git or the network."
    if not pruned:
        return f"Perhaps {lacks}"
    before = f"{plural(pruned, 'state')} before that"
    return f"Perhaps it did in one of the {before}, which aren't stored any more, or {lacks}"


def _remarks(report: BisectReport) -> Iterator[str]:
    result = report.result
    if isinstance(result, FirstFailure) and result.fails_before:
        yield (
            "It fails in the first state, too: this is the last change from passing to failing, as"
            " far as was tried."
        )
    skipped = [n for n, one in report.judged.items() if one.verdict == "skipped"]
    flaky = [n for n, one in report.judged.items() if one.flaky]
    if skipped:
        why = ", ".join(dict.fromkeys(report.judged[n].why for n in skipped))
        yield f"Skipped: {_numbers(skipped)} ({why})."
    for n in sorted(flaky)[:_NAMED]:
        yield (
            f"Flaky: {_failed(report, n)} in state {n + 1:,}; it counts"
            f" as {'failing' if report.judged[n].verdict == 'fails' else 'passing'}."
        )
    if flaky and isinstance(result, FirstFailure):
        yield "A flaky command may have led to the wrong state; more --runs make that less likely."
    if report.changed:
        yield (
            f"The command changed {plural(len(report.changed), 'file')} while it was judged"
            f" ({_some(report.changed)}); each run began from the exact state."
        )
    if report.lent:
        yield f"Lent by your folder, read-only, as they are now: {_some(report.lent)}."
    if report.missing:
        yield f"Missing, because checkpoints don't keep them: {_some(report.missing)}."


def _failed(report: BisectReport, n: int) -> str:
    codes = report.judged[n].codes
    return f"{sum(code != 0 for code in codes)} of {plural(len(codes), 'run')} failed"


def _numbers(states: Sequence[int]) -> str:
    shown = ", ".join(f"{n + 1:,}" for n in sorted(states)[:_NAMED])
    more = f" and {len(states) - _NAMED} more" if len(states) > _NAMED else ""
    return f"{'state' if len(states) == 1 else 'states'} {shown}{more}"


def _some(names: Sequence[str]) -> str:
    shown = ", ".join(map(one_line, names[:3]))
    return f"{shown} and {len(names) - 3} more" if len(names) > 3 else shown


def _next_commands(options: Options, made: Sequence[_Made]) -> Iterator[tuple[str, str]]:
    """Offer what can be done about the call that was found, each with its command."""
    if len(made) != 1 or made[0].origin is None:
        return
    id_, origin = made[0].state.session.header.id, made[0].origin
    if not can_be_typed(id_):
        return
    if origin.request:
        yield "What the model was sent", f"holdfast sessions view {id_} --at {origin.request}"
    if command := fork_line(id_, origin.fork_at):
        yield "Continue from before it, in a copy", command
    if options.sessions.branch is None:
        yield "Put the files back, too, with /rewind to that prompt", f"holdfast -r {id_}"


def _to_json(report: BisectReport, made: Sequence[_Made], diff: str) -> dict[str, Any]:
    result = report.result
    outcome: dict[str, Any]
    if isinstance(result, FirstFailure):
        found = "found" if len(made) == 1 else "between"
        unsure = _unsure(report)
        outcome = {
            "outcome": "flaky" if unsure else found,
            "unsure": [n + 1 for n in unsure],
            "passes": result.passes + 1,
            "fails": result.fails + 1,
            "untried": result.untried,
            "fails_before": result.fails_before,
        }
    else:
        outcome = {"outcome": result.reason, "state": result.state + 1}
    return {**_first_failure(report, made), **outcome} | {
        "command": report.command,
        "states": len(report.states),
        "pruned": report.pruned,
        "candidates": [_made_json(one) for one in made],
        "diff": diff,
        "judged": [
            {
                "state": n + 1,
                "session": report.states[n].session.header.id,
                "time": report.states[n].record.time,
                "verdict": one.verdict,
                "exit_codes": list(one.codes),
                "flaky": one.flaky,
                "why": one.why or None,
                "timed_out": one.timed_out,
                "seconds": round(one.seconds, 3),
            }
            for n, one in sorted(report.judged.items())
        ],
        "output": report.judged[result.fails].output if isinstance(result, FirstFailure) else "",
        "lent": list(report.lent),
        "missing": list(report.missing),
        "changed_by_the_command": list(report.changed),
    }


def _first_failure(report: BisectReport, made: Sequence[_Made]) -> dict[str, Any]:
    """The first state in which the command fails, with its call if only that can have made it:
    null for each that isn't known."""
    result = report.result
    if not isinstance(result, FirstFailure):
        return dict.fromkeys(("session_id", "checkpoint", "call", "prompt"))
    fails = report.states[result.fails]
    origin = made[0].origin if len(made) == 1 else None
    return {
        "session_id": fails.session.header.id,
        "checkpoint": fails.files.checkpoint,
        "call": fails.files.call_id if origin else None,
        "prompt": origin.prompt_text if origin else None,
    }


def _made_json(made: _Made) -> dict[str, Any]:
    state, origin, seen = made.state, made.origin, made.seen
    about: dict[str, Any] = {
        "by": state.files.by,
        "session": state.session.header.id,
        "task": state.task or None,
        "time": state.record.time,
        "title": made.title,
        "background": list(made.beside),
    }
    if origin is None:
        return about
    permission = origin.permission.data if origin.permission else {}
    return about | {
        "call_id": state.files.call_id,
        "tool": origin.tool,
        "subject": origin.subject,
        "sub_agent_session": made.sub_agent or None,
        "prompt": origin.prompt_text,
        "prompt_record": origin.prompt.id if origin.prompt else None,
        "request": origin.request or None,
        "model": origin.model,
        "cost_usd": made.usd,
        "usage": origin.answer.data.get("usage") if origin.answer else None,
        "permission": {name: permission.get(name) for name in ("answer", "by", "reason")}
        if permission
        else None,
        "seen": {
            "messages": seen.messages,
            "read": list(seen.read),
            "hidden": seen.hidden,
            "summarized": seen.summarized,
        }
        if seen
        else None,
        "fork_at": origin.fork_at or None,
    }
