"""Markdown as lines of cells: streamed, or at once; the two come to the same."""

from tui.widgets.markdown.document import Document, render
from tui.widgets.markdown.parse import warm
from tui.widgets.markdown.styles import COMPONENTS, Styles, css, styles
from tui.widgets.markdown.text import Line

__all__ = ["COMPONENTS", "Document", "Line", "Styles", "css", "render", "styles", "warm"]
