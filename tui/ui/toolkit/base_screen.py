"""The base of every screen, and the screen in place of one that a terminal has no room for."""

from __future__ import annotations

import asyncio
from time import monotonic, sleep
from typing import Any, ClassVar, Protocol, cast, runtime_checkable

from textual import events, on
from textual.app import App, ComposeResult
from textual.await_remove import AwaitRemove
from textual.binding import Binding, BindingType
from textual.geometry import Size
from textual.screen import UPDATE_PERIOD, ModalScreen, Screen
from textual.widget import Widget
from textual.widgets import Static

from tui.core import gc_pause
from tui.core.formatting import plural
from tui.ui.toolkit.answer_guard import Noting
from tui.ui.toolkit.compositor import RowCompositor, draw_now

SMALLEST = Size(40, 10)
"""Columns and rows below which nothing useful can be drawn."""
YIELD_S = 0.00005
"""Seconds that the loop rests after a key's echo: the terminal may wait for this processor, or the
thread that writes for the interpreter."""


def fits(size: Size) -> bool:
    """True if a terminal of this size has room for a screen."""
    return size.width >= SMALLEST.width and size.height >= SMALLEST.height


class BaseScreen(Widget):
    """Common behavior of screens: workers end before widgets, and the size is always current.

    If two sizes are on their way to a screen at once, Textual lays out one, reports another to the
    screen, lays that out, and so on without end. A screen that is left loses its widgets first and
    its workers afterwards, which would look for them.

    A class inherits style rules and names only from its first base, which is this one. Without the
    name for selected text, dragging the mouse over a text would end the program.
    """

    about: object = None
    """The screen whose session a question is from."""
    shows_others: ClassVar[bool] = False
    """True if it shows sessions that other processes have."""
    COMPONENT_CLASSES: ClassVar[set[str]] = {"screen--selection"}
    DEFAULT_CSS = """
    BaseScreen > .screen--selection {
        background: $screen-selection-background;
        color: $screen-selection-foreground;
    }
    """

    awaited: bool = False
    """True if its answer is awaited. A key that opens another screen then leaves it open; screens
    that are not awaited close first."""

    opened_at = float("-inf")
    """The time at which it opened; a key that came earlier was pressed before anyone saw it."""

    _echoed_at = float("-inf")
    _sized = False

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._compositor = RowCompositor()

    def on_idle(self) -> None:
        focused, screen = cast("Any", self).focused, cast("Any", self)
        if focused in screen._dirty_widgets:  # noqa: SLF001
            self.echo(focused)

    def _compositor_refresh(self) -> None:
        """Draw what has changed, unless an opaque screen hides it: Textual would draw that one
        again, whole, and a screen that comes back is drawn whole anyway."""
        own: Any = self
        top: Widget = own.app.screen
        if top is self or top.styles.background.a < 1:
            cast("Any", super())._compositor_refresh()  # noqa: SLF001
            return
        own._dirty_widgets.clear()  # noqa: SLF001
        own._compositor._dirty_regions.clear()  # noqa: SLF001

    def echo(self, widget: Widget) -> None:
        """Draw a key's effect on a widget at once: Textual's next frame may come 33 ms after the
        last one, and while an answer streams there often was one."""
        now = monotonic()
        if now - self._echoed_at >= UPDATE_PERIOD:
            self._echoed_at = now
            draw_now(widget)
            sleep(YIELD_S)
        gc_pause.key_drawn()

    def takes(self, event: events.Key | events.Paste) -> bool:  # noqa: ARG002
        """True if the screen itself uses a key, before every binding and field."""
        return False

    def takes_interrupt(self) -> bool:
        """Deal with Ctrl+C, pressed here or in a dialog above. False if it is the app's."""
        return False

    async def lets_cover(self, question: str) -> None:
        """Wait until a question may cover the screen, and show meanwhile that it waits."""

    def note(self, text: str) -> None:
        """Show a line about the keys; "" removes it."""
        if text:
            self.notify(text, severity="warning", markup=False)

    def remove(self) -> AwaitRemove:
        self.workers.cancel_node(self)  # pyright: ignore[reportUnknownMemberType] - Worker's result
        return super().remove()

    @on(events.ScreenResume)
    def _styled_when_composed(self, event: events.ScreenResume) -> None:
        """Skip restyling when the screen is shown for the first time: its widgets have just been
        styled."""
        event.refresh_styles &= bool(cast("Any", self).stack_updates)

    @on(events.Resize)
    async def _only_the_size_of_now(self, event: events.Resize) -> None:
        if not self._sized:
            self._sized = True
            await asyncio.sleep(0)  # it has just been laid out once as it opened: keys come first
        if event.size != self.app.size:  # pyright: ignore[reportUnknownMemberType] - Textual's App
            event.stop()
            event.prevent_default()


@runtime_checkable
class Pane(Protocol):
    """A widget with a place for a line about it."""

    def say(self, text: str, /) -> object: ...


def note_for(screen: Widget, seconds: float, text: str) -> None:
    """Show a line about the keys on a screen for that many seconds."""
    note = cast("Noting", screen).note
    note(text)
    screen.set_timer(seconds, lambda: note(""))


def copy(widget: Widget, text: str) -> None:
    """Copy a text, and say so at the widget's place for it, in its pane or on its screen."""
    widget.app.copy_to_clipboard(text)  # pyright: ignore[reportUnknownMemberType] - Textual's App
    copied = f"Copied {plural(len(text), 'character')}."
    pane = next((node for node in widget.ancestors_with_self if isinstance(node, Pane)), None)
    if pane is not None:
        pane.say(copied)
    else:
        widget.notify(copied, markup=False)


def uncovered(app: App[Any], screen: Screen[Any]) -> bool:
    """Close the screens that cover one, down to one that is awaited. True if there were any."""
    before = len(app.screen_stack)
    while (top := app.screen) is not screen:
        if not isinstance(top, BaseScreen) or top.awaited:
            break
        top.dismiss(None)
    return len(app.screen_stack) < before


class TooSmall(BaseScreen, ModalScreen[None]):
    """Covers everything while the terminal is too small, and closes by itself.

    A screen that opened above it meanwhile has to close first.
    """

    DEFAULT_CSS = """
    TooSmall { align: center middle; background: $background; }
    TooSmall Static { width: 100%; height: auto; text-align: center; }
    TooSmall.-fits { background: transparent; }
    TooSmall.-fits Static { display: none; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [Binding("ctrl+c", "app.interrupt", show=False)]

    def compose(self) -> ComposeResult:
        yield Static(markup=False)

    def on_screen_resume(self) -> None:
        self.on_resize()

    def on_resize(self) -> None:
        size = self.app.size  # pyright: ignore[reportUnknownMemberType] - Textual's App
        self.set_class(fits(size), "-fits")
        if fits(size):
            if self.app.screen is self:  # pyright: ignore[reportUnknownMemberType]
                self.dismiss()
            return
        self.query_one(Static).update(
            f"This terminal is {size.width} × {size.height}.\n"
            f"Holdfast needs at least {SMALLEST.width} × {SMALLEST.height}."
        )
