"""Figures as the screen writes them; see `tui.core.formatting`."""

from tui.core.formatting import age, duration, money, plural, size, tokens

__all__ = ["age", "duration", "money", "plural", "size", "tokens"]
