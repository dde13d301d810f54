"""Line-API views: their cost depends on what is visible, never on the length."""

from tui.ui.widgets.line_view.strips import LAST_ROW, key, place
from tui.ui.widgets.line_view.view import LineView, RenderedItem

__all__ = ["LAST_ROW", "LineView", "RenderedItem", "key", "place"]
