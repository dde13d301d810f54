"""Python's collector, as the tests have it: only what all tests share is permanent.

A program takes for permanent what exists when it has started. In a process that runs thousands of
tests, that would be the remains of each of their programs: 3 MB a test of the screen, for ever.
"""

from __future__ import annotations

import gc
from typing import Final

import pytest

freeze, unfreeze = gc.freeze, gc.unfreeze

MUCH: Final = 100_000
"""So many new objects are what a few tests of the screen leave, or twenty that run commands."""


def keep_frozen() -> None:
    """From here on what exists is not looked at again, and nothing else becomes permanent."""
    gc.collect()
    freeze()
    patch = pytest.MonkeyPatch()
    patch.setattr(gc, "freeze", lambda: None)
    patch.setattr(gc, "unfreeze", lambda: None)


def collect_between_tests() -> None:
    """Free what tests have left behind, once it is much. What is still there is shared by all that
    are to come: it is not looked at again. A collection within a test would look at the whole of
    its program, and keep what it could not free yet for a long time."""
    if gc.get_count()[0] > MUCH:
        gc.collect()
        freeze()
