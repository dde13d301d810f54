"""The places of an item's parts. Column 0 is kept for the cursor, 1 and 2 for the item's mark."""

MARGIN = 3
BODY_MAX = 400
"""Lines of an item's inside that are drawn; the rest is counted."""


def inner(width: int) -> int:
    """The cells that an item's text gets: a margin on both sides."""
    return max(8, width - MARGIN - 1)
