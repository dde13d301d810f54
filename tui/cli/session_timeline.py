"""`holdfast sessions timeline`: a session in time, for people and as data.

Nothing is written or locked: a session that is open elsewhere, damaged or of another agent is read
as it is.
"""

from __future__ import annotations

import os
import shutil
import sys

from tui.app import launch_config
from tui.app.options.arguments import Options
from tui.app.reports.timeline import step_line, timeline_json, timeline_report
from tui.app.reports.timeline_picture import label_width, picture, whole
from tui.cli.session_io import loaded_branch, print_json
from tui.context.timeline import SessionTimeline
from tui.core.clock import SystemClock
from tui.core.standard_output import note, print_text
from tui.core.text_cleaning import clean
from tui.session.session import Session

_WIDTH = 300
_NARROWEST = 40
_HEIGHT = 18


def timeline(options: Options) -> int:
    """Print the session in a few lines, its picture on a terminal, and every step."""
    loaded = loaded_branch(options)
    made = SessionTimeline(launch_config.prepare(options).config.prices)
    made.extend(loaded.branch)
    if options.json:
        findings = [finding.to_json() for finding in loaded.findings]
        return print_json({"id": loaded.header.id, **timeline_json(made), "findings": findings})
    on_terminal = sys.stdout.isatty()
    width = max(_NARROWEST, min(_WIDTH, shutil.get_terminal_size().columns))
    title = Session.of(loaded, clock=SystemClock()).title or loaded.header.id
    report = timeline_report(made, f"# {title}")
    for line in (report.title, *report.lines):
        print_text(clean(line))
    if on_terminal and made.steps and os.environ.get("TERM") != "dumb":
        print_text("")
        for row in picture(made, whole(made), width, _HEIGHT, colors=False):
            cells = "".join(cell[0] for cell in row.cells)
            print_text(f"{row.label:>{label_width(width)}} {cells}".rstrip())
    if made.steps:
        print_text("")
    for step in made.steps:
        line = clean(step_line(step))
        print_text(line if len(line) <= width or not on_terminal else f"{line[: width - 1]}…")
    if not made.steps:
        note("Nothing happened in this session.")
    if loaded.findings:
        note("The file is damaged: holdfast sessions check says where.")
    return 0
