"""Line-API views: what they cost depends on what is in sight, never on the length."""

from tui.ui.widgets.line_view.view import LAST_ROW, LineView, RenderedItem, key, place

__all__ = ["LAST_ROW", "LineView", "RenderedItem", "key", "place"]
