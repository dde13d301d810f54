"""What a test needs of the system that it runs on; without it, the test is skipped and says why."""

from __future__ import annotations

from pathlib import Path

import pytest

needs_proc = pytest.mark.skipif(
    not Path("/proc/self/stat").exists(), reason="looks at processes in /proc, which Linux has"
)
