"""The one door by which a command line says something on the standard streams, terminal or pipe.

What is meant for people is cleaned: nothing in it steers the terminal that shows it, also where a
pager or a file comes first. Data is printed as it is; a terminal gets that cleaned, too, by
`TerminalStream`. Half characters never stop either.
"""

from __future__ import annotations

import sys

from tui.core.text_cleaning import clean


def print_text(text: str, *, end: str = "\n") -> None:
    """A text for people on stdout. Raises OSError."""
    sys.stdout.write(clean(text) + end)


def print_data(text: str, *, end: str = "\n") -> None:
    """Data on stdout, exactly but for half characters. Raises OSError."""
    sys.stdout.write(text.encode("utf-8", "replace").decode() + end)


def note(text: str) -> None:
    """A line for the person, on stderr. Raises OSError."""
    sys.stderr.write(clean(text) + "\n")
