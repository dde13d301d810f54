"""A question about lines of a file, and the steps that answer it, in words. Pure."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from tui.context.blame.steps import RecordedStep
from tui.core.config import Price
from tui.core.errors import UsageError
from tui.core.formatting import money, plural, shortened
from tui.core.git.history import CommittedLine
from tui.core.paths import expanded
from tui.core.text_cleaning import one_line
from tui.provider.prices import price_of
from tui.session.records import can_be_typed, fork_line

_LINES: Final = re.compile(r"(\d{1,18})(?:[-,](\+?)(\d{1,18}))?", re.ASCII)
_LABEL_CHARS: Final = 40
_BY: Final = {
    "person": "you",
    "rule": "a rule",
    "default": "default",
    "hook": "a hook",
    "sandbox": "the sandbox",
    "accept_edits": "accept edits mode",
    "elevated": "elevated mode",
}
_OF_NO_CALL: Final = frozenset({"before", "person", "commit", "lost", "job", "rewind"})


def asked_lines(given: str, folder: Path) -> tuple[Path, str]:
    """Take apart FILE or FILE:LINES: the path, and the lines as they were given, "" for all.
    A file that has the whole name comes first. Raises UsageError for anything else after a colon.
    """
    path = folder / expanded(given)
    name, colon, lines = given.rpartition(":")
    if colon and name and not os.path.lexists(path):
        if not _LINES.fullmatch(lines):
            raise UsageError(f"“{given}” names no lines.", hint="FILE:10, FILE:10-20 or FILE:10,+5")
        return folder / expanded(name), lines
    return path, ""


def line_range(lines: str, count: int, name: str) -> tuple[int, int]:
    """Return the first and the last line that are meant, counted from 1, of a file with so many.
    Raises UsageError where there are none."""
    match = _LINES.fullmatch(lines)
    if match is None:
        return 1, count
    first = int(match[1])
    last = int(match[3]) if match[3] else first
    if match[2]:
        last = first + last - 1
    if last < first:
        raise UsageError(f"{lines} names no lines: it ends before it begins.")
    if not 1 <= first <= count:
        raise UsageError(f"{name} has {plural(count, 'line')}: there is no line {lines}.")
    return first, min(last, count)


def is_call(step: RecordedStep) -> bool:
    """True for a step of a session's call, which has a prompt, a model and a price."""
    return step.kind not in _OF_NO_CALL


def words(
    step: RecordedStep, commit: CommittedLine | None, prices: Mapping[str, Price]
) -> list[str]:
    """Say in a line or two who did what for which prompt, with which model, at what price."""
    at = f", commit {commit.commit[:8]} by {one_line(commit.author)}" if commit else ""
    match step.kind:
        case "before":
            return [f"From before the first state that is known{at}."]
        case "person":
            return [f"The person, or a program outside Holdfast{at}."]
        case "commit":
            said = one_line(step.said)
            return [f"Commit {step.commit[:8]} by {one_line(step.author)}: “{said}”"]
        case "lost":
            return ["A session that is gone."]
        case "job":
            return [f"A background command of session {one_line(step.session)}."]
        case "rewind":
            return [f"A rewind in session {one_line(step.session)}."]
        case _:
            said = f" for “{one_line(step.said)}”" if step.said else ""
            usd = cost(step, prices)
            by = allowed_by(step)
            facts = (one_line(step.model), "" if usd is None else money(usd), by)
            return [f"{label(step)}{said}", *filter(None, [" · ".join(filter(None, facts))])]


def label(step: RecordedStep) -> str:
    """Name a call: its tool, or its command."""
    if step.kind == "edit" or not step.label:
        return one_line(step.tool) or "an edit by a sub-agent"
    line = one_line(step.label)
    return f"`{shortened(line, _LABEL_CHARS)}`"


def allowed_by(step: RecordedStep) -> str:
    """Say who allowed a call, as `allowed by you`; "" where nobody had to."""
    return f"allowed by {_BY.get(step.by, one_line(step.by))}" if step.by else ""


def open_command(step: RecordedStep) -> str:
    """Return the command line that opens a step's session at its prompt; "" where it has none, or
    where an id isn't one that Holdfast makes."""
    ids = (step.session, step.prompt or "0")
    if step.kind == "lost" or not all(map(can_be_typed, ids)):
        return ""
    return f"holdfast -r {step.session}" + (f" --at {step.prompt}" if step.prompt else "")


def fork_command(step: RecordedStep) -> str:
    """Return the command line that begins again from before a step's prompt, in a copy; "" where
    nothing comes before it, or where a sub-agent took it."""
    if step.parent or not open_command(step):
        return ""
    return fork_line(step.session, step.before)


def cost(step: RecordedStep, prices: Mapping[str, Price]) -> float | None:
    """Return the USD of the request that made a call; None where that isn't known."""
    price = price_of(step.model, prices, step.payer) if step.usage else None
    if price is None or step.usage is None:
        return None
    return (price.in_batch() if step.batch else price).cost(step.usage)
