"""The one way for a command line to write to the standard streams, terminal or pipe.

Text for people is cleaned: nothing in it controls the terminal that shows it, even if a pager or a
file comes first. Data is printed as it is; for a terminal, `TerminalStream` cleans that, too. Half
characters never stop either.
"""

from __future__ import annotations

import sys

from tui.core.text_cleaning import clean


def print_text(text: str, *, end: str = "\n") -> None:
    """Print a text for people on stdout. Raises OSError."""
    sys.stdout.write(clean(text) + end)


def print_data(text: str, *, end: str = "\n") -> None:
    """Print data on stdout, exactly except for half characters. Raises OSError."""
    sys.stdout.write(text.encode("utf-8", "replace").decode() + end)


def note(text: str) -> None:
    """Print a line for the person on stderr. Raises OSError."""
    sys.stderr.write(clean(text) + "\n")
