"""`holdfast tour`: every protective feature once, in five minutes, with the practice model.

A row of steps. Each asks for one real thing on the real screen: nothing of it is played, the model
alone is the practice model. A panel at the bottom of every screen says what happened and what to
press next; it follows what the person does, and any step can be left out. All of it happens in a
scratch repository that is removed at the end: settings, sessions and files of the person are
neither used nor touched.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tui.demo.drill import scratch

if TYPE_CHECKING:
    from tui.app.options.arguments import Options

__all__ = ["run"]


def run(options: Options) -> int:
    """Open the screen with the tour. Returns the exit code; raises UsageError."""
    scratch.need_terminal("The tour", hint="Open a terminal, and run: holdfast tour")
    from tui.demo.tour import scene  # noqa: PLC0415 - the screen is heavy
    from tui.demo.tour.screen import TourApp  # noqa: PLC0415

    theme = scratch.theme_of(options)
    with scene.place() as root:
        return scratch.show(TourApp.at(root, theme=theme))
