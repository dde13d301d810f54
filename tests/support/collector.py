"""Python's collector, as the tests have it: what the program took for permanent stays so.

In a process that runs thousands of tests, each with a program of its own, that is millions of
objects; a session that is replaced would look through all of them.
"""

from __future__ import annotations

import gc

import pytest

unfreeze = gc.unfreeze


def keep_frozen() -> None:
    """From here on what is taken for permanent is not looked at again."""
    gc.freeze()
    pytest.MonkeyPatch().setattr(gc, "unfreeze", lambda: None)
