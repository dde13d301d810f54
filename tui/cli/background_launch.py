"""`holdfast --bg`, as far as who asks goes: it loads little, since what works is another process
(`background.py`)."""

from __future__ import annotations

from tui.app import background
from tui.app.options.arguments import Options
from tui.cli.standard_input import standard_input
from tui.core.errors import UsageError
from tui.core.paths import folders
from tui.core.standard_output import note, print_text


def launch(options: Options) -> int:
    """Start a session and print its id. Returns the exit code; raises HoldfastError."""
    attached = standard_input()
    if not ((options.prompt or "").strip() or attached):
        raise UsageError("No prompt given.", hint='Type one: holdfast --bg "…", or pipe it in.')
    one = background.start(folders(), options, attached=attached, tell=note)
    print_text("\n".join(background.started_words(one)))
    return 0
