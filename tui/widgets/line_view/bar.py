"""How a vertical scroll bar is drawn: as Textual draws it, without the way through Rich.

The thumb of a view that grows changes with every other frame, so that this is drawn often.
"""

from __future__ import annotations

from functools import lru_cache

from rich.segment import Segment
from rich.style import Style as RichStyle
from textual.css.styles import RulesMap
from textual.scrollbar import ScrollBarRender
from textual.strip import Strip
from textual.style import Style
from textual.visual import RenderOptions, Visual


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


@lru_cache(maxsize=256)
def _strip(text: str, style: RichStyle, base: RichStyle) -> Strip:
    return Strip([Segment(text, base + style)], len(text))
