"""Figures as the screen writes them; see `tui.figures`."""

from tui.figures import age, duration, money, plural, size, tokens

__all__ = ["age", "duration", "money", "plural", "size", "tokens"]
