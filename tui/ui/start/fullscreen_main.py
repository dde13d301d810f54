"""Starts the full screen: the first real frame at once, everything it can do without afterwards."""

from __future__ import annotations

import sys
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

from tui.core import gc_pause, plain_detection
from tui.core.compiled_sources import compiled_once

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tui.app.options.arguments import Options
    from tui.app.program import Program
    from tui.app.services import Opening
    from tui.ui.start.first_frame import EarlyPrompt
    from tui.ui.widgets.conversation.items import Item


def open_screen(options: Options | None, first: EarlyPrompt | None) -> int:
    """Run the full screen and return the exit code.

    What was typed at the `first` frame is taken over once the real one is there.

    Args:
        options: None for plain `holdfast`, which asks for nothing.

    Raises:
        UsageError: If there is no terminal. Errors of loading are raised as they are.
    """
    plain_detection.need_terminal("The full screen needs a terminal.")
    if not sys.stderr.isatty():
        sys.__stderr__ = sys.__stdout__  # Textual draws on it; a redirected one still gets the log
    gc_pause.short_turns()
    gc_pause.begin()  # until everything is loaded: a collection during imports takes 50 ms
    with compiled_once(Path(f"{__spec__.cached}.sources")):
        from tui.ui.app import HoldfastApp  # noqa: PLC0415
        from tui.ui.start.terminal_takeover import TerminalTakeover  # noqa: PLC0415
        from tui.ui.toolkit.base_app import draw_in_utf8  # noqa: PLC0415
        from tui.ui.toolkit.themes import DEFAULT_DARK  # noqa: PLC0415

    strange = draw_in_utf8()
    program: Program | None = None
    with ExitStack() as stack:

        def load() -> Opening:
            nonlocal program
            from dataclasses import replace  # noqa: PLC0415

            from tui.app import launch_config  # noqa: PLC0415
            from tui.app.options.arguments import Options  # noqa: PLC0415
            from tui.app.program import Program  # noqa: PLC0415
            from tui.core.paths import folders  # noqa: PLC0415
            from tui.ui.toolkit import themes  # noqa: PLC0415

            try:
                asked = options or Options()
                program = Program(
                    asked,
                    stack.enter_context(launch_config.scratch_of(asked)),
                    remember_theme=lambda name: themes.remember(name, folders().config / "themes"),
                )
                if strange:
                    notices = (*program.launch.notices, strange)
                    program.launch = replace(program.launch, notices=notices)
                return program.opening()
            finally:
                gc_pause.end()

        look = first.look if first else {}
        named = options.screen.theme if options else None
        theme = named or look.get("theme", DEFAULT_DARK)
        over = TerminalTakeover(first)
        end = _end_of_session(options) if options else ()
        app = HoldfastApp(load, theme=theme, first=over, end=end)
        code = app.run_to_end()
    if over.gone:
        return code  # nobody is there to read it
    if program and program.session and program.session.path and program.session.path.exists():
        from tui.app.background import parting_words  # noqa: PLC0415 - at the end
        from tui.core.standard_output import print_text  # noqa: PLC0415 - as above

        id_, home = program.session.id, program.launch.folders
        print_text(parting_words(home, id_, f"Resume with: holdfast -r {id_}"))
    return code


def _end_of_session(options: Options) -> Sequence[Item]:
    """Return the last items of the session that the options name, for the first real frame."""
    if not (options.opening.resume or options.opening.newest):
        return ()
    from tui.app.session_path import session_path  # noqa: PLC0415
    from tui.core.errors import HoldfastError  # noqa: PLC0415
    from tui.ui.widgets.markdown import code  # noqa: PLC0415
    from tui.ui.widgets.record_items import end_of, load_markdown  # noqa: PLC0415

    code.color(on=False)  # until the whole session is loaded
    try:
        path = session_path(options)
        items = end_of(path) if path else ()
    except HoldfastError:
        return ()  # opening the session will report why
    if items:
        load_markdown()  # here the early prompt shows keys: in the app's loop they would wait
    return items
