"""How scroll bars are drawn: vertical ones as by Textual, without the way through Rich, for the
thumb of a view that grows changes with every other frame; horizontal ones as a thin line, for a
cell is twice as high as it is wide.
"""

from __future__ import annotations

from functools import lru_cache

from rich.color import Color
from rich.segment import Segment, Segments
from rich.style import Style as RichStyle
from textual.css.styles import RulesMap
from textual.scrollbar import ScrollBarRender
from textual.strip import Strip
from textual.style import Style
from textual.visual import RenderOptions, Visual

_BLACK, _WHITE = Color.parse("black"), Color.parse("white")


class Bar(ScrollBarRender, Visual):
    """A `renderer` of scroll bars."""

    def render_strips(
        self,
        width: int,
        height: int | None,
        style: Style,
        options: RenderOptions,  # noqa: ARG002
    ) -> list[Strip]:
        look = self.style
        assert isinstance(look, RichStyle)
        assert look.bgcolor is not None
        assert look.color is not None
        bar = self.render_bar(
            size=height or 0,
            virtual_size=self.virtual_size,
            window_size=self.window_size,
            position=self.position,
            thickness=width,
            back_color=look.bgcolor,
            bar_color=look.color,
        )
        base = style.rich_style
        return [_strip(text, own or base, base) for text, own, _ in bar.segments]

    def get_optimal_width(self, rules: RulesMap, container_width: int) -> int:  # noqa: ARG002
        return self.thickness

    def get_height(self, rules: RulesMap, width: int) -> int:  # noqa: ARG002
        return 1


class Thin(ScrollBarRender):
    """A `renderer` of horizontal scroll bars."""

    @classmethod
    def render_bar(  # noqa: PLR0917 - Textual's signature
        cls,
        size: int = 25,
        virtual_size: float = 50,
        window_size: float = 20,
        position: float = 0,
        thickness: int = 1,  # noqa: ARG003
        vertical: bool = True,  # noqa: ARG003
        back_color: Color = _BLACK,
        bar_color: Color = _WHITE,
    ) -> Segments:
        room = virtual_size - window_size
        length = max(1, round(size * window_size / virtual_size)) if room > 0 else 0
        start = round((size - length) * position / room) if room > 0 else size
        parts = (
            (" " * start, "scroll_up"),
            ("━" * length, "grab"),
            (" " * (size - start - length), "scroll_down"),
        )
        segments = [
            Segment(
                text,
                RichStyle(color=bar_color, bgcolor=back_color, meta={"@mouse.down": action}),
            )
            for text, action in parts
            if text
        ]
        return Segments([*segments, Segment.line()])


@lru_cache(maxsize=256)
def _strip(text: str, style: RichStyle, base: RichStyle) -> Strip:
    return Strip([Segment(text, base + style)], len(text))
