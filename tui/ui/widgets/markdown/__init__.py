"""Markdown as lines of cells, streamed or at once, with the same result."""

from tui.ui.widgets.markdown.document import Document, render
from tui.ui.widgets.markdown.text import COMPONENTS, Line, Styles, css, styles

__all__ = ["COMPONENTS", "Document", "Line", "Styles", "css", "render", "styles"]
