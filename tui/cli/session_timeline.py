"""`holdfast sessions timeline`: a session in time, for people and as data.

Nothing is written or locked: a session that is open elsewhere, damaged or of another agent is read
as it is.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Mapping
from typing import Any

from tui.app import launch_config
from tui.app.damage_report import damage_findings
from tui.app.options.arguments import Options
from tui.app.reports.timeline import step_line, timeline_json, timeline_report
from tui.app.reports.timeline_picture import (
    Window,
    aligned,
    label_width,
    legend,
    picture,
    signs,
    whole,
)
from tui.cli.session_io import load, loaded_branch, print_json, sub_agents_of
from tui.context.timeline import SessionTimeline, inner_timelines
from tui.core.clock import SystemClock
from tui.core.config import Price
from tui.core.dataclass import dataclass
from tui.core.formatting import shortened
from tui.core.paths import folders
from tui.core.standard_output import note, print_text
from tui.core.text_cleaning import clean
from tui.session import naming
from tui.session.reader import LoadedSession
from tui.session.session import Session

_WIDTH = 300
_NARROWEST = 40
_HEIGHT = 18
_HEIGHT_OF_TWO = 12


def timeline(options: Options) -> int:
    """Print the session in a few lines, its picture on a terminal, and every step; with a second
    session, both in short and their pictures below each other."""
    loaded = loaded_branch(options)
    one = _timed(loaded, launch_config.config_for(options, loaded.path).prices)
    if options.sessions.second:
        path = naming.find(options.sessions.second, folders())
        prices = launch_config.config_for(options, path).prices
        return _two(options, (one, _timed(load(path), prices)))
    if options.json:
        return print_json(_json(one))
    on_terminal, width, made = sys.stdout.isatty(), _width(), one.timeline
    _print_report(one)
    if on_terminal and made.steps and os.environ.get("TERM") != "dumb":
        _print_picture(made, whole(made), width, _HEIGHT)
    if made.steps:
        print_text("")
    for step in made.steps:
        inner = one.inner.get(step.record) if step.kind == "agent" else None
        lines = [step_line(step)]
        lines += [f"    {step_line(within)}" for within in (inner.steps if inner else ())]
        for line in map(clean, lines):
            print_text(shortened(line, width) if on_terminal else line)
    if not made.steps:
        note("Nothing happened in this session.")
    _note_damage(one)
    return 0


@dataclass(frozen=True, slots=True)
class _TimedSession:
    """A session with its timeline, and those of its sub-agents by the records that end them."""

    loaded: LoadedSession
    timeline: SessionTimeline
    inner: Mapping[str, SessionTimeline]


def _timed(loaded: LoadedSession, prices: Mapping[str, Price]) -> _TimedSession:
    made = SessionTimeline(prices, loaded.header.cwd)
    made.extend(loaded.branch)
    return _TimedSession(
        loaded, made, inner_timelines(loaded.branch, sub_agents_of(loaded), prices)
    )


def _two(options: Options, both: tuple[_TimedSession, _TimedSession]) -> int:
    """Print two sessions on one scale, their first prompts in one column."""
    if options.json:
        return print_json([_json(one) for one in both])
    drawn = sys.stdout.isatty() and os.environ.get("TERM") != "dumb"
    windows = aligned([one.timeline for one in both])
    for n, (one, window) in enumerate(zip(both, windows, strict=True)):
        if n:
            print_text("")
        _print_report(one)
        if drawn and one.timeline.steps:
            _print_picture(one.timeline, window, _width(), _HEIGHT_OF_TWO)
        _note_damage(one)
    return 0


def _print_report(one: _TimedSession) -> None:
    loaded = one.loaded
    title = Session.of(loaded, clock=SystemClock()).title or loaded.header.id
    report = timeline_report(one.timeline, f"# {title}")
    for line in (report.title, *report.lines):
        print_text(clean(line))


def _print_picture(made: SessionTimeline, window: Window, width: int, height: int) -> None:
    print_text("")
    for row in picture(made, window, width, height, colors=False):
        cells = "".join(cell[0] for cell in row.cells)
        print_text(f"{row.label:>{label_width(width)}} {cells}".rstrip())
    for pieces in (legend(width, colors=False), signs(width)):
        print_text("".join(text for text, _ in pieces).rstrip())


def _json(one: _TimedSession) -> dict[str, Any]:
    findings = [finding.to_json() for finding in one.loaded.findings]
    return {
        "id": one.loaded.header.id,
        **timeline_json(one.timeline, one.inner),
        "findings": findings,
    }


def _note_damage(one: _TimedSession) -> None:
    if damage_findings(one.loaded.findings):
        note("The file is damaged: holdfast sessions check says where.")


def _width() -> int:
    return max(_NARROWEST, min(_WIDTH, shutil.get_terminal_size().columns))
