"""Python's collector, as the tests have it: only what all tests share is permanent.

A program takes for permanent what exists when it has started. In a process that runs thousands of
tests, that would be the remains of each of their programs: 3 MB a test of the screen, for ever.
"""

from __future__ import annotations

import gc

import pytest

freeze, unfreeze = gc.freeze, gc.unfreeze


def keep_frozen() -> None:
    """From here on what exists is not looked at again, and nothing else becomes permanent."""
    gc.collect()
    freeze()
    patch = pytest.MonkeyPatch()
    patch.setattr(gc, "freeze", lambda: None)
    patch.setattr(gc, "unfreeze", lambda: None)
