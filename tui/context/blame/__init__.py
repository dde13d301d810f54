"""Blame: where each line of a file comes from, as sessions tell. `blame_file` is the way in.

`steps` reads what a session may have changed, `index` keeps that; `timeline` folds it with
checkpoints into the states of a file, `trace` follows the lines through them, by `line_match` and
`reformatting`; `commits` asks git, `orphaned_copies` finds what is left of sessions that are gone.
`wording` says what was found.
"""

from tui.context.blame.file_blame import FileBlame, LineOrigin, blame_file
from tui.context.blame.steps import RecordedStep
from tui.context.blame.wording import (
    allowed_by,
    asked_lines,
    cost,
    fork_command,
    is_call,
    label,
    line_range,
    open_command,
    words,
)

__all__ = [
    "FileBlame",
    "LineOrigin",
    "RecordedStep",
    "allowed_by",
    "asked_lines",
    "blame_file",
    "cost",
    "fork_command",
    "is_call",
    "label",
    "line_range",
    "open_command",
    "words",
]
