"""`holdfast tour`: every protective feature once, in five minutes, with the practice model.

Each step asks for one real thing on the real screen: nothing is simulated except the model, which
is the practice model. A panel at the bottom of every screen says what happened and what to press
next; it follows what the person does, and any step can be skipped. All of it happens in a scratch
repository that is removed at the end: settings, sessions and files of the person are neither used
nor touched.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tui.demo import guide

if TYPE_CHECKING:
    from tui.app.options.arguments import Options


def run(options: Options) -> int:
    """Open the screen with the tour, and return the exit code; raises UsageError."""
    guide.need_terminal("The tour", hint="Open a terminal, and run: holdfast tour")
    from tui.demo import tour_scene  # noqa: PLC0415 - the screen is heavy
    from tui.demo.tour_screen import TourApp, TourProgram  # noqa: PLC0415

    theme = guide.theme_of(options)
    with tour_scene.place() as root:
        return guide.show(TourApp(TourProgram(root, theme)))
