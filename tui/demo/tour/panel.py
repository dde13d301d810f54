"""The panel of the tour, at the bottom of every screen: what happened, and what to press next."""

from __future__ import annotations

from collections.abc import Sequence

from textual import events
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.content import Content
from textual.message import Message
from textual.style import Style
from textual.widgets import Static

from tui.demo.tour.tour import TITLE, Said
from tui.ui.widgets.panes import PaneRule

_WIDE, _TALL = 72, 22
"""Below so many columns fewer words are made; below so many rows only what is next is said."""

_KEYS = (
    ("f8", "back", "app.tour_back"),
    ("f9", "skip", "app.tour_skip"),
    ("ctrl+q", "leave", "app.quit"),
)


class TourPanel(Vertical):
    """Shows what it is told. It never takes the focus; its keys can be clicked."""

    DEFAULT_CSS = """
    TourPanel { dock: bottom; width: 100%; height: auto; background: $panel; }
    TourPanel Static { width: 1fr; height: auto; padding: 0 1; max-height: 3; }
    TourPanel .happened { color: $text-muted; max-height: 2; }
    """

    class Sized(Message):
        """It takes more rows now, or fewer."""

    def __init__(self, said: Said) -> None:
        super().__init__()
        self.said = said
        self._rule = PaneRule()
        self._happened = Static(classes="happened", markup=False)
        self._now = Static(classes="now", markup=False)

    def compose(self) -> ComposeResult:
        yield self._rule
        yield self._happened
        yield self._now

    def on_mount(self) -> None:
        self.show(self.said)

    def on_resize(self) -> None:
        self.show(self.said)
        self.post_message(self.Sized())

    def show(self, said: Said) -> None:
        """Say something else."""
        self.said = said
        width, height = self.app.size  # pyright: ignore[reportUnknownMemberType]
        wide = width >= _WIDE
        title = said.title if wide else said.title.removeprefix(TITLE)
        self._rule.title = Content.styled(title, "bold $text-secondary")
        keys = [key for key in _KEYS if not (said.over and key[0] == "f9")]
        self._rule.right = _keys(keys if wide else keys[-2:])
        self._happened.update(marked(said.happened))
        self._happened.display = bool(said.happened) and height >= _TALL
        self._now.update(marked(said.now))

    async def on_click(self, event: events.Click) -> None:
        if action := event.style.meta.get("key"):
            await self.run_action(str(action))


def marked(text: str) -> Content:
    """A text of the tour; what stands in backticks is a key."""
    parts = text.split("`")
    return Content.assemble(
        *((part, "bold $text-accent" if n % 2 else "") for n, part in enumerate(parts))
    )


def _keys(keys: Sequence[tuple[str, str, str]]) -> Content:
    shown = [
        Content.assemble((key, "$text-accent"), (f" {what}", "$text-muted")).stylize(
            Style.from_meta({"key": action})
        )
        for key, what, action in keys
    ]
    return Content("   ").join(shown)
