"""The reports of a run: its progress lines, and its summary as text and Markdown. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from tui.batch.events import (
    BatchEvent,
    FromAgent,
    RetryDelayed,
    RunFinished,
    RunStarted,
    TaskFinished,
    TaskMerged,
    TaskStarted,
)
from tui.batch.state import RunState, Status, TaskState, total_usage
from tui.core import facts
from tui.core.config import Batch
from tui.core.dataclass import dataclass
from tui.core.fact_words import fact_lines
from tui.core.facts import Fact
from tui.core.formatting import duration, money, plural, shortened, tokens
from tui.core.messages import Usage
from tui.core.paths import shorten

ROWS_MAX: Final = 60
"""A table of more tasks leaves out those that are completed."""
_ORDER: Final[tuple[Status, ...]] = (
    "completed", "failed", "unmerged", "interrupted", "running", "pending",
)  # fmt: skip
_ISOLATION: Final = {
    "git": "isolation: git, one commit per task",
    "jj": "isolation: jj, one change per task",
    "none": "isolation: none",
    "batch": "message batch: questions without tools, at half price",
}
UNCHANGED: Final = "no changes"
"""The state, in words, of a completed task that changed no file."""
_TITLE: Final = 44
_LINE: Final = 200
_WHY: Final = 600


def lines_of(event: BatchEvent, *, total: int = 0, numbered: bool = False) -> Iterator[str]:
    """The plain lines of `run --headless`, without the summary. `total` is the number of tasks;
    `numbered`: several run at a time, and each line about one says which."""
    if numbered and isinstance(event, TaskStarted | FromAgent | TaskFinished):
        of = f"[{event.task + 1}] "
        for line in lines_of(event, total=total):
            yield of + line.removeprefix("  ") if line.startswith("  ") else line
        return
    match event:
        case RunStarted():
            yield from _begun(event)
        case TaskStarted(task, group, text, attempt, host=host):
            on = f" on {host}" if host else ""
            if attempt == 1:
                yield f"[{task + 1}/{total}]{on} {one_line(f'{group}: {text}', _LINE)}"
            else:
                yield f"  attempt {attempt}{on}"
        case FromAgent(event=inner):
            yield from _agent_lines(inner)
        case facts.Notice(text):
            yield "".join(c if c.isprintable() else " " for c in text).rstrip()
        case TaskFinished():
            yield from _finished(event)
        case TaskMerged(task, message=message):
            yield f"[{task + 1}] " + (
                f"not merged: {one_line(message, _WHY)}" if message else "merged"
            )
        case RetryDelayed() | RunFinished():
            pass  # what is waited for has been said, and the end is the summary


def _begun(event: RunStarted) -> Iterator[str]:
    yield (
        f"holdfast run {shorten(event.task_file)}: {plural(event.tasks, 'task')}, {event.done} done"
    )
    if event.boot:
        yield f"boot: {event.boot}"
    line = _ISOLATION.get(event.isolation, f"isolation: {event.isolation}")
    yield f"{line}, {commit_words(event)}" if event.isolation == "git" else line
    if event.at_once > 1:
        yield f"parallel: {event.at_once} tasks at a time, each group in a checkout of its own"


def commit_words(of: RunStarted | Batch) -> str:
    """Say what commits of tasks are made with."""
    hooks = "with the project's git hooks" if of.hooks else "without git hooks"
    return f"{hooks}, {'signed' if of.sign else 'unsigned'}"


def _agent_lines(event: Fact) -> Iterator[str]:
    match event:
        case facts.ToolStarted(name=name, label=label):
            yield f"  » {one_line(f'{name} {label}', _LINE)}"
        case facts.ToolFinished(is_error=True, name=name, summary=summary):
            yield f"  » {name} failed{one_line(f': {summary}' if summary else '', _LINE)}"
        case facts.SubAgentStarted() | facts.SubAgentEvent() | facts.SubAgentFinished():
            pass
        case _:
            yield from (f"  {one_line(line, _LINE)}" for line in fact_lines(event))


def _finished(event: TaskFinished) -> Iterator[str]:
    figures = (
        f"{duration(event.seconds)}, {plural(event.attempts, 'attempt')},"
        f" {tokens(Usage.from_json(event.usage).total)} tokens"
    )
    match event.status:
        case "completed":
            change = f", commit {event.change[:10]}" if event.change else ""
            yield f"  {_state(event)}: {figures}{change}"
        case "unmerged":
            yield f"  done: {figures}, commit {(event.change or '')[:10]}, to be merged"
        case "failed":
            kind = f" ({event.error_class})" if event.error_class else ""
            yield f"  failed{kind}: {figures}"  # why has been said
        case _:
            yield f"  interrupted: {figures}; runs again next time"
    if event.change and event.status not in {"completed", "unmerged"}:
        yield f"  its attempt is kept: {_show_command(event.change)}"


@dataclass(frozen=True, slots=True)
class RunSummary:
    """The state of a run, to be shown. `reason` is why it ended early, "" where it did not;
    `seconds` is how long it has run now, where it did: tasks side by side work longer than that."""

    state: RunState
    reason: str = ""
    seconds: float | None = None

    def text(self, *, width: int = 100) -> str:
        """A table for a terminal, the totals, and what is left with the reasons."""
        shown = self.state.tasks
        if hidden := len(shown) > ROWS_MAX:
            shown = tuple(task for task in shown if task.status != "completed")
        rows = [_row(task) for task in shown]
        parts = [_table(rows, width)] if rows else []
        if hidden:
            parts.append(
                f"Completed tasks of the {plural(len(self.state.tasks), 'task')} are left out."
            )
        parts.append(self.totals())
        if left := [f"  {task.index + 1}. {line}" for task in shown if (line := why(task))]:
            parts.append("\n".join(["Not done:", *left]))
        return "\n\n".join(parts) + "\n"

    def totals(self) -> str:
        """One line: how many tasks stand where, and what they took."""
        counts = self.state.counts()
        tasks = self.state.tasks
        unchanged = sum(task.unchanged for task in tasks)
        more = {"completed": f" ({unchanged} without changes)" if unchanged else ""}
        states = (f"{counts[name]} {name}{more.get(name, '')}" for name in _ORDER if name in counts)
        figures = [
            f"{plural(len(tasks), 'task')}: {', '.join(states)}",
            f"{tokens(total_usage(tasks).total)} tokens",
            *([] if (cost := cost_of(tasks)) is None else [money(cost)]),
            f"{duration(sum(task.seconds for task in tasks))} of work",
            *([] if self.seconds is None else [f"{duration(self.seconds)} elapsed"]),
        ]
        ended = [f"stopped early: {self.reason}"] if self.reason else []
        return " · ".join([*figures, *ended])

    def markdown(self) -> str:
        """For a pull request: totals, a table by group, and what is left with the reasons."""
        tasks = self.state.tasks
        name = self.state.task_file.rsplit("/", 1)[-1]
        lines = [f"## {_md(name)}", "", _md(self.totals()), ""]
        begun = self.state.started_at[:16].replace("T", " ")
        lines += [f"Started {begun} UTC.", ""] if begun else []
        heads = ["#", "Task", "State", "Attempts", "Tokens", "Cost", "Time", "Change"]
        rules = ["--:", "---", "---", "--:", "--:", "--:", "--:", "---"]
        columns = _columns([_row(task) for task in tasks])
        lines += [_cells(heads, columns), _cells(rules, columns)]
        section = None
        for task in tasks:
            if task.section != section:
                section = task.section
                lines.append(_cells(["", f"**{_md(task.group)}**", *[""] * 6], columns))
            number, state, title, *figures = _row(task)
            lines.append(_cells([number, _md(title), state, *figures], columns))
        if left := [(task, line) for task in tasks if (line := why(task))]:
            lines += ["", "### Not done", ""]
            lines += [
                f"- **{task.index + 1}. {_md(one_line(task.task, _LINE))}** {_md(line)}"
                for task, line in left
            ]
        return "\n".join(lines) + "\n"


def _state(task: TaskState | TaskFinished) -> str:
    return UNCHANGED if task.unchanged else task.status


def cost_of(tasks: Iterable[TaskState]) -> float | None:
    """Sum up the cost of tasks; None where one that was attempted has no price, or none was."""
    costs = [task.cost_usd for task in tasks if task.usage]
    return None if not costs or None in costs else sum(cost for cost in costs if cost is not None)


def one_line(text: str, limit: int) -> str:
    """A text on one line, without control characters, cut to `limit` characters."""
    line = " ".join("".join(c if c.isprintable() else " " for c in text).split())
    return shortened(line, limit)


_HASH: Final = re.compile(r"[0-9a-z]+")
_HEAD: Final = ("#", "state", "task", "tries", "tokens", "cost", "time", "change")


def _row(task: TaskState) -> list[str]:
    begun = bool(task.attempts or task.usage)
    change = task.change or ""
    return [
        str(task.index + 1),
        _state(task),
        one_line(task.task, _LINE),
        str(task.attempts) if begun else "",
        tokens(Usage.from_json(task.usage).total) if task.usage else "",
        money(task.cost_usd) if task.cost_usd else "",
        duration(task.seconds) if task.seconds else "",
        change[:10] if _HASH.fullmatch(change) else "kept" if change else "",
    ]


def _table(rows: Sequence[list[str]], width: int) -> str:
    columns = _columns(rows)
    table = [list(_HEAD), *rows]
    sizes = [
        max(len(row[column]) for row in table) if column in columns else 0
        for column in range(len(_HEAD))
    ]
    others = sum(sizes) - sizes[2] + 2 * (len(columns) - 1)
    sizes[2] = min(sizes[2], max(_TITLE if width >= 100 else 16, width - others))
    lines: list[str] = []
    for row in table:
        cells = [
            one_line(cell, size).ljust(size) if column in {1, 2, 7} else cell.rjust(size)
            for column, (cell, size) in enumerate(zip(row, sizes, strict=True))
            if column in columns
        ]
        lines.append("  ".join(cells).rstrip())
    return "\n".join(lines)


def _columns(rows: Sequence[Sequence[str]]) -> list[int]:
    """The columns that say something: costs and changes are not always known."""
    return [
        column
        for column, name in enumerate(_HEAD)
        if name not in {"cost", "change"} or any(row[column] for row in rows)
    ]


def _cells(row: Sequence[str], kept: Sequence[int]) -> str:
    """A row of a Markdown table."""
    return f"| {' | '.join(row[column] for column in kept)} |"


def why(task: TaskState) -> str:
    """Say why a task that was begun is not done, and where to look; "" for all others."""
    attempt = f" Its attempt: {_show_command(task.change)}." if task.change else ""
    log = f" Its log: {task.log}." if task.log else ""
    match task.status:
        case "completed" | "pending":
            return ""
        case "failed":
            kind = f" ({task.error_class})" if task.error_class else ""
            reason = one_line(task.message or "reason unknown", 300).rstrip(".")
            return f"failed{kind}: {reason}.{attempt}{log}"
        case "interrupted":
            why = f" ({task.error_class}): {one_line(task.message or '', 300)}"
            why = f"{why.rstrip('.')}" if task.error_class else ""
            return f"interrupted{why}; runs again next time.{attempt}{log}"
        case "unmerged":
            reason = one_line(task.message or "It waits for the tasks before it.", _WHY)
            return f"not merged: {reason}{log}"
        case "running":
            return f"running.{log}"


def _show_command(change: str) -> str:
    """Return the command that shows a kept attempt."""
    return f"git show {change}" if change.startswith("refs/") else f"jj show {change[:12]}"


def _md(text: str) -> str:
    """Text that Markdown shows as it is, in a table too."""
    escaped = "".join("\\" + c if c in r"\\`*_[]<>|#" else c for c in text)
    return one_line(escaped, 400)
