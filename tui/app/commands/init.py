"""/init: what the model is asked for."""

from __future__ import annotations

from typing import Final

INIT: Final = (
    "Look at this folder and write AGENTS.md for whoever works here next. Read the README, the"
    " build and test configuration and a few typical files first. Say in under 60 lines: what the"
    " project is, how to build, test and check it (the exact commands), how it is laid out, and"
    " the conventions that cannot be seen at once. Only what you have verified. If AGENTS.md is"
    " there already, improve it and keep what is right."
)
"""What /init asks the model for."""
